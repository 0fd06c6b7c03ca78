"""``python -m recordwise``: the command line without its script."""

from recordwise.cli import main

if __name__ == "__main__":
    main()
