"""The same job in recordwise and in other libraries, each in its own virtual environment, in one run."""
