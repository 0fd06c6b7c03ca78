"""The budget of a dataset and every charge against it, in an append-only hash chain that is written before noise is drawn."""
