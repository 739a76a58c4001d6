"""Graphs of operators: described, checked, lowered to a program, built and run."""
