"""The command ``anydml``."""
