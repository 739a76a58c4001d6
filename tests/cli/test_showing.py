"""`anydml show`: models and graphs as SVG."""

import io
import itertools
import json
import random
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import anydml as dml
from anydml.cli import command as cli
from anydml.drawing import Box, Line, _layers, draw_boxes, draw_graph
from anydml.models import load_model
from anydml.models.commands import Dispatch, Print
from support.seconds import result_within

pytest.importorskip("igraph")

MODELS = Path(__file__).parents[2] / "examples" / "models"
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('&')</script>\x01\ud800\"> ]]>"


def boxes(picture):
    """The class, the two lines and the whole text of each box, and how many lines there are."""
    root = ElementTree.fromstring(picture)
    found = []
    for group in root.iter(f"{SVG}g"):
        title, rect = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        if title is not None and rect is not None:
            lines = [item.text for item in group.iter(f"{SVG}text")]
            found.append((rect.get("class").split()[1], *lines, title.text))
    return found, sum(item.get("class") == "line" for item in root.iter(f"{SVG}path"))


def texts(picture):
    return " ".join(item.text for item in ElementTree.fromstring(picture).iter(f"{SVG}text"))


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.out")), ids=lambda path: path.stem)
def test_every_example_model(path, capsys):
    path = path.with_suffix(".json")
    assert cli.main(["show", str(path)]) == 0
    text = capsys.readouterr().out
    found, lines = boxes(text)
    model = load_model(path)
    dispatched = [
        model.dispatchables[command.dispatchable]
        for command in model.commands.values()
        if isinstance(command, Dispatch)
    ]
    operators = [(name, kind) for _, name, kind, _ in found if kind.isupper() and "," not in kind]
    assert operators == [(item.name, item.desc.NAME) for item in dispatched]
    tensors = sum(len([*item.desc.tensors()]) for item in dispatched)
    assert lines == tensors
    for command in model.commands.values():
        if isinstance(command, Print):
            assert any(name == command.resource for _, name, *_ in found)
    for _, tensor, _ in dispatched[0].desc.tensors():
        assert str(tensor.data_type) in texts(text)
    assert len(text) < 40_000


def test_what_a_level_refuses_is_red(capsys):
    arguments = ["show", str(MODELS / "top_k1.json")]
    assert cli.main(arguments) == 0
    assert not any(colour == "bad" for colour, *_ in boxes(capsys.readouterr().out)[0])
    assert cli.main([*arguments, "--feature-level", "2.0"]) == 0
    text = capsys.readouterr().out
    kinds = {kind for colour, _, kind, _ in boxes(text)[0] if colour == "bad"}
    assert kinds == {"TOP_K1"}
    assert "TOP_K1.FeatureLevel: expected 2_1 or above" in texts(text)


def test_a_file_is_not_replaced(tmp_path, capsys):
    target = tmp_path / "out.svg"
    arguments = ["show", str(MODELS / "split.json"), "-o", str(target)]
    assert cli.main(arguments) == 0
    first = target.read_text()
    assert boxes(first)[0]
    target.write_text("mine")
    assert cli.main(arguments) == 1
    assert target.read_text() == "mine"
    assert "exists" in capsys.readouterr().err
    assert cli.main([*arguments, "--overwrite"]) == 0
    assert target.read_text() == first


def test_standard_streams(monkeypatch, capsys):
    data = (MODELS / "split.json").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert cli.main(["show", "-", "-o", "-"]) == 0
    assert ElementTree.fromstring(capsys.readouterr().out).get("role") == "img"


def test_models_that_cannot_be_read(tmp_path, capsys):
    assert cli.main(["show", str(MODELS / "malformed.json")]) == 1
    output = capsys.readouterr()
    assert not output.out
    assert "did you mean 'FLOAT32'" in output.err
    for contents in (b"", b"[]", b'{"Nodes": 3}', b"\x89PNG\r\n", b'{"Nodes": [' * 900):
        path = tmp_path / "bad.json"
        path.write_bytes(contents)
        assert cli.main(["show", str(path)]) == 1
        output = capsys.readouterr()
        assert output.err.startswith("Error: ")
        assert not output.out


