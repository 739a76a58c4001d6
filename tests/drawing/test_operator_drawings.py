"""Pictures of operators: well formed, with all values, and colours that say what went where."""

from collections import Counter
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest

import anydml as dml
from anydml.drawing import draw_operator
from anydml.drawing._cells import number
from anydml.drawing._links import trace
from anydml.ops._examples import examples_of
from anydml.ops._fields import Role
from anydml.ops._registry import OPERATORS
from anydml.suite.choices import Seeded
from anydml.suite.descriptors import descriptor

SVG = "{http://www.w3.org/2000/svg}"
KINDS = [*dict.fromkeys(OPERATORS.values())]


def words(picture):
    """The texts of a picture, which is XML."""
    root = ElementTree.fromstring(picture)
    return Counter(item.text for tag in ("text", "tspan") for item in root.iter(SVG + tag))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_every_value_is_in_the_picture(kind):
    examples = [*examples_of(kind)]
    assert examples
    for desc, inputs, _ in examples:
        values = {
            path: np.asarray(inputs[path], tensor.data_type.numpy)
            for path, tensor, _ in desc.tensors(Role.INPUT)
        }
        traced = trace(desc, values)
        values |= {path: array[traced.written[path]] for path, array in traced.outputs.items()}
        expected = Counter(number(v) for array in values.values() for v in array.ravel().tolist())
        picture = draw_operator(desc, inputs)
        assert expected <= words(picture)
        assert set(values) <= words(picture).keys()
        assert len(picture) < 20_000
        if inputs:
            assert any(colours.any() for colours in traced.colours.values()), "nothing is coloured"


def coloured(desc, **inputs):
    traced = trace(desc, inputs)
    assert not traced.window
    return traced


def tensor(array):
    return dml.TensorDesc.from_array(array)


def assert_from(colours, sources, source_colours):
    """Each element has the colour of the source at its flat position, or none where that is -1."""
    for colour, source in zip(colours.ravel(), sources.ravel(), strict=True):
        assert colour == (source_colours.flat[source] if source >= 0 else 0)
        assert (colour > 0) == (source >= 0)


@pytest.fixture(params=range(3))
def rng(request):
    return np.random.default_rng(request.param)


def test_gather_shows_rows_with_their_index(rng):
    x = rng.permutation(20).reshape(5, 4).astype(np.float32)
    indices = rng.integers(0, 5, (1, 6), np.uint32)
    desc = dml.Gather(input_tensor=tensor(x), indices_tensor=tensor(indices),
                      output_tensor=dml.TensorDesc("FLOAT32", (6, 4)), axis=0,
                      index_dimensions=1)  # fmt: skip
    colours = coloured(desc, InputTensor=x, IndicesTensor=indices).colours
    ids = np.arange(20).reshape(5, 4)
    assert_from(colours["OutputTensor"], ids[indices[0]], colours["InputTensor"])
    assert (colours["IndicesTensor"][0] == colours["InputTensor"][indices[0], 0]).all()
    chosen = colours["InputTensor"][np.unique(indices)]
    assert len(np.unique(chosen)) == len(chosen) == len(np.unique(chosen[:, 0]))  # a colour a row
    assert not np.delete(colours["InputTensor"], indices[0], 0).any()


def test_scatter_shows_the_last_update_of_each_place(rng):
    x = np.zeros(8, np.float32)
    indices = rng.integers(0, 8, 6, np.uint32)
    updates = rng.permutation(6).astype(np.float32)
    desc = dml.Scatter(input_tensor=tensor(x), indices_tensor=tensor(indices),
                       updates_tensor=tensor(updates), output_tensor=tensor(x), axis=0)  # fmt: skip
    colours = coloured(desc, InputTensor=x, IndicesTensor=indices, UpdatesTensor=updates).colours
    last = {index: i for i, index in enumerate(indices.tolist())}
    for place, colour in enumerate(colours["OutputTensor"]):
        if place in last:
            assert colour == colours["UpdatesTensor"][last[place]]
            assert colour == colours["IndicesTensor"][last[place]]
            assert colours["InputTensor"][place] == 0
        else:
            assert colour == colours["InputTensor"][place]
    lost = [i for i in range(6) if i not in last.values()]
    assert not colours["UpdatesTensor"][lost].any()
    assert len(set(colours["OutputTensor"])) == 8


