"""The changes that `anydml check` suggests for broken rules, and `--fix`, which makes some."""

import json
import time
from itertools import cycle, islice

import numpy as np
import pytest
from model_files import gather

import anydml as dml
from anydml.cli.command import main
from anydml.core.levels import LATEST, FeatureLevel
from anydml.models.repairs import applied, repairs
from anydml.ops._examples import examples_of
from anydml.ops._fields import AxisKind, Role
from anydml.ops._registry import OPERATORS, from_json, page_of
from anydml.suite.breakages import breakages
from support.made import shared

KINDS = sorted(set(OPERATORS.values()), key=lambda kind: kind.NAME)


def check(capsys, path, *options):
    status = main(["check", str(path), *options])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


# ---- forty broken models -------------------------------------------------------------------------


def first_output(desc):
    return next((path, tensor) for path, tensor, info in desc.tensors(Role.OUTPUT))


def another_type(desc, document):
    """An output of INT64 where that is not accepted, or of FLOAT64."""
    path, tensor = first_output(desc)
    accepted = {t for row in desc.SUPPORT for t in row.tensors[path.partition("[")[0]].data_types}
    wanted = "FLOAT64" if tensor.data_type.name.startswith("FLOAT") else "INT64"
    if tensor.data_type.name == wanted or dml.DataType.parse(wanted) in accepted:
        return None
    return {**holder(document, path), "DataType": wanted}


def one_more_dimension(desc, document):
    path, tensor = first_output(desc)
    return {**holder(document, path), "Sizes": [1, *tensor.sizes]}


def larger_output(desc, document):
    path, tensor = first_output(desc)
    return {**holder(document, path), "Sizes": [*tensor.sizes[:-1], tensor.sizes[-1] + 1]}


def stride_too_few(desc, document):
    path, tensor = first_output(desc)
    return {**holder(document, path), "Strides": [1] * (tensor.dimension_count - 1)}


def too_small(desc, document):
    path, tensor = first_output(desc)
    total = tensor.minimum_size_in_bytes
    return {**holder(document, path), "TotalTensorSizeInBytes": total - 4} if total > 4 else None


def badly_aligned(desc, document):
    path, _ = first_output(desc)
    return {**holder(document, path), "GuaranteedBaseOffsetAlignment": 3}


TENSORS = (another_type, one_more_dimension, larger_output, stride_too_few, too_small,
           badly_aligned)  # fmt: skip


def wrong_count(desc, document):
    info = next((i for i in desc.fields() if i.counts is not None), None)
    return info and {info.name: document[info.name] + 1}


def wrong_axis(desc, document, make):
    info = next((i for i in desc.fields() if isinstance(i.kind, AxisKind)), None)
    tensor = next(tensor for _, tensor, _ in desc.tensors())
    return info and {info.name: make(document[info.name], tensor.dimension_count)}


def negative_axis(desc, document):
    return wrong_axis(desc, document, lambda axis, rank: axis - rank)


def axis_from_one(desc, document):
    return wrong_axis(desc, document, lambda axis, rank: rank if axis == rank - 1 else None)


def input_of_another_size(desc, document):
    """Not repairable: which of two tensors is wrong is not known."""
    inputs = [(path, tensor) for path, tensor, _ in desc.tensors(Role.INPUT)]
    if len(inputs) < 2:
        return None
    path, tensor = inputs[-1]
    return path, {**holder(document, path), "Sizes": [*tensor.sizes[:-1], tensor.sizes[-1] + 3]}


WAYS = (*TENSORS, wrong_count, negative_axis, axis_from_one, input_of_another_size)


def holder(document, path):
    name, _, index = path.partition("[")
    return document[name][int(index[:-1])] if index else document[name]


def put(document, path, tensor):
    name, _, index = path.partition("[")
    if not index:
        return {**document, name: tensor}
    tensors = [*document[name]]
    tensors[int(index[:-1])] = tensor
    return {**document, name: tensors}


