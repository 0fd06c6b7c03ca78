"""How large an environment is: ``python -m supply.sizes [SITE-PACKAGES]`` lists its libraries in MB, the largest first."""

import sys
import sysconfig
from importlib.metadata import Distribution, distributions
from pathlib import Path


def size(library: Distribution) -> int:
    """The bytes of the files that a library installed."""
    found = (Path(str(library.locate_file(each))) for each in library.files or [])
    return sum(path.stat().st_size for path in found if path.is_file())


def sizes(folder: str) -> dict[str, int]:
    """Bytes by library."""
    return {each.metadata["Name"]: size(each) for each in distributions(path=[folder])}


def main(folder: str) -> None:
    found = sizes(folder)
    for name, each in sorted(found.items(), key=lambda item: -item[1]):
        print(f"{each / 1e6:8.1f}  {name}")
    print(f"{sum(found.values()) / 1e6:8.1f}  all")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else sysconfig.get_path("purelib"))
