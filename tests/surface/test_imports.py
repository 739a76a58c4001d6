"""Imports go one way, and importing the package loads next to nothing."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import anydml
from anydml._native import built_levels, usable_levels

PACKAGE = Path(anydml.__file__).parent

# From the bottom up: a module imports from its own layer and those below.
LAYERS = [
    {"core"},
    {"engines", "portable"},
    {"ops"},
    {"_native", "_bindings", "_processor", "libraries", "devices.threads", "devices.memory"},
    {"devices.backends"},
    {"devices", "graphs"},
    {"functions", "drawing"},
    {"models", "dask", "jax", "torch"},
    {"onnx"},
    {"documents"},
    {"_command", "_notebooks", "cli", "judge", "pydirectml", "suite", "__main__"},
]
LAYER = {name: layer for layer, names in enumerate(LAYERS) for name in names}


def layer_of(module):
    """The layer of a module, given as its path below the package; None for the package itself."""
    return LAYER.get(".".join(module[:2]), LAYER.get(".".join(module[:1])))


# Variants of other operators, with their fields, sizes or results.
RELATIVES = {
    "gradients": {"slice1"},
    "integer_windows": {"convolution", "pooling"},
    "unpooling": {"pooling"},
}

# Optional or heavy packages, and the only places that may import them.
ONLY_IN = {
    "click": {"cli"},
    "torch": {"torch"},
    "jax": {"devices", "engines", "jax"},
    "dask": {"dask"},
    "distributed": set(),
    "onnx": {"devices", "engines", "onnx"},
    "onnxruntime": {"devices", "onnx"},
    "hypothesis": set(),
    "igraph": {"drawing"},
    "matplotlib": set(),
    "cupy": {"functions"},
    "ml_dtypes": {"libraries", "onnx", "suite"},
    "PIL": {"models", "pydirectml"},
    "scipy": set(),
    "pandas": set(),
}


def sources():
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).with_suffix("").parts
        if module != ("__init__",):
            yield module, ast.parse(path.read_text(encoding="utf-8"))


def is_module(name):
    """Whether a dotted name is a module of this package."""
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


def imported(tree):
    """Dotted names of everything that a module imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []  # for the type checker only
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "anydml":
                for alias in node.names:
                    yield f"anydml.{alias.name}"
            else:
                for alias in node.names:
                    name = f"{node.module}.{alias.name}"
                    yield name if is_module(name) else node.module


@pytest.mark.parametrize(
    ("module", "tree"), list(sources()), ids=lambda v: "/".join(v) if isinstance(v, tuple) else ""
)
def test_imports_go_one_way(module, tree):
    own = layer_of(module)
    assert own is not None, f"{module[0]} belongs to no layer"
    for name in imported(tree):
        parts = name.split(".")
        if parts[0] in ONLY_IN:
            assert module[0] in ONLY_IN[parts[0]], f"{'.'.join(module)} imports {name}"
        if parts[0] != "anydml":
            continue
        target = layer_of(parts[1:])
        if target is None:  # the flat surface itself
            assert own == len(LAYERS) - 1, f"{'.'.join(module)} imports the whole package"
            continue
        if module == ("functions", "_dispatch") and parts[1] in ("torch", "jax", "dask"):
            continue  # the one table of integrations
        assert target <= own, f"{'.'.join(module)} imports {name}"


def test_the_command_knows_no_kinds_of_documents():
    """Who reads, checks, runs, draws and reports on each kind is chosen in `documents`."""
    kinds = {f"anydml.models.{name}" for name in ("check", "model", "report", "run", "showing")}
    kinds |= {f"anydml.onnx.{name}" for name in ("model", "report", "run", "restore")}
    kinds |= {f"anydml.documents.{name}" for name in ("models", "onnx")} | {"anydml.onnx"}
    for module, tree in sources():
        if module[0] == "cli":
            names = {*imported(tree)}
            assert not names & kinds, f"{'.'.join(module)} imports {names & kinds}"


def test_modules_import_each_other_in_no_circle():
    needs = {
        ".".join(("anydml", *module)).removesuffix(".__init__"): {*imported(tree)}
        for module, tree in sources()
    }
    assert len(needs) > 200
    while True:
        needed = {name for module, names in needs.items() for name in names - {module}}
        ends = {m for m, names in needs.items() if m not in needed or not names & needs.keys()}
        if not ends:
            break
        needs = {module: names for module, names in needs.items() if module not in ends}
    assert not needs


