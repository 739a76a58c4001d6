"""The kernels on NumPy, for an installation without the native modules."""
