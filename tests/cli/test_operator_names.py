"""Operators by other names: those of other libraries, and misspelt ones."""

import importlib
from pathlib import Path

import pytest

import anydml as dml
from anydml.cli import command as cli
from anydml.ops._pages import PAGES
from anydml.ops._registry import OPERATORS, operator_meant, unknown_operator

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
    assert str(raised.value) == f"type: e{message[1:]}".removesuffix(".")


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


@pytest.mark.parametrize(
    ("name", "operator"),
    [("Concatt", "JOIN"), ("torch.topkk", "TOP_K1"), ("Softmaxx", "ACTIVATION_SOFTMAX1")],
)
def test_a_misspelt_name_of_another_library(name, operator):
    assert unknown_operator(name).endswith(f"; did you mean {operator!r}?")


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
    names = [name.lower() for members in NAMES.values() for name in members]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("library", ["anydml", "numpy", "torch", "jax", "onnx"])
def test_names_exist(library):
    names = {
        name for members in NAMES.values() for name in members if name.startswith(f"{library}.")
    }
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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Einsum", "which ONNX Runtime composes from other operators of DirectML"),
        ("BiasGelu", "which ONNX Runtime composes from other operators of DirectML"),
        ("If", "which ONNX Runtime computes without DirectML"),
        (
            "GridSample",
            "which ONNX Runtime's DirectML provider computes with compute shaders of its own",
        ),
        ("Shape", "which ONNX Runtime computes without DirectML"),
        ("Einsun", "Expected the name of a DirectML operator"),
    ],
)
def test_operators_of_onnx_alone(capsys, name, expected):
    assert cli.main(["ops", name]) == 2
    assert expected in capsys.readouterr().err
