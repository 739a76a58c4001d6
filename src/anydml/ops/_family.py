"""The families of operators, in the order in which the documentation shows them."""

from __future__ import annotations

from enum import Enum


class Family(Enum):
    """A family of operators: its title and a description.

    Each operator module defines its family as ``FAMILY``.
    """

    SELECT = (
        "Select and scatter",
        "Read elements by value or by index, or write them to indexed positions. "
        "Ties, NaN and duplicate indices have a defined result.",
    )
    MOVE = ("Move data", "Copy elements to other positions, without arithmetic.")
    CREATE = ("Create data", "Fill a tensor from attributes, or from the state of a generator.")
    ELEMENTWISE = (
        "Elementwise",
        "Compute each output element from the input elements at the same position.",
    )
    NETWORKS = (
        "Networks",
        "The layers of neural networks: sums, products, windows and activations.",
    )
    QUANTIZED = (
        "Quantized",
        "Convert floats to integers with a scale and a zero point, and compute with them.",
    )
    TRAINING = ("Training", "Compute gradients, normalize batches and update parameters.")

    def __init__(self, title: str, introduction: str) -> None:
        self.title = title
        self.introduction = introduction
