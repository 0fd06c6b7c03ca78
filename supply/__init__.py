"""The libraries we build on: pinned and hashed, without known holes, under licences we may use. ``python -m supply``."""