@pytest.mark.parametrize("direction", ["DECREASING", "INCREASING"])
def test_top_k_shows_which_of_tied_elements_it_took(rng, direction):
    x = rng.integers(-2, 2, (3, 7)).astype(np.float32)
    k = 4
    desc = dml.TopK1(input_tensor=tensor(x), output_value_tensor=dml.TensorDesc("FLOAT32", (3, k)),
                     output_index_tensor=dml.TensorDesc("UINT32", (3, k)), axis=1, k=k,
                     axis_direction=direction)  # fmt: skip
    colours = coloured(desc, InputTensor=x).colours
    order = np.argsort(-x if direction == "DECREASING" else x, axis=1, kind="stable")[:, :k]
    sources = order + 7 * np.arange(3)[:, None]
    assert_from(colours["OutputValueTensor"], sources, colours["InputTensor"])
    assert_from(colours["OutputIndexTensor"], sources, colours["InputTensor"])
    assert np.count_nonzero(colours["InputTensor"]) == 3 * k


def test_nonzero_shows_the_element_of_each_row(rng):
    x = rng.integers(0, 2, (3, 4)).astype(np.float32)
    desc = dml.NonzeroCoordinates(input_tensor=tensor(x),
                                  output_count_tensor=dml.TensorDesc("UINT32", (1, 1)),
                                  output_coordinates_tensor=dml.TensorDesc("UINT32", (12, 2)),
                                  )  # fmt: skip
    traced = coloured(desc, InputTensor=x)
    places = np.argwhere(x)
    expected = traced.colours["InputTensor"][tuple(places.T)]
    for column in traced.colours["OutputCoordinatesTensor"].T:
        assert column[: len(places)].tolist() == expected.tolist() == [*range(1, len(places) + 1)]
        assert not column[len(places) :].any()
    assert traced.written["OutputCoordinatesTensor"].sum() == places.size
    assert not traced.colours["InputTensor"][x == 0].any()


def test_split_shows_each_element_again(rng):
    x = rng.integers(0, 3, (2, 6)).astype(np.int32)
    parts = [dml.TensorDesc("INT32", (2, n)) for n in (1, 3, 2)]
    desc = dml.Split(input_tensor=tensor(x), output_tensors=parts, axis=1)
    colours = coloured(desc, InputTensor=x).colours
    ids = np.arange(12).reshape(2, 6)
    for i, part in enumerate(np.split(ids, [1, 4], axis=1)):
        assert_from(colours[f"OutputTensors[{i}]"], part, colours["InputTensor"])
    assert len(np.unique(colours["InputTensor"])) == 12


@pytest.mark.parametrize("mode", ["CONSTANT", "EDGE", "REFLECTION", "SYMMETRIC", "WRAP"])
def test_padding_shows_what_is_repeated(rng, mode):
    x = rng.integers(0, 3, (2, 3)).astype(np.float32)
    starts, ends = (1, 2), (1, 1)
    desc = dml.Padding1(input_tensor=tensor(x), output_tensor=dml.TensorDesc("FLOAT32", (4, 6)),
                        padding_mode=mode, padding_value_data_type="FLOAT32", padding_value=7,
                        start_padding=starts, end_padding=ends)  # fmt: skip
    colours = coloured(desc, InputTensor=x).colours
    options = {"REFLECTION": "reflect"}.get(mode, mode.lower())
    constant = {"constant_values": -1} if mode == "CONSTANT" else {}
    sources = np.pad(
        np.arange(6).reshape(2, 3), [*zip(starts, ends, strict=True)], options, **constant
    )
    assert_from(colours["OutputTensor"], sources, colours["InputTensor"])
    assert len(np.unique(colours["InputTensor"])) == 6


