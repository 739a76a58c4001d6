"""The benchmark's cases, made small enough to run in a test."""

from dataclasses import replace


def _size(size):
    """Small, but still divided by what divided it."""
    return next((n for n in (24, 16, 20, 8) if size % n == 0), 17) if size > 24 else size


def shrunk(case):
    """The same case with every size cut down."""
    parameters = dict(case.parameters)
    if "shape" in parameters:
        shape = parameters["shape"] = tuple(map(_size, parameters["shape"]))
    if "shapes" in parameters:
        parameters["shapes"] = tuple(tuple(map(_size, shape)) for shape in parameters["shapes"][:5])
    if "k" in parameters:
        parameters["k"] = min(parameters["k"], shape[parameters.get("axis", -1)] - 1)
    if "count" in parameters:
        parameters["count"] = min(parameters["count"], 20)
    if "sections" in parameters:
        parameters["sections"] = 3 if parameters["sections"] == 3 else 4
    return replace(case, parameters=parameters)
