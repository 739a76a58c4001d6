"""Several errors in one descriptor: each violation that one of them causes alone is reported.

Unless its rule reads what another error changed: then nothing is known of it.
"""

import dataclasses
import itertools
import re

import pytest

import anydml as dml
from anydml import TensorDesc
from anydml.core.problems import members
from anydml.ops import _fields as kinds
from anydml.ops._descriptor import page_name
from anydml.ops._fields import Role
from anydml.ops._registry import OPERATORS
from anydml.suite.breakages import breakages, other_values
from anydml.suite.choices import Seeded
from anydml.suite.descriptors import descriptor

KINDS = list(dict.fromkeys(OPERATORS.values()))
CPU = dml.Device("cpu")
PARTS = {
    "DataType": "data_type", "Sizes": "sizes", "DimensionCount": "rank", "Strides": "strides",
    "Flags": "flags", "TotalTensorSizeInBytes": "total_tensor_size_in_bytes",
    "GuaranteedBaseOffsetAlignment": "guaranteed_base_offset_alignment",
}  # fmt: skip
MENTIONED = re.compile(r"\b([A-Z]\w*)(?:\[\d+\])?(?:\.([A-Z]\w+))?(?:\[-?\d+\])?")
ALONE = re.compile(
    r"\(U?INT\)|\(FLOAT\)|2\^32|multiple of 4 below|power of two|at feature level|only inp"
)


def parts_of(tensor):
    """The arguments that make a tensor; those that follow from others are left out."""
    parts = {name: getattr(tensor, name) for name in ("data_type", "sizes", "strides", "flags")}
    parts["guaranteed_base_offset_alignment"] = tensor.guaranteed_base_offset_alignment
    total = tensor.total_tensor_size_in_bytes
    if total != tensor.minimum_size_in_bytes:
        parts["total_tensor_size_in_bytes"] = total
    return parts


def changes_of(desc, broken):
    """The parts that differ: of tensors by their field, number and part; of attributes whole."""
    found = {}
    for info in desc.fields():
        old, new = getattr(desc, info.attribute), getattr(broken, info.attribute)
        if old == new or (info.counts is not None and new == len(getattr(broken, info.counts))):
            continue
        if info.role is Role.ATTRIBUTE or old is None or new is None:
            found[info.name, None, None] = new
            continue
        pairs = zip(old, new, strict=True) if info.many else [(old, new)]
        for i, (one, other) in enumerate(pairs):
            before, after = parts_of(one), parts_of(other)
            for part, value in after.items():
                if before.get(part) != value:
                    found[info.name, i, part] = value
    return found


def changed(desc, changes):
    """The descriptor with these parts."""
    fields = {}
    for info in desc.fields():
        own = {key[1:]: value for key, value in changes.items() if key[0] == info.name}
        if (None, None) in own:
            fields[info.attribute] = own[None, None]
        elif own:
            value = getattr(desc, info.attribute)
            tensors = []
            for i, tensor in enumerate(value if info.many else [value]):
                parts = {part: new for (at, part), new in own.items() if at == i}
                tensors.append(TensorDesc(**{**parts_of(tensor), **parts}))
            fields[info.attribute] = tensors if info.many else tensors[0]
    return dataclasses.replace(desc, **fields)


def written(changes, desc):
    """What the changes change, as `reads` has it."""
    sizes = {info.name: info for info in desc.fields()}
    found = set()
    for name, _, part in changes:
        found.add((name, part))
        if part == "sizes" and len(changes[name, _, part]) != rank_of(desc, sizes[name], _):
            found.add((name, "rank"))
        if part == "data_type":  # the size in bytes follows
            found.add((name, "total_tensor_size_in_bytes"))
    return found


def rank_of(desc, info, i):
    value = getattr(desc, info.attribute)
    return (value[i] if info.many else value).dimension_count


