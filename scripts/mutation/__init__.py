"""The parts of `scripts/mutate.py`."""
