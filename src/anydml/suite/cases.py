"""Cases of the suite: valid descriptors with exact results, broken ones, and graphs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from anydml.core.dtypes import DataType
from anydml.core.errors import ModelError, Violation
from anydml.core.levels import LATEST, FeatureLevel
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import EXACT, Unit
from anydml.devices.device import Device
from anydml.engines._numpy import NumpyEngine
from anydml.graphs.build import Expression, GraphBuilder
from anydml.models.write import dxdispatch_model
from anydml.ops import _fields as kinds
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role
from anydml.ops._registry import from_json
from anydml.ops.activations import ActivationRelu
from anydml.suite.breakages import breakages, other_values
from anydml.suite.choices import Choices, Seeded
from anydml.suite.contents import Flavour, contents, indices
from anydml.suite.descriptors import descriptor
from anydml.suite.expected import by_reference, exact
from anydml.suite.webnn import webnn_bound

Array = np.ndarray[Any, np.dtype[Any]]

ACCEPTED: Final = 9
"""Accepted cases of an operator, without those of observed deviations."""
REFUSED: Final = 14
"""Refused cases of an operator, if it has not more codes."""
GRAPHS: Final = 36
_OBSERVED: Final = 2
_ELEMENTS: Final = 200
_LARGEST_BUFFER: Final = 1 << 12


@dataclass(frozen=True)
class Draft:
    """A case on its way to files.

    Attributes
    ----------
    name : str
        Folder and name, as ``TOP_K1/accepted-00``.
    record : dict
        Its record in the index.
    document : dict
        The model.
    arrays : dict of str to array
        Files next to the model, by their names without suffix.
    """

    name: str
    record: dict[str, Any]
    document: dict[str, Any]
    arrays: dict[str, Array]


def operator_cases(kind: type[Descriptor], level: FeatureLevel, seed: int) -> Iterator[Draft]:
    """The cases of an operator."""
    choose = Seeded("suite", seed, kind.NAME)
    is_known = kind.SUPPORT[0].level <= level
    options: dict[str, Any] = {"level": level if is_known else LATEST, "maximum": _ELEMENTS}
    count = ACCEPTED if is_known else 0
    accepted = [_simplified(descriptor(choose, kind, **options)) for _ in range(count)]
    sources = [descriptor(choose, kind, packed=True, **options) for _ in range(2)]
    refused, observed = _broken(sources, level, choose)
    accepted += observed[:_OBSERVED]
    for i, desc in enumerate(accepted):
        if all(tensor.data_type.bits >= 8 for _, tensor, _ in desc.tensors()):
            yield _accepted(f"{kind.NAME}/accepted-{i:02}", desc, level, choose)
    for i, (desc, at, violations) in enumerate(refused):
        yield _refused(f"{kind.NAME}/refused-{i:02}", desc, at, violations)


# ---- accepted -----------------------------------------------------------------------------------


def _simplified(desc: Any) -> Any:
    """The descriptor with a fused activation and a scale that add no error of their own."""
    names = {info.attribute for info in desc.fields()}
    changes: dict[str, Any] = {}
    if "fused_activation" in names and desc.fused_activation is not None:
        changes["fused_activation"] = ActivationRelu()
    if "scale_bias" in names and desc.scale_bias is not None:
        is_float = desc.input_tensor.data_type.numpy.kind == "f"
        changes["scale_bias"] = (-1.0, 0.0) if is_float else None
    return dataclasses.replace(desc, **changes)


def _accepted(name: str, desc: Any, level: FeatureLevel, choose: Choices) -> Draft:
    inputs, arrays = dict[str, Array](), dict[str, Array]()
    for i, (path, tensor, info) in enumerate(desc.tensors(Role.INPUT)):
        generator = np.random.default_rng([choose.below(2**32), i])
        values = _values(desc, info.name, tensor, generator, choose)
        flat = np.zeros(_buffer_length(tensor), values.dtype)
        inputs[path] = view(tensor.sizes, tensor.element_strides, flat)
        inputs[path][...] = values
        arrays[_file(path)] = flat
    outputs = {}
    results = _results(desc, inputs)
    for path, tensor, info in desc.tensors(Role.OUTPUT):
        result, magnitude = results[path]
        record = {
            "dataType": tensor.data_type.name, "sizes": tensor.sizes,
            "strides": tensor.element_strides,
        }  # fmt: skip
        if info.name == "OutputCoordinatesTensor":  # rows above the count are unspecified
            record["elements"] = int(results["OutputCountTensor"][0].item()) * tensor.sizes[-1]
        arrays[f"{_file(path)}.expected"] = result
        if magnitude is not None and not np.array_equal(magnitude, np.abs(result), equal_nan=True):
            arrays[f"{_file(path)}.magnitude"] = magnitude
        outputs[path] = record
    deviations = desc.deviations(level)
    record = {
        "operator": desc.NAME, "level": level.suffix, "verdict": "accepted",
        "source": "observed" if deviations else "page",
        "since": (desc.minimum_level() or level).suffix,
        "tolerance": {"unit": desc.TOLERANCE.unit.value, "count": desc.TOLERANCE.count},
        "webnn": webnn_bound(desc), "outputs": outputs,
        **({"evidence": deviations[0].evidence} if deviations else {}),
    }  # fmt: skip
    prefix = name.rpartition("/")[2]
    sources = {
        path: {"sourcePath": f"{prefix}.{_file(path)}.npy"}
        for path, _, _ in desc.tensors(Role.INPUT)
    }
    return Draft(name, record, _model(desc, sources, [*outputs]), arrays)


def view(sizes: Sequence[int], strides: Sequence[int], flat: Array) -> Array:
    """The elements of a tensor in a buffer."""
    return np.ndarray(sizes, flat.dtype, flat, 0, [stride * flat.itemsize for stride in strides])


def _buffer_length(tensor: TensorDesc) -> int:
    return -(-tensor.total_tensor_size_in_bytes // tensor.data_type.element_size)


def _values(
    desc: Any, name: str, tensor: TensorDesc, generator: np.random.Generator, choose: Choices
) -> Array:
    """Hard values for what is moved, and plain ones for what is computed within a tolerance."""
    dtype, sizes = tensor.data_type.numpy, tensor.sizes
    if not isinstance(desc, Computed):
        if name == "IndicesTensor":
            checked = desc.lower().calls[0].indices
            limits = (5,) if checked is None else checked.sizes
            return indices(generator, sizes, limits if len(limits) > 1 else limits[0], dtype)
        return contents(generator, sizes, dtype, choose.among([*Flavour]))
    if dtype.kind != "f":
        low = -3 if dtype.kind == "i" and choose.chance(128) else 0
        return generator.integers(low, 4, sizes).astype(dtype)
    values = generator.integers(-256, 257, sizes) / 64  # exact in FLOAT16
    if desc.TOLERANCE is EXACT and choose.chance(60):
        values = generator.choice([0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 65504.0], sizes)
    return values.astype(dtype)


def _results(desc: Any, inputs: Mapping[str, Array]) -> dict[str, tuple[Array, Array | None]]:
    """Exact results by path, in FLOAT64 where they have a tolerance; then with their magnitudes."""
    paths = [path for path, _, _ in desc.tensors(Role.OUTPUT)]
    if not isinstance(desc, Computed):
        bound = {
            info.name: [inputs[path] for path, _ in desc.paths(info)]
            if info.many
            else inputs[info.name]
            for info in desc.bind_points(Role.INPUT)
        }
        found = by_reference(desc, bound).values()
        flat = [item for value in found for item in (value if isinstance(value, list) else [value])]
        return {path: (array, None) for path, array in zip(paths, flat, strict=True)}
    arrays = [*inputs.values()]
    scaled, fused = (getattr(desc, name, None) for name in ("scale_bias", "fused_activation"))
    if scaled is not None:
        scale, bias = map(arrays[0].dtype.type, scaled)
        arrays[0] = arrays[0] * scale + bias
    engine, results = NumpyEngine(), dict[str, tuple[Array, Array | None]]()
    outputs = desc.tensors(Role.OUTPUT)
    for (path, tensor, _), wide, magnitude in zip(outputs, *exact(desc, arrays), strict=True):
        dtype, result = tensor.data_type.numpy, wide
        if fused is not None and path == paths[0]:
            result = type(fused).compute(engine, wide, **fused.attributes())
        if desc.TOLERANCE.unit is Unit.BITS or dtype.kind != "f":
            results[path] = engine.cast(result, dtype), None
        else:
            results[path] = result.astype(np.float64), magnitude.astype(np.float64)
    return results


# ---- refused ------------------------------------------------------------------------------------

Refusal = tuple[Any, FeatureLevel, list[Violation]]


def _broken(
    sources: Sequence[Any], level: FeatureLevel, choose: Choices
) -> tuple[list[Refusal], list[Any]]:
    """Broken descriptors, at least one for each code; and those that DirectML accepts."""
    found, observed = list[Refusal](), dict[str, Any]()
    if sources[0].SUPPORT[0].level > level:
        return [(sources[0], level, sources[0].violations(level))], []
    for other, at in candidates(sources, level):
        violations = other.violations(at)
        if not is_expressible(other, violations):
            continue
        if violations:
            found.append((other, at, violations))
        elif at is level and (deviations := other.deviations(at)):
            observed.setdefault(deviations[0].accepted, other)
    chosen: dict[str, Refusal] = {}
    ordered = sorted(choose.shuffled(found), key=lambda item: len(item[2]))
    for other, at, violations in ordered:
        for violation in violations:  # the one that the case is for comes first
            rest = [item for item in violations if item is not violation]
            chosen.setdefault(violation.code, (other, at, [violation, *rest]))
    used = {id(item[0]) for item in chosen.values()}
    left = [item for item in ordered if len(item[2]) == 1 and id(item[0]) not in used]
    more = choose.shuffled(left)[: max(0, REFUSED - len(chosen))]
    return [*chosen.values(), *more], [item for item in observed.values() if _is_small(item)]


def _is_small(desc: Any) -> bool:
    return all(tensor.element_count <= 2 * _ELEMENTS for _, tensor, _ in desc.tensors())


def candidates(sources: Sequence[Any], level: FeatureLevel) -> Iterator[tuple[Any, FeatureLevel]]:
    """Changed descriptors, most of which break rules, and the levels at which they do."""
    for broken in breakages(sources[0]):
        yield broken.desc, level if broken.level is LATEST else min(broken.level, level)
    for desc in sources:
        for other in (*other_values(desc), *_longer(desc)):
            yield other, level


def _longer(desc: Any) -> Iterator[Any]:
    """The descriptor with a longer array, its count, and the other arrays of that length."""
    arrays = {
        info.attribute: getattr(desc, info.attribute)
        for info in desc.fields()
        if isinstance(info.kind, kinds.IntegersKind | kinds.FloatsKind)
        and getattr(desc, info.attribute)
    }
    for info in desc.fields():
        if info.counts in arrays:
            count = len(arrays[info.counts])
            changed = {n: (*a, a[-1]) for n, a in arrays.items() if len(a) == count}
            yield dataclasses.replace(desc, **changed, **{info.attribute: count + 1})


def is_expressible(desc: Any, violations: Sequence[Violation]) -> bool:
    """Whether the structures of the API can hold the descriptor; arrays have counts alone."""
    counts = {info.counts: getattr(desc, info.attribute) for info in desc.fields() if info.counts}
    if any(count != desc._length(counted) for counted, count in counts.items()):
        return False
    for violation in violations:
        is_length = "length" in (violation.accepted or ())
        if is_length and (violation.path.count(".") > 1 or violation.got not in counts.values()):
            return False
    record = desc.to_json()
    try:
        return bool(from_json(record).to_json() == record)
    except ModelError:
        return False


def _refused(name: str, desc: Any, level: FeatureLevel, violations: list[Violation]) -> Draft:
    first = violations[0]
    since = next(
        at for at in FeatureLevel
        if at >= min(desc.SUPPORT[0].level, level)
        and any(first.code == item.code for item in desc.violations(at))
    )  # fmt: skip
    record = {
        "operator": desc.NAME, "level": level.suffix, "verdict": "refused", "source": "page",
        "since": since.suffix, "code": first.code, "path": first.path, "rule": first.rule,
        "violations": [[item.path, item.code] for item in violations],
    }  # fmt: skip
    return Draft(name, record, _model(desc, {}, []), {})


# ---- models -------------------------------------------------------------------------------------


def _model(desc: Any, sources: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, Any]:
    """The model that dispatches an operator and writes its outputs; other resources are 0s."""
    resources, bindings = {}, {}
    for info in desc.bind_points():
        names = []
        for path, tensor in desc.paths(info):
            data_type = tensor.data_type if tensor.data_type.bits >= 8 else DataType.UINT8
            count = -(-tensor.total_tensor_size_in_bytes // data_type.element_size)
            zeros = {"value": 0, "valueCount": min(max(count, 1), _LARGEST_BUFFER)}
            values = sources.get(path, zeros)
            resources[path] = {
                "initialValuesDataType": data_type.name, "initialValues": values,
            }  # fmt: skip
            names.append(path)
        bindings[info.name] = names if info.many else names[0]
    dispatch = {"type": "dispatch", "dispatchable": "operator", "bindings": bindings}
    return {
        "resources": resources,
        "dispatchables": {"operator": desc.to_json()},
        "commands": [dispatch, *map(_write_file, outputs)],
    }


def _write_file(resource: str) -> dict[str, Any]:
    return {"type": "writeFile", "resource": resource, "targetPath": f"{_file(resource)}.npy"}


def _file(path: str) -> str:
    return path.replace("[", "_").replace("]", "")


# ---- graphs -------------------------------------------------------------------------------------


def graph_case(number: int, level: FeatureLevel, seed: int) -> Draft:
    """A chain of operators with exact results, each reading what earlier ones have written."""
    choose = Seeded("graph", seed, number)
    data_type = choose.among((DataType.FLOAT32, DataType.INT32))
    sizes = (1, choose.between(1, 3), choose.between(1, 4), choose.between(2, 6))
    graph = GraphBuilder()
    x = graph.input("x", TensorDesc(data_type, sizes))
    values = [x]
    for _ in range(choose.between(2, 6)):
        values.append(_step(graph, choose, values))
        if values[-1].desc.element_count > _ELEMENTS:
            break
    desc = graph.build(y=values[-1])
    generator = np.random.default_rng([seed, number])
    array = generator.integers(-9, 10, sizes).astype(data_type.numpy)
    (result,) = Device("reference").compile_graph(desc)(x=array).values()
    prefix = f"graph-{number:02}"
    document, _ = dxdispatch_model(desc, {"x": f"{prefix}.x.npy"})
    commands = [item for item in document["commands"] if item["type"] == "dispatch"]
    document["commands"] = [*commands, _write_file("y")]
    tensor = values[-1].desc
    since = Device("cpu").minimum_feature_level(desc) or level
    record = {
        "operator": "graph", "level": max(level, since).suffix, "verdict": "accepted",
        "source": "page", "since": since.suffix, "webnn": {"ulp": [0, 0]},
        "tolerance": {"unit": "bits", "count": 0},
        "outputs": {"y": {"dataType": tensor.data_type.name, "sizes": tensor.sizes,
                          "strides": tensor.element_strides}},
    }  # fmt: skip
    return Draft(f"graph/{prefix}", record, document, {"x": array, "y.expected": result})


def _step(graph: GraphBuilder, choose: Choices, values: Sequence[Expression]) -> Expression:
    """One more operator on the last value, and perhaps on an earlier one of its sizes."""
    x = values[-1]
    others = [value for value in values if value.desc.sizes == x.desc.sizes]
    axis = choose.below(x.desc.dimension_count)
    size = x.desc.sizes[axis]
    half = [-(-n // 2) if i == axis else n for i, n in enumerate(x.desc.sizes)]
    steps: dict[str, Any] = {
        "add": lambda: graph.add(x, choose.among(others)),
        "max": lambda: graph.max(x, choose.among(others)),
        "abs": lambda: graph.abs(x),
        "reduce": lambda: graph.reduce(x, function="MAX", axes=(axis,)),
        "tile": lambda: graph.tile(x, repeats=[1 + (i == axis) for i in range(4)]),
        "join": lambda: graph.join([x, choose.among(others)], axis=axis),
        "slice": lambda: graph.slice1(
            x, input_window_offsets=(0,) * 4, input_window_sizes=half,
            input_window_strides=(1,) * 4, output_sizes=half,
        ),
        "top_k": lambda: graph.top_k1(
            x, axis=axis, k=choose.between(1, size), axis_direction="DECREASING"
        )[0],
        "sum": lambda: graph.cumulative_summation(
            x, axis=axis, axis_direction="INCREASING", has_exclusive_sum=False
        ),
    }  # fmt: skip
    found: Expression = steps[choose.among([*steps])]()
    return found
