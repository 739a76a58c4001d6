"""Coverage-guided fuzzing: targets, corpora and dictionaries; `python -m fuzz` runs them."""
