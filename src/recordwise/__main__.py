"""Runs the command line as ``python -m recordwise``."""

from recordwise.cli import main

if __name__ == "__main__":
    main()