def graph_json(tmp_path, graph):
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(graph.to_json()))
    return str(path)


def add_of(*sizes):
    tensor = dml.TensorDesc("FLOAT32", sizes)
    return dml.ElementWiseAdd.with_outputs(a_tensor=tensor, b_tensor=tensor)


def test_graphs(tmp_path, capsys):
    graph = dml.GraphBuilder()
    x = graph.input("x", dml.TensorDesc("FLOAT32", (2, 3)))
    y = graph.add(x, graph.constant(dml.cast([1, 2, 3, 4, 5, 6], "float32").reshape(2, 3)))
    path = graph_json(tmp_path, graph.build(y=graph.activation_relu(y)))
    assert cli.main(["show", path]) == 0
    text = capsys.readouterr().out
    found, lines = boxes(text)
    assert {(name, kind) for _, name, kind, _ in found} >= {("x", "input"), ("y", "output")}
    assert sorted(kind for _, _, kind, _ in found) == [
        "ACTIVATION_RELU", "ELEMENT_WISE_ADD", "constant, 24 bytes", "input", "output",
    ]  # fmt: skip
    assert lines == 4
    assert "FLOAT32 {2, 3}" in texts(text)
    assert cli.main(["show", path, "--feature-level", "5_0"]) == 0
    red = [kind for colour, _, kind, _ in boxes(capsys.readouterr().out)[0] if colour == "bad"]
    assert red == []  # constants count as inputs, as `check` counts them


def test_hostile_names_and_edges(tmp_path, capsys):
    nodes = [dml.OperatorNode(add_of(2), f"{HOSTILE}{i}") for i in range(3)]
    graph = dml.GraphDesc(
        nodes,
        [dml.InputEdge(0, 0, 0, HOSTILE), dml.InputEdge(9, 0, 0), dml.InputEdge(0, 7, 7)],
        [dml.IntermediateEdge(0, 0, 1, 0), dml.IntermediateEdge(1, 0, 0, 1),
         dml.IntermediateEdge(2, 0, 2, 0), dml.IntermediateEdge(5, 6, 7, 8),
         dml.IntermediateEdge(0, 9, 1, 9)],
        [dml.OutputEdge(0, 0, 0, HOSTILE), dml.OutputEdge(0, 0, 4), dml.OutputEdge(8, 0, 0)],
    )  # fmt: skip
    for drawing in (draw_graph(graph), graph._repr_html_()):
        assert "<script" not in drawing
        assert {colour for colour, *_ in boxes(drawing)[0]} >= {"bad"}
    assert cli.main(["show", graph_json(tmp_path, graph)]) == 0
    assert capsys.readouterr().out == draw_graph(graph)
    model = json.loads(re.sub("//.*", "", (MODELS / "split.json").read_text()))
    text = json.dumps(model)
    for name in (*model["resources"], *model["dispatchables"]):
        text = text.replace(json.dumps(name), json.dumps(HOSTILE + name))
    path = tmp_path / f"{HOSTILE[:8]}.json"
    path.write_text(text)
    assert cli.main(["show", str(path)]) == 0
    drawing = capsys.readouterr().out
    assert "<script" not in drawing
    assert len(boxes(drawing)[0]) == len(model["resources"]) + len(model["dispatchables"])


def test_without_the_library(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "igraph", None)
    assert cli.main(["show", str(MODELS / "split.json")]) == 1
    assert "pip install 'anydml[show]'" in capsys.readouterr().err
    graph = dml.GraphDesc([dml.OperatorNode(add_of(2), HOSTILE)], [dml.InputEdge(0, 0, 0)])
    text = ElementTree.fromstring(f"<div>{graph._repr_html_()}</div>")
    cells = [cell.text for cell in text.iter("td")]
    assert "ELEMENT_WISE_ADD" in cells
    assert any("InputEdge(graph_input_index=0" in cell for cell in cells)


