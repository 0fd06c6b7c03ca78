"""``python -m experiments.errata [NAME]``: the evidence of one erratum, or of all."""

import sys

from experiments.errata.run import collected


def main(wanted: list[str]) -> int:
    found = collected(lambda _: None)
    names = [each.name for each in found]
    if unknown := [name for name in wanted if name not in names]:
        print(f"There is no erratum {unknown[0]}; there are {', '.join(names)}.", file=sys.stderr)
        return 2
    print("\n\n".join(each.text() for each in found if not wanted or each.name in wanted))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