def test_a_window_is_marked_where_windows_overlap():
    x = np.arange(20, dtype=np.float32).reshape(1, 1, 4, 5)
    desc = dml.AveragePooling.with_outputs(
        input_tensor=tensor(x), strides=(1, 1), window_size=(2, 3), start_padding=(0, 0),
        end_padding=(0, 0), include_padding=False,
    )  # fmt: skip
    traced = trace(desc, {"InputTensor": x})
    assert traced.window
    ((_, _, i, j),) = np.argwhere(traced.colours["OutputTensor"])
    expected = np.zeros((4, 5), bool)
    expected[i : i + 2, j : j + 3] = True
    assert (traced.colours["InputTensor"][0, 0] == expected).all()


def test_a_large_tensor_is_cut():
    x = np.arange(400 * 500, dtype=np.float32).reshape(1, 400, 500)
    desc = dml.ElementWiseIdentity(input_tensor=tensor(x), output_tensor=tensor(x))
    picture = draw_operator(desc, {"InputTensor": x})
    assert len(picture) < 20_000
    assert words(picture)["…"] > 2
    many = np.zeros((50, 2, 2), np.float32)
    desc = dml.ElementWiseIdentity(input_tensor=tensor(many), output_tensor=tensor(many))
    assert words(draw_operator(desc, {"InputTensor": many}))["and 42 more"] == 2


def test_inputs_are_not_changed_and_rules_hold():
    x = np.array([3.0, 3.0, 1.0], np.float32)
    before = x.copy()
    desc = dml.Gather(input_tensor=tensor(x), indices_tensor=dml.TensorDesc("UINT32", (2,)),
                      output_tensor=dml.TensorDesc("FLOAT32", (2,)), axis=0,
                      index_dimensions=1)  # fmt: skip
    draw_operator(desc, {"InputTensor": x, "IndicesTensor": [0, 2]})
    assert (x == before).all()
    with pytest.raises(dml.IndexOutOfRangeError):
        draw_operator(desc, {"InputTensor": x, "IndicesTensor": [0, 3]})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_notebooks_show_any_descriptor(kind):
    for seed in range(2):
        desc = descriptor(Seeded(kind.NAME, seed), kind, maximum=24)
        page = desc._repr_html_()
        root = ElementTree.fromstring(f"<div>{page}</div>")
        cells = [cell.text for cell in root.iter("td")]
        for path, text, info in desc.tensors():
            assert cells[cells.index(path) + 1] == info.text
            assert any(str(text.sizes) in cell for cell in cells if cell)


def test_notebooks_escape_names():
    name = "<script>alert('&')</script>\x00"
    one = dml.TensorDesc("FLOAT32", (1,))
    add = dml.ElementWiseAdd.with_outputs(a_tensor=one, b_tensor=one)
    edges = [dml.InputEdge(0, 0, i, name) for i in (0, 1)]
    graph = dml.GraphDesc([dml.OperatorNode(add, name)], edges, [], [dml.OutputEdge(0, 0, 0)])
    for text in (graph._repr_html_(), add._repr_html_()):
        assert "<script" not in text
        ElementTree.fromstring(f"<div>{text}</div>")


def test_a_descriptor_that_breaks_rules_has_a_table_only():
    one = dml.TensorDesc("FLOAT32", (1,))
    two = dml.TensorDesc("FLOAT32", (2,))
    desc = dml.ElementWiseAdd(a_tensor=one, b_tensor=two, output_tensor=one)
    assert "<svg" not in desc._repr_html_()
    assert "<svg" in dml.ElementWiseAdd.with_outputs(a_tensor=two, b_tensor=two)._repr_html_()


def test_marks_and_texts_are_told_apart_in_both_themes():
    """Every text is readable on every fill: a contrast of 4.5 to 1 (WCAG AA)."""
    from anydml.drawing import _svg

    def luminance(colour):
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    fills = {"ink": [f"k{i}" for i in range(_svg.COLOURS + 1)] + ["paper", "bad"],
             "muted": ["paper"], "alarm": ["paper"]}  # fmt: skip
    for theme, (front, backs) in product((1, 2), fills.items()):
        for background in backs:
            values = [luminance(_svg._RULES[name][theme]) for name in (front, background)]
            assert (max(values) + 0.05) / (min(values) + 0.05) >= 4.5, (front, background, theme)
