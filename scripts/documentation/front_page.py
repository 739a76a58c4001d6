"""The pictures of the front page of the site, drawn from the code that the page shows.

- top_k.svg: the call of `top_k`;
- graph.svg: the graph, which igraph lays out (`pip install '.[show]'`).
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import numpy as np

import anydml as dml
from anydml.drawing import draw_graph, draw_operator

PAGE = Path(__file__).resolve().parents[2] / "docs" / "index.md"


def pictures() -> dict[str, str]:
    """The pictures by file name."""
    session, graph = (_run(kind) for kind in ("pycon", "python"))
    x = session["x"].astype(np.float32)
    input_tensor, values = dml.TensorDesc.from_array(x), session["values"].shape
    desc = dml.TopK1(input_tensor=input_tensor, axis=1, k=values[1], axis_direction="DECREASING",
                     output_value_tensor=dml.TensorDesc("FLOAT32", values),
                     output_index_tensor=dml.TensorDesc("UINT32", values))  # fmt: skip
    return {
        "top_k.svg": draw_operator(desc, {"InputTensor": x}),
        "graph.svg": draw_graph(graph["desc"]),
    }


def _run(kind: str) -> dict[str, Any]:
    """What the only block of this kind on the page defines."""
    text = PAGE.read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```{kind}\n(.*?)^```", text, re.M | re.S)
    if kind == "pycon":
        block = "".join(e.source for e in doctest.DocTestParser().get_examples(block))
    names: dict[str, Any] = {}
    exec(block, names)
    return names
