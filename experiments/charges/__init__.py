"""What each mechanism charges beside what a record truly loses: ``python -m experiments.charges``."""
