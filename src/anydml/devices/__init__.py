"""Devices: create, compile, bind and run operators."""
