"""What the page examples share: show a result, and stop where it is not what the page prints."""

from typing import Any

import numpy as np


def compare(name: str, got: Any, printed: Any) -> None:
    """Print an array; fail unless its shape and elements are the printed ones."""
    expected = np.asarray(printed)
    if got.shape != expected.shape or not np.array_equal(got, expected):
        raise SystemExit(f"{name}: the page prints\n{expected}\nbut this is\n{got}")
    print(f"{name} =\n{got}\n")
