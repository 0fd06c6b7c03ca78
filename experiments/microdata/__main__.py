"""``python -m experiments.microdata --runs 1000 --out DIR``"""

import argparse

from experiments.microdata.run import RUNS, main

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--runs", type=int, default=RUNS)
parser.add_argument("--seed", type=int, default=20211)
parser.add_argument("--out", default=None)
given = parser.parse_args()
main(given.runs, given.seed, given.out)