def broken_models():
    """Forty examples, each broken in the next way that it can be and that breaks a rule."""
    ways, found = cycle(WAYS), {}
    way = next(ways)
    for kind in KINDS * len(WAYS):
        if len(found) == 40:
            break
        desc = next(iter(examples_of(kind))).desc
        document = desc.to_json()
        for info in desc.fields():
            if info.counts is not None:
                document[info.name] = getattr(desc, info.attribute)
        value = way(desc, document)
        if value is None or None in (value.values() if isinstance(value, dict) else value):
            continue
        if isinstance(value, tuple):
            changed = put(document, *value)
        elif way in TENSORS:
            changed = put(document, first_output(desc)[0], value)
        else:
            changed = {**document, **value}
        key = f"{way.__name__}-{kind.NAME}"
        if key in found or not from_json(changed).violations(LATEST):
            continue
        found[key] = changed, desc
        way = next(ways)
    return found


BROKEN = broken_models()


def suggested(report):
    """The change of every violation, as the JSON report has them."""
    (operator,) = report["dispatchables"]
    return [item["fix"] for item in operator["violations"]]


def test_there_are_forty_broken_models_in_ten_ways():
    assert len(BROKEN) == 40
    assert {name.partition("-")[0] for name in BROKEN} == {way.__name__ for way in WAYS}


def test_suggestions_repair_thirty_of_forty_models_and_none_is_wrong(tmp_path, capsys):
    repaired = []
    for name, (broken, original) in BROKEN.items():
        document = broken
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(document))
        status, out, _ = check(capsys, path, "--json")
        assert status == 1, name
        for fix in filter(None, suggested(json.loads(out)[0])):
            for change in fix:
                document = put_change(document, change["path"], change["value"])
        path.write_text(json.dumps(document))
        if suggested(json.loads(out)[0])[0]:
            assert check(capsys, path)[0] == 0, name
            assert from_json(document) == original, name
            repaired.append(name)
    assert len(repaired) >= 30
    assert not [name for name in repaired if name.startswith("input_of_another_size")]


def put_change(document, path, value):
    """Apply one change by the words of its path alone."""
    *above, last = path.replace("]", "").replace("[", ".").split(".")
    document = json.loads(json.dumps(document))
    at = document
    for part in above:
        at = at[int(part) if isinstance(at, list) else part]
    if value is None:
        at.pop(last, None)
    else:
        at[int(last) if isinstance(at, list) else last] = value
    return document


# ---- every suggestion, for every operator --------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_a_suggestion_leaves_no_new_violation(kind):
    begin = KINDS.index(kind) % 12
    for broken in islice(breakages(shared(kind, packed=True)), begin, None, 12):
        check_suggestions(broken)


def check_suggestions(broken):
    before = {item.path for item in broken.desc.violations(broken.level)}
    for path, changes in repairs(broken.desc, broken.level).items():
        changed = from_json(applied(broken.desc.to_json(), changes))
        after = {item.path for item in changed.violations(broken.level)}
        assert path not in after, (broken.what, changes)
        assert after <= before, (broken.what, changes)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_every_suggestion_leaves_no_new_violation(kind):
    for broken in breakages(shared(kind, packed=True)):
        check_suggestions(broken)


def with_other_dimensions(kind):
    """Examples at levels that want other dimension counts, and what suggestions make of them."""
    for example in examples_of(kind):
        for level in FeatureLevel:
            found = [] if level < kind.SUPPORT[0].level else example.desc.violations(level)
            if not found or not all(item.path.endswith(".DimensionCount") for item in found):
                continue
            for changes in repairs(example.desc, level).values():
                changed = from_json(applied(example.desc.to_json(), changes))
                if not changed.violations(level):
                    yield example, changed


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_other_dimension_counts_compute_the_same(kind):
    for example, changed in with_other_dimensions(kind):
        one, other = (results(desc, example.inputs) for desc in (example.desc, changed))
        for got, array in zip(other, one, strict=True):
            np.testing.assert_array_equal(got.ravel(), array.ravel())


def test_many_operators_get_other_dimension_counts():
    kinds = KINDS[::4]
    assert sum(any(True for _ in with_other_dimensions(kind)) for kind in kinds) > len(kinds) / 3