def reads(desc, violation):
    """What the rule of a violation may read, by its path and its message."""
    infos = {info.name: info for info in desc.fields()}
    location = members(violation.path.partition(".")[2])
    name = location[0]
    part = next((PARTS[item] for item in location[1:] if item in PARTS), None)
    tensors = [info for info in infos.values() if info.role is not Role.ATTRIBUTE]
    attributes = {(info.name, None) for info in infos.values() if info.role is Role.ATTRIBUTE}
    enums = {(n, None) for n, _ in attributes if isinstance(infos[n].kind, kinds.EnumerationKind)}
    own = {(name, part), (name, None)}
    if part in ("strides", "flags", *[p for p in PARTS.values() if "_in_" in p or "_off" in p]):
        return own | {(name, other) for other in PARTS.values()}
    if part == "sizes":
        own.add((name, "rank"))
    if ALONE.search(violation.rule):
        return own | ({(name, "rank")} if part == "sizes" else enums)
    counted = infos[name].counts
    own |= {(page_name(counted), None)} if counted else set()
    if part == "data_type" or ".DataType)" in violation.rule:
        mentioned = {n for n, _ in MENTIONED.findall(violation.rule) if n in infos}
        chosen = "dtype" in desc.attributes()  # the type of an output is an attribute
        inputs = {info.name for info in tensors if chosen or info.role is Role.INPUT}
        types = {(n, "data_type") for n in mentioned or inputs}
        return own | types | enums | {(n, None) for n in inputs}
    ranks = {(info.name, "rank") for info in tensors} | {(info.name, None) for info in tensors}
    if part == "rank" and "imply" not in violation.rule:
        return own | ranks
    if part is None and violation.rule.endswith(tuple(f" {n}" for n in range(10))):
        return own  # a limit, without a reason
    if re.search(r"DimensionCount( - \d)?\)|DimensionCount is", violation.rule):
        return own | ranks
    return own | ranks | attributes | {(info.name, "sizes") for info in tensors}


