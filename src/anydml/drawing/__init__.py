"""Pictures and tables of operators, graphs and models: SVG and HTML, made without dependencies."""

from anydml.drawing._cells import draw_operator
from anydml.drawing._html import descriptor_html, graph_html
from anydml.drawing._layers import Box, Line, draw_boxes, draw_graph, tensor_label
from anydml.drawing._svg import document, text

__all__ = [
    "Box",
    "Line",
    "descriptor_html",
    "document",
    "draw_boxes",
    "draw_graph",
    "draw_operator",
    "graph_html",
    "tensor_label",
    "text",
]
