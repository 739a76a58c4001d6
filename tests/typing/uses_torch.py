"""`uses.py` for PyTorch's own class."""

from typing import assert_type

import torch

import anydml as dml

x = torch.zeros(2, 3)
i = torch.zeros(2, 3, dtype=torch.int64)

assert_type(dml.gather(x, i), torch.Tensor)
assert_type(dml.scatter_elements(x, i, x, reduction="mean"), torch.Tensor)
assert_type(dml.split(x, 3, axis=1), tuple[torch.Tensor, ...])
assert_type(dml.join([x, x]), torch.Tensor)
assert_type(dml.cast(x, torch.float16), torch.Tensor)
assert_type(dml.top_k(x, 2, index_dtype=torch.int32), dml.TopKResult[torch.Tensor, torch.Tensor])
assert_type(dml.nonzero_coordinates(x), torch.Tensor)
