"""The functions inside programs of other libraries; loaded when a value of theirs comes in."""
