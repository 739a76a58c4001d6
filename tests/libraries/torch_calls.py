"""Calls of every array function on PyTorch's tensors, for the tests of the integration."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import anydml as dml
from support.documented_calls import documented_calls

ALONG = torch.tensor([[0, 3, -1], [2, 2, 0]])  # duplicates, a negative one
TUPLES = torch.tensor([[0, 1], [2, -1], [0, 1]])
BATCHED = torch.tensor([[[1], [1]], [[0], [-1]], [[3], [2]]])


def floats(*shape, seed=0):
    """Distinct float64 values, so that no two of them tie."""
    generator = torch.Generator().manual_seed(seed)
    count = torch.Size(shape).numel()
    return (torch.randperm(count, generator=generator) * 0.25 - 1).reshape(shape).double()


def as_tuple(result):
    return result if isinstance(result, tuple) else (result,)


# Of one tensor of shape (3, 4), which may ask for a gradient; the results that have one.
CALLS = {
    "top_k": lambda x: dml.top_k(x, 2).values,
    "top_k smallest": lambda x: dml.top_k(x, 3, axis=0, largest=False).values,
    "top_k of all": lambda x: dml.top_k(x, 4, index_dtype="int32").values,
    "top_k of none": lambda x: dml.top_k(x, 0).values,
    "top_k of a scalar": lambda x: dml.top_k(x.sum(), 1).values,
    "gather": lambda x: dml.gather(x, ALONG, axis=1),
    "gather first": lambda x: dml.gather(x, ALONG[1]),
    "gather one": lambda x: dml.gather(x, torch.tensor(2), axis=-1),
    "gather clamp": lambda x: dml.gather(x, ALONG * 5, axis=1, mode="clamp"),
    "gather wrap": lambda x: dml.gather(x, ALONG * 5, axis=1, mode="wrap"),
    "gather clip": lambda x: dml.gather(x, ALONG * 5, axis=1, mode="clip"),
    "gather list": lambda x: dml.gather(x, [2, 0, 2], axis=1),
    "gather_elements": lambda x: dml.gather_elements(x, ALONG, axis=1),
    "gather_elements clamp": lambda x: dml.gather_elements(x, ALONG * 3, axis=1, mode="clamp"),
    "gather_elements broadcast": lambda x: dml.gather_elements(x, ALONG[:1], axis=1,
                                                               broadcast=True),
    "gather_elements scalar": lambda x: dml.gather_elements(x.sum(), torch.tensor([0, -1])),
    "gather_nd": lambda x: dml.gather_nd(x, TUPLES),
    "gather_nd rows": lambda x: dml.gather_nd(x, TUPLES[:, :1]),
    "gather_nd batched": lambda x: dml.gather_nd(x, BATCHED, batch_dims=1),
    "gather_nd clamp": lambda x: dml.gather_nd(x, TUPLES * 4, mode="clamp"),
    "gather_nd wrap": lambda x: dml.gather_nd(x, TUPLES * 7, mode="wrap"),
    "gather_nd of no tuple": lambda x: dml.gather_nd(x, torch.zeros(2, 0, dtype=torch.int64)),
    "scatter_elements": lambda x: dml.scatter_elements(x, ALONG, x[:2, :3] * 2, axis=1),
    "scatter_elements add": lambda x: dml.scatter_elements(x, ALONG, x[:2, 1:] * 3, axis=1,
                                                           reduction="add"),
    "scatter_elements sum only": lambda x: dml.scatter_elements(
        x, ALONG, x[:2, 1:] * 3, axis=1, reduction="sum", include_self=False),
    "scatter_elements number": lambda x: dml.scatter_elements(x, ALONG, 5.0, axis=1),
    "scatter_elements broadcast": lambda x: dml.scatter_elements(
        x, ALONG[:1], x[:1, :3], axis=1, broadcast=True),
    "scatter_elements scalar": lambda x: dml.scatter_elements(
        x.sum(), torch.tensor([0, 0]), x[0, :2]),
    "scatter_nd": lambda x: dml.scatter_nd(x, TUPLES, x[0, :3] * 2),
    "scatter_nd rows": lambda x: dml.scatter_nd(x, TUPLES[:, :1], x * 2),
    "scatter_nd add": lambda x: dml.scatter_nd(x, TUPLES[:, :1], x * 2, reduction="add"),
    "scatter_nd number": lambda x: dml.scatter_nd(x, TUPLES, 7.0),
    "split": lambda x: dml.split(x, 2, axis=1),
    "split sizes": lambda x: dml.split(x, [1, 0, 2]),
    "split near": lambda x: dml.split(x, 2, near_equal=True),
    "split points": lambda x: dml.split(x, points=[1], axis=1),
    "join": lambda x: dml.join([x, x[:1] * 2, x]),
    "join flat": lambda x: dml.join([x, x[0]], axis=None),
    "join promoted": lambda x: dml.join([x, ALONG[:, :1].expand(2, 4)], promote=True),
    "cast": lambda x: dml.cast(x, "float64"),
    "pad": lambda x: dml.pad(x, [(1, 2), (0, 3)], constant=2.5),
    "slice_window": lambda x: dml.slice_window(x, (0, 1), (3, 3), (2, -2)),
    "reverse_subsequences": lambda x: dml.reverse_subsequences(x, ALONG[:1, :1] + 2, axis=1),
    "reverse_subsequences list": lambda x: dml.reverse_subsequences(x, [[1], [9], [0]], axis=1),
    "one_hot": lambda x: dml.one_hot(ALONG, 4, x[0, 1:3]),
    "one_hot by axis": lambda x: dml.one_hot(ALONG * 2, 3, x, axis=0),
    "tile": lambda x: dml.tile(x, (2, 1, 3)),
    "tile last": lambda x: dml.tile(x, 2),
    "slice_window from an end": lambda x: dml.slice_window(x, (0, 1), (3, 2), (-1, -2)),
    "slice_window by threes": lambda x: dml.slice_window(x, (0, 1), (3, 2), (1, -3)),
    "slice_window of none": lambda x: dml.slice_window(x, (0, 1), (3, 0), (1, -1)),
}  # fmt: skip

# What has no gradient, or is of integers.
OTHERS = {
    "top_k indices": lambda x: dml.top_k(x, 2).indices,
    "top_k int32": lambda x: dml.top_k(x, 2, index_dtype=torch.int32).indices,
    "nonzero_coordinates": lambda x: dml.nonzero_coordinates(x > 0.5),
    "nonzero_coordinates of a size": lambda x: dml.nonzero_coordinates(x > 0.5, size=4),
    "nonzero_coordinates filled": lambda x: dml.nonzero_coordinates(
        x, size=99, fill_value=-1, index_dtype="int32"),
    "nonzero_coordinates int32": lambda x: dml.nonzero_coordinates(x, index_dtype="int32"),
    "scatter_elements max": lambda x: dml.scatter_elements(x, ALONG, x[:2, :3] * 2, axis=1,
                                                           reduction="max"),
    "scatter_nd mean": lambda x: dml.scatter_nd(x, TUPLES, x[0, :3], reduction="mean"),
    "cast to int": lambda x: dml.cast(x * 10, torch.int8),
    "cast by name": lambda x: dml.cast(x * 10, "uint8"),
    "pad edge": lambda x: dml.pad(x, 2, "edge"),
    "one_hot of integers": lambda x: dml.one_hot((x * 4).to(torch.int64), 3),
    "nonzero then gather": lambda x: dml.gather_nd(x, dml.nonzero_coordinates(x > 0.5)),
}  # fmt: skip


def can_have_a_gradient(value):
    tensors = value if isinstance(value, list) else [value]
    return all(isinstance(x, torch.Tensor) and x.is_floating_point() for x in tensors)


def _recorded_operators():
    """The arguments of one call of each of torch.ops.anydml, of calls above and documented ones."""
    found = {}

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            if operator.namespace == "anydml" and any(map(can_have_a_gradient, args)):
                name = operator.name().removeprefix("anydml::").removesuffix("_plain")
                found.setdefault(name, args)
            return operator(*args, **(kwargs or {}))

    with Recorder():
        for call in (*CALLS.values(), *OTHERS.values()):
            call(floats(3, 4))
        for call in documented_calls():
            call.with_operands(torch.from_numpy)
    return found


# torch.ops.anydml.*: arguments, of which the first of floats may ask for a gradient.
OPERATORS = _recorded_operators()
