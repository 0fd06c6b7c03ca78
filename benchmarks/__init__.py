"""One module per part; each has a ``main()``. Run one with ``python -m benchmarks NAME``, or all of them without a name."""
