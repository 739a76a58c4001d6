"""Coverage-guided fuzzing: targets, corpora and dictionaries; `scripts/fuzz.py` runs them."""
