"""Nodes as DirectML operators: one module for each family of operators."""