def results(desc, inputs):
    """The outputs; operands are in the page's order, None where a tensor is left out."""
    paths = {path: tensor.sizes for path, tensor, _ in desc.tensors(Role.INPUT)}
    operands = [None if path is None else inputs[path].reshape(paths[path])
                for path in desc._slots(Role.INPUT)]  # fmt: skip
    found = dml.Device("cpu").create_operator(desc).compile()(*operands)
    return found if isinstance(found, tuple) else (found,)


def test_large_operators_take_bounded_time():
    tensors = [dml.TensorDesc("FLOAT32", (1, 1)) for _ in range(2000)]
    joined = dml.Join(
        input_tensors=tensors, output_tensor=dml.TensorDesc("INT64", (2000, 1)), axis=0
    )
    assert joined.violations(LATEST)
    begin = time.process_time()
    assert repairs(joined, LATEST) == {}
    assert time.process_time() - begin < 2


# ---- the report ----------------------------------------------------------------------------------


def test_the_page_is_shown_once_for_each_operator(tmp_path, capsys):
    top = dml.TopK(
        input_tensor=dml.TensorDesc("FLOAT32", (1, 4)),
        output_value_tensor=dml.TensorDesc("FLOAT32", (1, 2)),
        output_index_tensor=dml.TensorDesc("INT64", (1, 2)),
        axis=2,
        k=2,
    )
    path = tmp_path / "top.json"
    path.write_text(json.dumps(top.to_json()))
    _, out, _ = check(capsys, path)
    page = (
        "https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_top_k_operator_desc"
    )
    assert out.count(page) == 1
    assert "    try: OutputIndexTensor.DataType UINT64\n" in out
    assert "    try: Axis 1\n" in out
    (report,) = json.loads(check(capsys, path, "--json")[1])
    violations = report["dispatchables"][0]["violations"]
    assert [item["page"] for item in violations] == [page, page]
    assert violations[1]["fix"] == [{"path": "Axis", "value": 1}]


def test_every_operator_has_a_page():
    assert all(page_of(f"node.{name}.Axis").endswith("_operator_desc") for name in OPERATORS)
    assert "windows/ai/directml/api" in page_of("MEAN_VARIANCE_NORMALIZATION2.Axes")
    assert page_of("Nodes[1].Name") is None


# ---- --fix ---------------------------------------------------------------------------------------


@pytest.fixture
def fix(tmp_path, capsys):
    """A function that writes a model and fixes it: status, messages and what was written."""

    def call(model, *options, name="fixed.json"):
        path, out = tmp_path / "model.json", tmp_path / name
        path.write_text(json.dumps(model))
        status, _, error = check(capsys, path, "--fix", str(out), *options)
        return status, error, json.loads(out.read_text()) if out.exists() else None

    return call


def test_types_of_indices_change_with_their_resources(fix, tmp_path, capsys):
    status, error, fixed = fix(gather([3, 0, 1]))
    assert status == 0
    assert "Fixed 'g': IndicesTensor.DataType INT32" in error
    assert fixed["dispatchables"]["g"]["desc"]["IndicesTensor"]["DataType"] == "INT32"
    assert fixed["resources"]["i"] == {
        "initialValuesDataType": "INT32",
        "initialValues": [3, 0, 1],
    }
    assert main(["run", str(tmp_path / "fixed.json")]) == 0
    assert capsys.readouterr().out == "Resource 'y': 4, 1, 2\n"


def test_values_that_do_not_fit_keep_the_model(fix):
    status, error, fixed = fix(gather([3, -1]), "--feature-level", "1_0")
    assert status == 1
    assert fixed is None
    assert "nothing is written" in error


def test_a_resource_with_another_use_is_not_retyped(fix):
    other = gather([1, 2])
    other["dispatchables"]["c"] = {
        "type": "DML_OPERATOR_ELEMENT_WISE_IDENTITY",
        "InputTensor": {"DataType": "INT16", "Sizes": [1, 1, 1, 2]},
        "OutputTensor": {"DataType": "INT16", "Sizes": [1, 1, 1, 2]},
    }
    bindings = {"InputTensor": "i", "OutputTensor": "y"}
    other["commands"].append({"type": "dispatch", "dispatchable": "c", "bindings": bindings})
    assert fix(other)[2] is None


