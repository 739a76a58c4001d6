"""The array functions: thin, over native calls that do the whole job for plain NumPy arrays.

Each function first tries its quick call, which returns None when anything is unusual; the general
path behind it converts, checks every argument, says what is wrong, and runs the same kernel.
"""