def test_operator_modules_know_no_kernel_and_backends_check_nothing():
    seen = set()
    for module, tree in sources():
        seen.add(module[:-1])
        if module[0] == "ops":
            assert not any("backends" in name or "_native" in name for name in imported(tree))
        if module[:2] == ("devices", "backends"):
            names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            assert not names & {"check", "violations"}
            assert "anydml.ops._rules" not in imported(tree)
        if module[0] == "ops" and not module[-1].startswith("_"):
            others = {
                name.split(".")[2]
                for name in imported(tree)
                if name.startswith("anydml.ops.") and not name.split(".")[2].startswith("_")
            }
            # Activations, SOFTMAX and ELEMENT_WISE_CLIP are fused into others.
            known = {module[-1], "enumerations", "activations", "softmax", "elementwise"}
            known |= RELATIVES.get(module[-1], set())
            assert others - {"_registry"} <= known, "a definition knows no other one"
    assert {("ops",), ("devices", "backends")} <= seen


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def test_jax_dask_and_cupy_are_used_by_their_public_interfaces():
    """A private attribute of another library may go or change in any of its versions."""
    found, seen = [], set()
    for module, tree in sources():
        if module[0] not in ("jax", "dask") and module[-1] != "_cupy":
            continue
        seen.add(module)
        foreign = [name for name in imported(tree) if not name.startswith("anydml.")]
        found += [name for name in foreign if any(map(is_private, name.split(".")))]
        found += [
            f"{'.'.join(module)}:{node.lineno} reads .{node.attr}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and is_private(node.attr)
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
        ]
    assert {module[0] for module in seen} == {"jax", "dask", "functions", "libraries"}
    assert not found


LIGHT = """
import sys, json
before = set(sys.modules)
import anydml
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


def run(script, arguments=(), **environment):
    import os

    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, **environment}, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_loads_nothing_heavy():
    loaded = set(json.loads(run(LIGHT)))
    assert "anydml" in loaded
    heavy = {*ONLY_IN, "asyncio", "unittest", "multiprocessing", "concurrent", "urllib", "jaxlib"}
    # NumPy itself may load some of the standard library's.
    numpy_alone = set(json.loads(run(LIGHT.replace("import anydml", "import numpy"))))
    assert not loaded & heavy - numpy_alone
    foreign = loaded - numpy_alone - set(sys.stdlib_module_names) - {"anydml"}
    assert not foreign, foreign


def test_using_the_package_imports_no_array_library():
    script = """
import sys, numpy as np, anydml as dml
x = np.arange(6.0).reshape(2, 3)
v, i = dml.top_k(x, 2); dml.nonzero_coordinates([1, 0]); dml.split(x, 3, axis=1)
dml.gather_elements(x, i, axis=1); dml.scatter_nd(x, [[0, 0]], [1.0])
class Producer:
    def __dlpack__(self, **options): return x.__dlpack__(**options)
    def __dlpack_device__(self): return x.__dlpack_device__()
dml.top_k(Producer(), 1)
d = dml.TensorDesc("FLOAT32", (2,))
dml.Device().create_operator(dml.Split(input_tensor=d, output_tensors=[d], axis=0)).compile()
print([n for n in ("torch", "jax", "onnx", "cupy", "click", "rich", "json5") if n in sys.modules])
"""
    assert run(script).strip() == "[]"


@pytest.mark.parametrize("name", ["torch", "jax", "dask", "pydirectml"])
def test_an_integration_is_loaded_when_it_is_used(name):
    if name != "pydirectml":
        pytest.importorskip(name)
    script = f"""
import sys, anydml
assert "anydml.{name}" not in sys.modules
print(anydml.{name}.__name__)
"""
    assert run(script).strip() == f"anydml.{name}"


@pytest.mark.parametrize("forced", ["v2", "v3", "v4"])
def test_instruction_set_by_environment(forced):
    if forced not in usable_levels():
        pytest.skip(f"{forced} is not built, or not for this processor")
    script = """
import anydml._native as n, pathlib
maps = pathlib.Path("/proc/self/maps").read_text()
print(n.LEVEL, [level for level in n.LEVELS if n.kernels_path(level) in maps])
"""
    assert run(script, ANYDML_INSTRUCTION_SET=forced).strip() == f"{forced} ['{forced}']"


LESSER_PROCESSOR = """
import sys, types
sys.modules["anydml._processor"] = types.SimpleNamespace(levels=lambda: ())
try:
    import anydml
except ImportError as error:
    print(error)
"""


def test_a_processor_below_all_that_is_built():
    message = run(LESSER_PROCESSOR)
    assert message.startswith(f"anydml: expected a processor that runs {built_levels()[0]}")
    assert "ANYDML_LEVELS=all" in message


def test_instruction_set_that_is_none():
    with pytest.raises(AssertionError, match="expected one of"):
        run("import anydml", ANYDML_INSTRUCTION_SET="v99")


def test_tests_import_the_modules_that_they_patch():
    """A name in a string is missed when its module is renamed."""
    for path in Path(__file__).parents[1].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in (
                "setattr",
                "patch",
            ):
                first = node.args[0]
                assert not (isinstance(first, ast.Constant) and "anydml" in first.value), path
