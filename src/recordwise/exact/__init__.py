"""Exact and outward-rounded numbers, and the public functions of a value that policies and noise laws are written in."""
