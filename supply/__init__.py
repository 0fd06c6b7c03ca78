"""The libraries we build on: pinned and hashed, without known holes, under licenses we may use. ``python -m supply``."""