def lost(kind, seed, combinations):
    """Violations that a combination of errors hides."""
    desc = descriptor(Seeded(seed), kind, packed=True)
    choose = Seeded(seed, "errors")
    broken = [item.desc for item in breakages(desc) if item.level == CPU.feature_level]
    single = []
    for other in (*choose.shuffled(broken)[:30], *choose.shuffled([*other_values(desc)])[:40]):
        found = changes_of(desc, other)
        violations = CPU.check(changed(desc, found)) if found else []
        if violations:
            single.append((found, violations))
    for _ in range(combinations if single else 0):
        chosen = choose.shuffled(single)[: choose.between(2, 4)]
        keys = [{(name, i, part) for name, i, part in found} for found, _ in chosen]
        wholes = [{name for name, _, part in found if part is None} for found, _ in chosen]
        names = [{name for name, _, _ in found} for found, _ in chosen]
        if any(a & b for a, b in itertools.combinations(keys, 2)) or any(
            wholes[i] & names[j] for i, j in itertools.permutations(range(len(chosen)), 2)
        ):
            continue
        together = changed(desc, {k: v for found, _ in chosen for k, v in found.items()})
        reported = {(item.path, item.rule) for item in CPU.check(together)}
        for i, (_, violations) in enumerate(chosen):
            others = [written(found, desc) for j, (found, _) in enumerate(chosen) if j != i]
            for item in violations:
                if (item.path, item.rule) not in reported and not reads(desc, item) & set().union(
                    *others
                ):
                    yield item, together, reported


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_no_violation_is_hidden(kind):
    for hidden, desc, reported in lost(kind, 1, 12):
        raise AssertionError(f"{hidden} is hidden in {desc}, which reports {reported}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_no_violation_is_hidden_in_many_descriptors(kind):
    for seed in range(2, 12):
        for hidden, desc, reported in lost(kind, seed, 60):
            raise AssertionError(f"{hidden} is hidden in {desc}, which reports {reported}")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_a_field_that_cannot_be_read_hides_no_violation(kind):
    desc = descriptor(Seeded(1), kind, packed=True)
    choose = Seeded(1, "unreadable")
    for other in choose.shuffled([*other_values(desc)])[:8]:
        violations = CPU.check(other)
        for info in choose.shuffled(list(desc.fields()))[:3]:
            record = other.to_json()
            if info.name not in record:
                continue
            record[info.name] = {"?": 1}
            with pytest.raises(dml.ModelError) as error:
                dml.from_json(record)
            changed_parts = {(info.name, part) for part in (None, "rank", *PARTS.values())}
            for item in violations:
                if not reads(desc, item) & changed_parts:
                    assert str(item) in error.value.problems, (info.name, record)


T = TensorDesc
X = T("FLOAT32", (3, 4))


def paths(desc):
    return {item.path.partition(".")[2] for item in CPU.check(desc)}


def test_an_axis_and_types_of_a_scatter():
    desc = dml.Scatter(
        input_tensor=X, indices_tensor=T("UINT32", (2, 4)), updates_tensor=T("INT8", (2, 4)),
        output_tensor=T("INT16", (3, 4)), axis=9,
    )  # fmt: skip
    assert paths(desc) == {"Axis", "UpdatesTensor.DataType", "OutputTensor.DataType"}


def test_strides_beside_a_type_of_a_pooling():
    desc = dml.AveragePooling(
        input_tensor=T("INT8", (1, 1, 4, 4)), output_tensor=T("FLOAT32", (1, 1, 4, 4)),
        strides=(0, 1), window_size=(1, 1), start_padding=(0, 0), end_padding=(0, 0),
        include_padding=False,
    )  # fmt: skip
    assert paths(desc) == {"InputTensor.DataType", "Strides[0]"}


def test_a_block_size_beside_a_type():
    x, y = T("INT4", (1, 4, 2, 2)), T("FLOAT32", (1, 4, 2, 2))
    desc = dml.DepthToSpace(input_tensor=x, output_tensor=y, block_size=0)
    assert paths(desc) == {"InputTensor.DataType", "BlockSize"}


def test_repeated_axes_beside_a_type():
    desc = dml.ActivationSoftmax1(input_tensor=T("INT8", (3, 4)), output_tensor=X, axes=(1, 1))
    assert paths(desc) == {"InputTensor.DataType", "Axes[1]"}


def test_the_tensor_of_another_rank_is_reported():
    """Of a filter, a bias and an output of rank 4 and an input of rank 3: the input."""
    four = T("FLOAT32", (1, 1, 1, 1))
    arrays = {"strides": (1, 1), "dilations": (1, 1), "start_padding": (0, 0)}
    desc = dml.Convolution(
        input_tensor=T("FLOAT32", (1, 1, 1)), filter_tensor=four, output_tensor=four,
        mode="CROSS_CORRELATION", direction="FORWARD", end_padding=(0, 0), output_padding=(0, 0),
        group_count=1, bias_tensor=T("FLOAT32", (1,)), **arrays,
    )  # fmt: skip
    assert [str(item) for item in CPU.check(desc)] == [
        "CONVOLUTION.InputTensor.DimensionCount: expected 4 (FilterTensor.DimensionCount), got 3",
        "CONVOLUTION.BiasTensor.DimensionCount: expected 4 (FilterTensor.DimensionCount), got 1",
    ]


@pytest.mark.parametrize(("count", "reported"), [(2, []), (3, [3]), (1, [1])])
def test_the_rank_decides_how_long_arrays_are(count, reported):
    x = T("FLOAT32", (1, 1, 4, 4))
    desc = dml.AveragePooling(
        input_tensor=x, output_tensor=x, dimension_count=count, strides=(1,), window_size=(1, 1),
        start_padding=(0, 0), end_padding=(0, 0), include_padding=False,
    )  # fmt: skip
    why = "2 values (InputTensor.DimensionCount - 2)"
    assert [str(item).partition(".")[2] for item in CPU.check(desc)] == [
        f"Strides: expected {why}, got 1",
        *(
            f"DimensionCount: expected 2 (InputTensor.DimensionCount - 2), got {n}"
            for n in reported
        ),
    ]


def test_a_transposed_matrix_is_the_reason_for_the_sizes_of_the_output():
    x, y = T("FLOAT32", (3, 1)), T("FLOAT32", (3, 2))
    desc = dml.Gemm(
        a_tensor=x, b_tensor=T("FLOAT32", (3, 2)), c_tensor=y, output_tensor=y,
        trans_a="TRANSPOSE", trans_b="NONE", alpha=1, beta=1,
    )  # fmt: skip
    assert [str(item) for item in CPU.check(desc)] == [
        "GEMM.OutputTensor.Sizes[0]: expected 1 (ATensor.Sizes[1], because TransA is TRANSPOSE), "
        "got 3"
    ]
