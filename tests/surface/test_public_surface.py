"""What the package shows: complete, documented, with examples that run."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import anydml as dml
from anydml.core.enums import NamedEnum
from anydml.ops._computed import Computed
from anydml.ops._examples import examples_of
from anydml.ops._registry import OPERATORS

PACKAGE = Path(dml.__file__).parent

# Public things that say what they are; the examples are where they are used.
WITHOUT_EXAMPLE = {
    "CompiledOperator", "Descriptor", "MemoryPool", "Operator",
    "Support", "TensorSupport", "TopKResult", "Violation", "ScatterElements",
}  # fmt: skip

FIXED = [
    "top_k", "nonzero_coordinates", "scatter_elements", "scatter_nd", "split", "join", "gather",
    "gather_elements", "gather_nd", "TopKResult", "Device", "TensorDesc", "ScatterElements",
    "slice_window", "cast", "pad", "tile", "reverse_subsequences", "one_hot",
    "InterpolationMode",
    "from_json", "support", "AnyDMLError", "InvalidDescriptorError", "BindingError",
    "IndexOutOfRangeError", "Violation",
]  # fmt: skip


CALCULATING = {kind.__name__: kind for kind in OPERATORS.values() if issubclass(kind, Computed)}


def test_all_is_what_the_package_has():
    public = {
        name
        for name, value in vars(dml).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert sorted(dml.__all__) == sorted(public)
    assert len(set(dml.__all__)) == len(dml.__all__)
    assert {*FIXED, *(kind.__name__ for kind in OPERATORS.values())} <= set(dml.__all__)
    assert dml.__version__


@pytest.mark.parametrize("name", dml.__all__)
def test_documented_with_an_example(name):
    value = getattr(dml, name)
    text = inspect.getdoc(value)
    assert text, name
    assert len(text.splitlines()[0]) <= 100
    enumeration = isinstance(value, type) and issubclass(value, NamedEnum)
    if name in WITHOUT_EXAMPLE or name.endswith("Error") or (enumeration and ">>>" not in text):
        return
    if name in CALCULATING:  # its page has an example that is computed
        assert [*examples_of(value)]
        return
    assert ">>> " in text, name
    assert "Examples" in text, name


@pytest.mark.parametrize("name", [n for n in dml.__all__ if inspect.isfunction(getattr(dml, n))])
def test_every_parameter_is_documented(name):
    function = getattr(dml, name)
    text = inspect.getdoc(function)
    for parameter in inspect.signature(function).parameters.values():
        if not str(parameter).startswith("*"):  # those are refused, with a hint
            assert f"\n{parameter.name} :" in text, parameter
    assert function.__annotations__


@pytest.mark.parametrize("name", [n for n in dml.__all__ if inspect.isclass(getattr(dml, n))])
def test_every_public_method_is_documented(name):
    for attribute, value in vars(getattr(dml, name)).items():
        if attribute.startswith("_") or not (
            inspect.isfunction(value) or isinstance(value, property)
        ):
            continue
        if attribute in ("check", "reference", "batch") and issubclass(
            getattr(dml, name), dml.Descriptor
        ):
            continue  # documented once, in the base class
        assert inspect.getdoc(value), f"{name}.{attribute}"


def modules():
    for info in pkgutil.walk_packages([str(PACKAGE)], "anydml."):
        if not info.name.rpartition(".")[2].startswith(
            ("_bindings", "_kernels_", "_processor", "__main__")
        ):
            yield info.name


def _with_doctests():
    for name in modules():
        path = PACKAGE.joinpath(*name.split(".")[1:])
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if ">>> " in path.read_text(encoding="utf-8"):
            yield name


@pytest.mark.parametrize("name", list(_with_doctests()))
def test_doctests(name):
    library = name.removeprefix("anydml.").partition(".")[0]
    if library in ("dask", "jax", "onnx", "torch"):
        pytest.importorskip(library)
    module = importlib.import_module(name)
    before = dml.memory_pool().limit
    failed, tried = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried
    assert not failed
    assert dml.memory_pool().limit == before


@pytest.mark.parametrize("name", list(modules()))
def test_modules_are_short_and_say_what_they_are(name):
    path = PACKAGE.joinpath(*name.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 700
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), path


def documented():
    """The strings that document a module, class, function or name, with their places."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            returns = None
            for statement in node.body:
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                    if isinstance(node, ast.FunctionDef) and node.returns:
                        returns = ast.unparse(node.returns)
                    place = f"{path.relative_to(PACKAGE)}:{statement.lineno}"
                    yield place, str(statement.value.value).strip(), returns


def test_docstrings_begin_with_a_noun_or_a_verb():
    """A question, "Whether ..", documents what is a bool."""
    texts = [*documented()]
    assert len(texts) > 2000
    first = re.compile(r"(What|The same|As|Those|Of)\b")
    assert not [one for one in texts if first.match(one[1])]
    questions = [one for one in texts if one[1].startswith("Whether ")]
    assert not [one for one in questions if one[2] not in (None, "bool", "Any")]


@pytest.mark.parametrize("kind", CALCULATING.values(), ids=lambda kind: kind.NAME)
def test_an_operator_that_calculates_is_its_family_s(kind):
    """What it computes, in one line and in one function, in the file of its family."""
    assert inspect.getdoc(kind).splitlines()[0].endswith(".")
    is_named = "FUNCTION" in dir(kind)  # a function of the namespace
    assert is_named or inspect.getsourcefile(kind.compute) == inspect.getsourcefile(kind)


@pytest.mark.parametrize(
    "kind",
    [kind for kind in dict.fromkeys(OPERATORS.values()) if kind not in CALCULATING.values()],
    ids=lambda kind: kind.NAME,
)
def test_an_operator_module_holds_its_whole_operator(kind):
    """Descriptor, name, rules, kernel call and meaning in one file, in that order."""
    tree = ast.parse(Path(inspect.getfile(kind)).read_text(encoding="utf-8"))
    first = next(node for node in tree.body if isinstance(node, ast.ClassDef)
                 and "Descriptor" in {getattr(base, "id", "") for base in node.bases})  # fmt: skip
    members = [
        getattr(node, "name", None)
        or (node.targets[0].id if isinstance(node, ast.Assign) else None)
        for node in first.body
    ]
    facets = ("NAME", "infer", "check", "natural_sizes", "attributes", "compute", "evaluate")
    assert {"NAME", "infer"} <= set(members)
    assert ("compute" in members) != ("evaluate" in members)
    order = [members.index(name) for name in facets if name in members]
    assert order == sorted(order)
    assert "Worked example" in ast.get_docstring(tree)
    assert f"DML_{kind.NAME}_OPERATOR_DESC" in ast.get_docstring(tree) + (kind.__doc__ or "")
