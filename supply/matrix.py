"""``python -m supply.matrix``: the tests on every supported Python, with the newest and with the oldest dependencies.

    python -m supply.matrix                          the whole suite, as `make test-all`
    python -m supply.matrix tests/cli tests/ledger   a part of it
    python -m supply.matrix --python 3.12 --only oldest tests/cli

Each environment is new: the newest versions that the bounds allow, or every direct dependency at its lower bound. The oldest are
tried on the oldest Python alone, unless asked for: old versions have no wheels for a Python that came after them. Interpreters are
looked for on the PATH, among those of pyenv, and as `--python /path/to/python`. One that is not here is named and not run; the
command then ends with 2, and with 1 if anything failed.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FAILED, MISSING = 1, 2
KINDS = ("newest", "oldest")
READY = ".ready"
APART = ["-n", "4", "--dist", "worksteal"]
"""Every process collects for itself: where forking is no way, and beside old libraries, which start threads when imported."""
FORKED = ["--workers", "4"] if sys.platform == "linux" else APART
"""As in the Makefile."""


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def versions() -> list[str]:
    """The Python versions that the classifiers name."""
    return re.findall(r"Python :: (3\.\d+)", "\n".join(project()["classifiers"]))


def oldest() -> list[str]:
    """Constraints that hold every direct dependency of a plain install at its lower bound."""
    return [re.sub(r">=([^,]+).*", r"==\1", str(each)) for each in project()["dependencies"]]


def interpreter(wanted: str) -> str | None:
    """The path of an interpreter by version or path; None if there is none here."""
    if "/" in wanted:
        return wanted if Path(wanted).exists() else None
    by_pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{wanted}.*/bin/python"))
    return shutil.which(f"python{wanted}") if not by_pyenv else str(by_pyenv[-1])


def making(python: str, kind: str, folder: Path) -> Iterator[list[str]]:
    """The commands that make an environment."""
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    bounds = folder / "oldest.txt"
    yield [python, "-m", "venv", str(folder)]
    if kind == "oldest":
        bounds.write_text("\n".join(oldest()) + "\n")
        pip += ["--constraint", str(bounds)]
    yield [str(folder / "bin" / "python"), *pip, "--editable", f"{ROOT}[dev]"]


def testing(kind: str, folder: Path, tests: Sequence[str]) -> list[str]:
    """The command that runs the tests. Old libraries may warn about newer ones beneath them, which says nothing about us."""
    warnings = ["-W", "default::DeprecationWarning"] if kind == "oldest" else []
    words = [str(folder / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", *warnings]
    side_by_side = APART if kind == "oldest" else FORKED
    return [*words, *side_by_side, "--rootdir", str(ROOT), *tests]


def kinds(wanted: str, only: str | None) -> Sequence[str]:
    """Which dependencies are tried on a Python."""
    if only is not None:
        return [only]
    return KINDS if wanted == versions()[0] else KINDS[:1]


def run(python: str, kind: str, tests: Sequence[str], kept: Path | None = None) -> bool:
    """Whether the tests pass in a new environment, or in one that was kept."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = kept or Path(temporary)
        made = () if kept and (kept / READY).exists() else making(python, kind, folder)
        if not all(_passed(words) for words in made):
            return False
        (folder / READY).touch()
        return _passed(testing(kind, folder, tests))


def _passed(words: list[str]) -> bool:
    return subprocess.run(words, cwd=ROOT, check=False).returncode == 0


def main(words: Sequence[str] | None = None) -> int:
    read = argparse.ArgumentParser(prog="python -m supply.matrix", description=(__doc__ or "").partition("\n")[0])
    read.add_argument("--python", action="append", help="a version, or the path of an interpreter; may be repeated")
    read.add_argument("--only", choices=KINDS, help="newest or oldest dependencies")
    read.add_argument("--keep", type=Path, help="a folder in which environments are kept and found again")
    read.add_argument("tests", nargs="*", help="what to run; the whole suite unless given")
    given = read.parse_args(words)
    ended = 0
    for wanted in given.python or versions():
        python = interpreter(wanted)
        for kind in kinds(wanted, given.only):
            if python is None:
                print(f"Python {wanted}, {kind} dependencies: NOT RUN, there is no such interpreter on this machine")
                ended = ended or MISSING
                continue
            kept = given.keep and given.keep.resolve() / f"{Path(wanted).name}-{kind}"
            passed = run(python, kind, given.tests, kept)
            print(f"Python {wanted}, {kind} dependencies: {'passed' if passed else 'FAILED'}", flush=True)
            ended = ended if passed else FAILED
    return ended


if __name__ == "__main__":
    sys.exit(main())
