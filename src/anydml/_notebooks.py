"""The notebook form of descriptors and graphs; `anydml.drawing` is loaded when one is shown."""

from __future__ import annotations

from anydml.graphs.desc import GraphDesc
from anydml.ops._descriptor import Descriptor


def _descriptor_html(desc: Descriptor) -> str:
    from anydml.drawing import descriptor_html

    return descriptor_html(desc)


def _graph_html(graph: GraphDesc) -> str:
    from anydml.drawing import graph_html

    return graph_html(graph)


def attach() -> None:
    """Give descriptors and graphs their notebook form; they do not know how they are drawn."""
    Descriptor._repr_html_ = _descriptor_html  # type: ignore[attr-defined]
    GraphDesc._repr_html_ = _graph_html  # type: ignore[attr-defined]
