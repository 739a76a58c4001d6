"""A picture in, a sharper picture out: ``python sharpen_picture.py [IN.png OUT.png]``.

The network blurs each channel with a Gaussian filter, adds twice the difference between the picture
and the blurred one, and keeps the result between 0 and 1. Without arguments it draws a circle
and sharpens that. Needs Pillow: ``pip install pillow``.
"""

import sys

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

import anydml as dml

RADIUS, AMOUNT = 3, 2.0


def gaussian() -> np.ndarray:
    """The filter, for each of three channels."""
    line = np.exp(-(np.arange(-RADIUS, RADIUS + 1) ** 2) / (0.5 * RADIUS**2))
    square = np.outer(line, line) / line.sum() ** 2
    return np.broadcast_to(square, (3, 1, *square.shape)).astype(np.float32)


def network(height: int, width: int) -> dml.CompiledGraph:
    """The graph for pictures of one size."""
    graph = dml.GraphBuilder()
    x = graph.input("picture", dml.TensorDesc("FLOAT32", (1, 3, height, width)))
    edges = (0, 0, RADIUS, RADIUS)
    padded = graph.padding(x, padding_mode="REFLECTION", padding_value=0, start_padding=edges,
                           end_padding=edges)  # fmt: skip
    blurred = graph.convolution(padded, graph.constant(gaussian()), group_count=3)
    detail = graph.identity(graph.subtract(x, blurred), scale_bias=dml.ScaleBias(AMOUNT, 0))
    desc = graph.build(sharper=graph.clip(graph.add(x, detail), min=0, max=1))
    return dml.Device("cpu").compile_graph(desc)


def sharpen(picture: Image.Image) -> Image.Image:
    """A sharper picture."""
    pixels = np.asarray(picture.convert("RGB"), np.float32) / 255
    height, width, _ = pixels.shape
    tensor = pixels.transpose(2, 0, 1)[None]
    sharper = network(height, width)(picture=tensor)["sharper"]
    return Image.fromarray(np.rint(sharper[0].transpose(1, 2, 0) * 255).astype(np.uint8))


if len(sys.argv) == 3:
    sharpen(Image.open(sys.argv[1])).save(sys.argv[2])
    print(f"{sys.argv[1]} is sharpened in {sys.argv[2]}")
else:
    drawn = Image.new("RGB", (96, 64), "white")
    ImageDraw.Draw(drawn).ellipse((20, 10, 70, 50), "teal")
    soft = drawn.filter(ImageFilter.GaussianBlur(2))
    sharp = sharpen(soft)

    def steepest(picture: Image.Image) -> int:
        """The largest step from a pixel of a row to the next one."""
        return int(np.abs(np.diff(np.asarray(picture, int), axis=1)).max())

    print(f"steepest edge: {steepest(soft)} of 255 before, {steepest(sharp)} after")
    assert steepest(sharp) > 1.25 * steepest(soft)
