"""Python numbers where elements are expected, the same for every library and on both ways."""

from typing import Any

import numpy as np
import pytest

import anydml as dml

NUMBERS = [
    0, 1, -1, 127, 128, 255, 256, 2**31, 2**63, 2**64, -(2**63),
    0.0, -0.0, 1.0, 2.0, -1.0, 0.5, 1.5, 127.0, 128.0, -128.0, -129.0, 255.0, 256.0, 300.0,
    2.0**31, -(2.0**31), 2.0**32, 2.0**53, 2.0**62, 2.0**63, -(2.0**63), 2.0**64, 1e300, 1e-300,
    float("inf"), float("nan"),
]  # fmt: skip
TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]


def has(kind: str, number: Any) -> bool:
    """Whether a type has a number."""
    low, high = (0, 1) if kind == "bool" else (np.iinfo(kind).min, np.iinfo(kind).max)
    return bool(low <= number <= high and number == int(number))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_numbers_of_an_integer_type(kind: str, number: Any) -> None:
    x = np.zeros(2, kind)
    out = np.zeros(4, kind)
    calls = [
        lambda: dml.pad(x, 1, "constant", number)[[0, 3]],
        lambda: dml.pad(x, 1, "constant", number, out=out)[[0, 3]],
        lambda: dml.pad(x.tolist(), 1, "constant", number)[[0, 3]],
        lambda: dml.scatter_elements(x, [0, 1], number),
        lambda: dml.scatter_elements(x, [0, 1], [number, number]),
        lambda: dml.scatter_nd(x, [[0], [1]], number),
        lambda: dml.scatter_nd(x, [[0], [1]], [number, number]),
        lambda: dml.join([x, [number, number]])[2:],
    ]
    if kind != "int64":
        del calls[2]
    for call in calls:
        if has(kind, number):
            assert call().tolist() == [number, number]
        else:
            with pytest.raises(dml.ArgumentTypeError) as raised:
                call()
            if abs(number) < 2**63:
                assert str(raised.value).endswith(f"do not fit: {number}")


@pytest.mark.parametrize("kind", ["int32", "bool"])
@pytest.mark.parametrize("number", [0.0, 1.0, 7.0, 1.5, 2.0**31, float("nan")], ids=repr)
def test_numbers_beside_arrays_of_other_libraries(kind: str, number: float) -> None:
    torch: Any = pytest.importorskip("torch")
    jax: Any = pytest.importorskip("jax")
    dask: Any = pytest.importorskip("dask.array")
    x = np.zeros(2, kind)

    def compiled(function: Any) -> Any:
        torch.compiler.reset()  # every number is another program of the same function
        return torch.compile(function, backend="eager", fullgraph=True)(torch.tensor(x))

    for function in (
        lambda x: dml.pad(x, [(1, 0)], "constant", number),
        lambda x: dml.scatter_elements(x, [0], number),
        lambda x: dml.scatter_elements(x, [0], [number]),
        lambda x: dml.scatter_nd(x, [[0]], [number]),
    ):
        for call in (
            lambda f=function: f(torch.tensor(x)),
            lambda f=function: torch.vmap(f)(torch.tensor(x)[None])[0],
            lambda f=function: compiled(f),
            lambda f=function: f(jax.numpy.asarray(x)),
            lambda f=function: jax.jit(f)(jax.numpy.asarray(x)),
            lambda f=function: f(dask.from_array(x)).compute(),
        ):
            if has(kind, number):
                assert call().tolist()[0] == number
            else:
                with pytest.raises(Exception, match=r"(do|does) not fit|Observed exc"):
                    call()