def test_indices_in_a_file_are_not_retyped(fix, tmp_path):
    np.save(tmp_path / "i.npy", np.array([1, 2], np.int16))
    model = gather([1, 2])
    model["resources"]["i"] = {"initialValuesDataType": "INT16",
                               "initialValues": {"sourcePath": "i.npy"}}  # fmt: skip
    assert fix(model)[2] is None


@pytest.mark.parametrize(
    ("values", "fits"),
    [({"value": 3, "valueCount": 2}, True), ({"value": -3, "valueCount": 2}, False),
     ({"valueStart": 0, "valueDelta": 1, "valueCount": 2}, True),
     ({"valueStart": 1, "valueDelta": -2, "valueCount": 2}, False), ([1.5, 2], False)],
)  # fmt: skip
def test_other_forms_of_values(fix, values, fits):
    model = gather([1, 2])
    model["resources"]["i"]["initialValues"] = values
    assert (fix(model, "--feature-level", "1_0")[2] is not None) is fits


def test_layouts_counts_and_dimensions_change(fix):
    model = gather([1, 2], "UINT32", Strides=[1], TotalTensorSizeInBytes=2)
    model["dispatchables"]["g"]["desc"]["OutputTensor"]["Sizes"] = [1, 1, 1, 1, 2]
    status, error, fixed = fix(model)
    assert status == 0
    desc = fixed["dispatchables"]["g"]["desc"]
    assert desc["IndicesTensor"] == {"DataType": "UINT32", "Sizes": [1, 1, 1, 2]}
    assert desc["OutputTensor"]["Sizes"] == [1, 1, 1, 2]
    assert "IndicesTensor.Strides left out" in error


def test_what_is_computed_is_not_changed(fix):
    model = gather([1, 2], "UINT32")
    model["dispatchables"]["g"]["desc"]["Axis"] = -1
    status, error, fixed = fix(model)
    assert (status, fixed) == (1, None)
    assert "no change keeps what the model computes" in error


def test_what_is_left_decides_the_exit_status(fix):
    model = gather([1, 2])
    model["dispatchables"]["g"]["desc"]["Axis"] = 4
    status, _, fixed = fix(model)
    assert status == 1
    assert fixed["dispatchables"]["g"]["desc"]["IndicesTensor"]["DataType"] == "INT32"


def test_a_file_of_one_operator_is_fixed(fix):
    desc = gather([1, 2], "UINT32", GuaranteedBaseOffsetAlignment=3)["dispatchables"]["g"]
    status, _, fixed = fix(desc)
    assert status == 0
    assert "GuaranteedBaseOffsetAlignment" not in fixed["desc"]["IndicesTensor"]


def test_wrong_uses_of_fix(tmp_path, capsys):
    graph, model = tmp_path / "graph.json", tmp_path / "model.json"
    builder = dml.GraphBuilder()
    x = builder.input("x", dml.TensorDesc("FLOAT32", (4,)))
    graph.write_text(json.dumps(builder.build(y=builder.activation_relu(x)).to_json()))
    model.write_text(json.dumps(gather([1, 2])))
    out = str(tmp_path / "out.json")
    assert check(capsys, graph, "--fix", out)[0] == 2
    assert check(capsys, model, str(model), "--fix", out)[0] == 2
    assert check(capsys, model, "--fix", "-")[0] == 2
    assert check(capsys, model, "--fix", out)[0] == 0
    status, _, error = check(capsys, model, "--fix", out)
    assert status == 1
    assert "exists: use another name or --overwrite" in error
    assert check(capsys, model, "--fix", out, "--overwrite")[0] == 0


def test_files_of_the_model_are_read_from_its_folder(tmp_path, capsys):
    model = gather([1, 2])
    model["resources"]["x"] = {"initialValuesDataType": "FLOAT32",
                               "initialValues": {"sourcePath": "x.npy"}}  # fmt: skip
    (tmp_path / "model.json").write_text(json.dumps(model))
    np.save(tmp_path / "x.npy", np.ones(4, np.float32))
    (tmp_path / "other").mkdir()
    out = str(tmp_path / "other" / "out.json")
    assert check(capsys, tmp_path / "model.json", "--fix", out)[0] == 0
