"""Operators by other names: those of other libraries, and misspelt ones."""

import importlib
import re
from pathlib import Path

import pytest

import anydml as dml
from anydml import cli
from anydml.ops._computed import Computed
from anydml.ops._pages import PAGES
from anydml.registry import OPERATORS, operator_meant, unknown_operator

NAMES = {kind.NAME: kind.ALSO_KNOWN_AS.split() for kind in OPERATORS.values()}
TABLE = Path(__file__).parents[2] / "docs" / "names.md"


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("Concat", "JOIN"), ("onnx.Concat", "JOIN"), ("torch.cat", "JOIN"),
        ("torch.topk", "TOP_K1"), ("np.argpartition", "TOP_K1"), ("lax.top_k", "TOP_K1"),
        ("jnp.take", "GATHER"), ("F.pad", "PADDING1"), ("dml.slice_window", "SLICE1"),
        ("TopK", "TOP_K"), ("top_k", "TOP_K"), ("DML_OPERATOR_SPLIT", "SPLIT"),
        ("DML_TOP_K1_OPERATOR_DESC", "TOP_K1"), ("Scatter_Elements", "SCATTER_ELEMENTS"),
        ("gather", "GATHER"), ("torch.gather", "GATHER_ELEMENTS"),
        ("nonzero", "NONZERO_COORDINATES"), ("torch.nn.GELU", "ACTIVATION_GELU"),
        ("torch.conv2d", "CONVOLUTION"), ("conv2d", "CONVOLUTION"),
    ],
)  # fmt: skip
def test_the_operator_that_a_name_means(capsys, name, operator):
    assert operator_meant(name) == operator
    assert cli.main(["ops", name]) == 0
    assert capsys.readouterr().out.startswith(f"DML_OPERATOR_{OPERATORS[operator].NAME} ")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("SPILT", "SPLIT"), ("TOP_K2", "TOP_K"), ("DML_OPERATOR_CASST", "CAST"),
        ("ELEMENT_WISE_ADDD", "ELEMENT_WISE_ADD"), ("ACTIVATION_GELLU", "ACTIVATION_GELU"),
        ("RANDOM", "RANDOM_GENERATOR"), ("tf.concat", "JOIN"),
        ("FROBNICATE", None), ("ELEMENT_WISE_FROBNICATE", None), ("", None), ("TO.P.K", None),
        ("E", None), ("x" * 100_000, None), ("torch.", None), (".", None),
    ],
)  # fmt: skip
def test_only_a_near_name_is_suggested(capsys, name, hint):
    end = f"; did you mean {hint!r}?" if hint else " (`anydml ops` lists them)."
    message = unknown_operator(name)
    assert message.startswith("Expected the name of a DirectML operator, got '")
    assert message.endswith(end)
    assert len(message) < 200
    assert cli.main(["ops", name]) == 2
    assert capsys.readouterr().err.endswith(f"Error: {message}\n")
    with pytest.raises(dml.ModelError) as raised:
        dml.from_json({"type": name})
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("np.histogram", "scatter_elements"), ("bincount", "scatter_elements"),
        ("torch.scatter_add", "scatter_elements"), ("index_add", "scatter_nd"),
        ("argsort", "top_k"),
    ],
)  # fmt: skip
def test_what_an_array_function_does(name, function):
    assert f"use the array function {function}" in unknown_operator(name)
    assert name.rpartition(".")[2] in TABLE.read_text(encoding="utf-8")


def test_every_operator_of_directml_is_here():
    assert PAGES.keys() <= OPERATORS.keys()


def test_an_attribute_that_is_no_operator():
    for name, use in {
        "topk": "top_k", "argwhere": "nonzero_coordinates", "nonzero": "nonzero_coordinates",
        "scatter": "scatter_elements", "index_select": "gather", "take": "gather",
        "take_along_axis": "gather_elements", "concatenate": "join", "cat": "join",
        "Concat": "join", "narrow": "slice_window", "arange": "FillValueSequence",
    }.items():  # fmt: skip
        with pytest.raises(AttributeError, match=rf"'{name}'; use anydml\.{use}$"):
            getattr(dml, name)
        assert hasattr(dml, use)
    with pytest.raises(AttributeError, match=r"has no attribute 'Frobnicate'$"):
        dml.Frobnicate  # noqa: B018
    assert not hasattr(dml, "_nothing")


def test_a_name_stands_for_one_operator():
    names = [name.lower() for listed in NAMES.values() for name in listed]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("library", ["anydml", "numpy", "torch", "jax", "onnx"])
def test_names_exist(library):
    names = {name for listed in NAMES.values() for name in listed if name.startswith(f"{library}.")}
    assert names
    found = pytest.importorskip(library)
    if library == "onnx":
        assert all(found.defs.has(name.removeprefix("onnx.")) for name in names)
        return
    for name in names:
        value = found
        for part in name.split(".")[1:]:
            if not hasattr(value, part):  # a module that is not loaded yet
                importlib.import_module(f"{value.__name__}.{part}")
            value = getattr(value, part)


def documented():
    """Operators and other names of each row of the first table of docs/names.md."""
    methods = {"NumPy": "numpy.ndarray", "PyTorch": "torch.Tensor", "JAX": "jax.Array"}
    short = {"np": "numpy", "jnp": "jax.numpy"}
    lines = TABLE.read_text(encoding="utf-8").partition("| DirectML |")[2].splitlines()
    libraries = [cell.split()[0] for cell in lines[0].strip("| ").split(" | ")]
    for line in lines[2:]:
        if not line.startswith("|"):
            return
        operators, *cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        found = []
        for library, cell in zip(libraries, cells, strict=True):
            if library == "ONNX":
                found.append("onnx." + re.match(r"\w+", cell)[0])
                continue
            for name in re.findall(r"`([\w.]+)`", cell):
                first, dot, rest = name.partition(".")
                if library == "anydml":
                    found.append(f"anydml.{name}")
                elif first == "x":
                    found.append(f"{methods[library]}.{rest}")
                else:
                    found.append(f"{short.get(first, first)}.{rest}" if dot else name)
        yield operators.split(", "), found


def test_the_documented_names():
    rows = [*documented()]
    # Operators that calculate have their other names on their pages.
    moving = {name for name, kind in OPERATORS.items() if not issubclass(kind, Computed)}
    assert {name for operators, _ in rows for name in operators} == moving
    for operators, names in rows:
        kinds = dict.fromkeys(OPERATORS[name] for name in operators)
        assert names == [also for kind in kinds for also in kind.ALSO_KNOWN_AS.split()], operators
