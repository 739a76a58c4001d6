"""Windows of programs on a machine without a display: they are not opened, and nothing fails."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from importlib.util import find_spec
from itertools import cycle
from typing import Any, Final

_CV2: Final[dict[str, Any]] = {
    **dict.fromkeys(
        ("imshow", "namedWindow", "destroyWindow", "destroyAllWindows", "moveWindow",
         "resizeWindow", "setWindowTitle", "setWindowProperty", "setMouseCallback",
         "createTrackbar", "setTrackbarPos", "setTrackbarMin", "setTrackbarMax")
    ),
    "startWindowThread": 0, "pollKey": -1, "getTrackbarPos": -1,
    "getWindowProperty": -1.0, "selectROI": (0, 0, 0, 0),
}  # fmt: skip
"""Functions of OpenCV, and what they return where no window is open and no key is pressed."""

_KEYS: Final = (27, ord("q"))
"""Escape and q, with which most programs end."""


def has_display() -> bool:
    """Whether windows can be opened; only Linux is known to be without a display."""
    return sys.platform != "linux" or bool({"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys())


def open_no_windows() -> None:
    """Let Pillow, matplotlib and OpenCV open no windows."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive", UserWarning)
    if find_spec("PIL"):
        from PIL import ImageShow

        class Nowhere(ImageShow.Viewer):
            def show(self, image: Any, **options: Any) -> int:
                return 1

        ImageShow.register(Nowhere(), 0)  # before the others
    if find_spec("cv2"):
        with suppress(ImportError):  # of a library of the system, which the program reports
            _replace_in_cv2()


def _replace_in_cv2() -> None:
    import cv2

    keys = cycle(_KEYS)

    def wait_key(delay: int = 0) -> int:
        return next(keys) if delay <= 0 else -1

    for name, result in _CV2.items():
        setattr(cv2, name, lambda *args, result=result, **kwargs: result)
    cv2.waitKey = cv2.waitKeyEx = wait_key


def needs_display(error: Exception) -> bool:
    """Whether an error is that of tkinter, which cannot do without a display."""
    kind = getattr(sys.modules.get("tkinter"), "TclError", None)
    return kind is not None and isinstance(error, kind) and not has_display()
