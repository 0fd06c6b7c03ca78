"""``python -m experiments [NAME]``: reproduce the papers' figures and tables."""

import typer

from experiments.command import reproduce

if __name__ == "__main__":
    typer.run(reproduce)
