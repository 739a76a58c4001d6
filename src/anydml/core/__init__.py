"""Errors, types, levels, tensors and programs; imports nothing from other layers."""