def test_labels_that_differ_are_at_their_arrows():
    """Those of a box's lines are once below the box where all are the same; no line is hidden."""
    boxes = [Box(name, "KIND") for name in "abcd"]
    lines = [Line(0, 1, ("one",)), Line(0, 2, ("two",)), Line(1, 3, ("three",)), Line(2, 3)]
    root = ElementTree.fromstring(draw_boxes("picture", boxes, lines))
    at = {item.text: (int(item.get("x")), int(item.get("y"))) for item in root.iter(f"{SVG}text")}
    beside = _layers._BESIDE
    assert (at["one"][0], at["two"][0]) == (at["b"][0] + beside, at["c"][0] + beside)
    assert at["a"][1] < at["one"][1] == at["two"][1] < at["b"][1]
    assert at["three"][0] == at["b"][0] + beside
    assert at["three"][1] - at["b"][1] < at["d"][1] - at["three"][1]  # nearer to where it begins


def test_the_longest_labels_are_within_the_picture():
    boxes = [Box("a", "KIND"), Box("b", "KIND")]
    root = ElementTree.fromstring(draw_boxes("picture", boxes, [Line(0, 1, ("M" * 99,))]))
    group = next(root.iter(f"{SVG}g"))
    shift = float(re.search(r"translate\(([\d.]+)", group.get("transform"))[1])
    (label,) = (item for item in root.iter(f"{SVG}text") if "M" in item.text)
    assert label.get("text-anchor") == "start"
    end = shift + int(label.get("x")) + 7.3 * len(label.text)
    assert end < float(root.get("width"))


def test_boxes_are_below_what_they_read_from():
    for seed in range(20):
        choose = random.Random(seed)
        count = 30
        order = choose.sample(range(count), count)
        pairs = [sorted(choose.sample(range(count), 2)) for _ in range(60)]
        lines = [Line(order[a], order[b]) for a, b in pairs]
        layers = _layers._layers(count, lines)
        assert all(layers[line.start] < layers[line.end] for line in lines)
        centres, bends = _layers._placed(layers, lines)
        assert len(set(centres)) == count
        for layer in set(layers):
            xs = sorted(x for (x, _), at in zip(centres, layers, strict=True) if at == layer)
            gaps = [0.001 + b - a for a, b in itertools.pairwise(xs)]
            assert all(gap > _layers._BOX[0] for gap in gaps), "boxes overlap"
        before = {line.end for line in lines}
        for box in {line.start for line in lines} - before:
            assert layers[box] == min(layers[e.end] for e in lines if e.start == box) - 1
        for line, via in zip(lines, bends, strict=True):
            assert len(via) == layers[line.end] - layers[line.start] - 1


@pytest.mark.parametrize("shape", ["chain", "tree", "tangle", "fan"])
def test_thousands_of_nodes_take_seconds(shape):
    count, choose = 2000, random.Random(1)
    links = {
        "chain": [(i - 1, i) for i in range(1, count)] + [(0, i) for i in range(1, count)],
        "tree": [((i - 1) // 2, i) for i in range(1, count)],
        "tangle": [(choose.randrange(count), choose.randrange(count)) for _ in range(2 * count)],
        "fan": [(0, i) for i in range(1, count)],
    }[shape]
    nodes = [dml.OperatorNode(add_of(2))] * count
    graph = dml.GraphDesc(nodes, [], [dml.IntermediateEdge(a, 0, b, 0) for a, b in links])
    found, lines = boxes(result_within(20, lambda: draw_graph(graph)))
    assert (len(found), lines) == (count, len(links))


def test_more_is_refused_and_notebooks_show_a_table():
    graph = dml.GraphDesc([dml.OperatorNode(add_of(2))] * (_layers.MOST_PARTS + 1))
    with pytest.raises(dml.ArgumentError, match="at most 20000 boxes"):
        draw_graph(graph)
    assert graph._repr_html_().startswith("<table>")


def test_a_full_disk_is_named_by_its_file(capsys):
    model = Path(__file__).parents[2] / "examples" / "models" / "split.json"
    assert cli.main(["show", str(model), "-o", "/dev/full", "--overwrite"]) == 1
    assert "Error: File '/dev/full' cannot be written: No space" in capsys.readouterr().err
