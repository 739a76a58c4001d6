"""PyDirectML's module: the programs that ``import pydirectml`` run on this package, unchanged.

``python -m anydml.pydirectml SCRIPT …`` runs one; ``import anydml.pydirectml as dml`` is the module
in your own program. Graphs run on the device that ``ANYDML_DEVICE`` names, by default the CPU. This
is `anydml.GraphBuilder` under other names: operators, rules and results are the same.

Examples
--------
>>> import numpy as np
>>> import anydml.pydirectml as dml
>>> device = dml.Device()
>>> builder = dml.GraphBuilder(device)
>>> x = dml.input_tensor(builder, 0, dml.TensorDesc(dml.TensorDataType.FLOAT32, [1, 1, 2, 2]))
>>> y = dml.activation_relu(x * 2 + 1)
>>> model = builder.build(dml.ExecutionFlags.NONE, [y])
>>> result = device.compute(model, [dml.Binding(x, [[1, -2], [3, -4]])], [y])
>>> np.array(result[0])
array([[[[3., 0.],
         [7., 0.]]]], dtype=float32)
"""

from typing import Any

from anydml.core._json import did_you_mean
from anydml.graphs.directmlx import functions
from anydml.pydirectml import _functions, _graph, _types
from anydml.pydirectml._functions import *  # noqa: F403  # each has __all__
from anydml.pydirectml._graph import *  # noqa: F403  # each has __all__
from anydml.pydirectml._types import *  # noqa: F403  # each has __all__

# pybind11 copies the members of an enumeration into the module; of equal names the last one stays.
_members = {name: value for kind in _types.EXPORTED for name, value in kind.__members__.items()}
globals().update(_members)

__all__: list[str] = []
__all__ += _types.__all__
__all__ += _graph.__all__
__all__ += _functions.__all__
__all__ += list(_members)


def __getattr__(name: str) -> Any:
    """Suggest a name in place of one that PyDirectML lacks."""
    if name in functions():
        hint = f"; anydml.GraphBuilder has {name!r}"
    else:
        short = {known.removeprefix("activation_").replace("_", ""): known for known in __all__}
        meant = short.get(name.lower().replace("_", ""))
        hint = f"; did you mean {meant!r}?" if meant else did_you_mean(name, __all__)
    raise AttributeError(f"PyDirectML has no {name!r}{hint}")
