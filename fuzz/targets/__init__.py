"""The targets: each module has `run(data)`, which raises when something is wrong."""
