"""Pictures as tensors of floats: ``{1, channels, height, width}``, 0 to 1, through Pillow."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

import numpy as np

from anydml.core import _json
from anydml.core.dtypes import DataType
from anydml.core.errors import ModelError

Array = np.ndarray[Any, np.dtype[Any]]

_FORMATS: Final = {".jpg": "JPEG", ".png": "PNG"}
EXTENSIONS: Final = tuple(_FORMATS)
_MODES: Final = {1: "L", 3: "RGB", 4: "RGBA"}
_TYPES: Final = (DataType.FLOAT32, DataType.FLOAT16)
_RANK: Final = 4


def is_picture(name: str) -> bool:
    """Whether a file is a picture, by its name."""
    return name.lower().endswith(EXTENSIONS)


def load_pillow() -> Any:
    """Pillow's module `Image`.

    Raises
    ------
    ModelError
        It is not installed.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ModelError("Images need Pillow: pip install pillow") from error
    return Image


def read_size(value: Any) -> tuple[int, ...]:
    """The field `resampleSize`: {1, channels, height, width}."""
    sizes = _json.json_uint32_array(value)
    if len(sizes) != _RANK or sizes[0] != 1 or sizes[1] not in _MODES or not all(sizes):
        raise ModelError(
            f"Expected 1, channels (1, 3 or 4), height and width, got {_json.json_shown(value)}."
        )
    return sizes


def read_mode(value: Any) -> None:
    """The field `resampleMode`."""
    if value != "scale":
        raise ModelError(f"Expected 'scale', got {_json.json_shown(value)}.")


def check_type(data_type: DataType | None) -> DataType:
    """The type of a picture's elements.

    Raises
    ------
    ModelError
        Not FLOAT32 or FLOAT16.
    """
    if data_type not in _TYPES:
        raise ModelError(f"Expected FLOAT32 or FLOAT16 for a picture, got {data_type}.")
    return data_type


def picture_sizes(file: BinaryIO, sizes: tuple[int, ...] | None, limit: int) -> tuple[int, ...]:
    """The sizes of a picture's tensor: those given, else its own with 1, 3 or 4 channels.

    Raises
    ------
    ModelError
        No picture, or one that takes more bytes than the limit to decode.
    """
    with _opened(file) as image:
        width, height = image.size
        if 4 * width * height > limit:
            raise ModelError(
                f"Expected a picture that takes at most {limit} bytes (--memory-limit), "
                f"got {width} x {height} pixels."
            )
        own = 4 if image.has_transparency_data else 1 if image.mode in ("1", "L") else 3
        return sizes or (1, own, height, width)


def decode(file: BinaryIO, sizes: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A picture's elements, scaled to the sizes with bicubic interpolation."""
    _, channels, height, width = sizes
    with _opened(file) as image:
        converted = image.convert(_MODES[channels])
        if converted.size != (width, height):
            converted = converted.resize((width, height), load_pillow().Resampling.BICUBIC)
        pixels = np.asarray(converted, np.float32).reshape(height, width, channels)
        return (pixels.transpose(2, 0, 1) / np.float32(255)).astype(dtype)


def check_dimensions(name: str, dimensions: Sequence[int]) -> None:
    """Whether a tensor of these sizes can be written as a picture.

    Raises
    ------
    ModelError
        It cannot.
    """
    channels = dimensions[1] if len(dimensions) == _RANK else 0
    jpeg = name.lower().endswith(".jpg")
    if channels not in _MODES or (jpeg and channels == 4) or dimensions[0] != 1:
        counts = "1 or 3" if jpeg else "1, 3 or 4"
        raise ModelError(
            f"Expected 1, channels ({counts}), height and width for a picture, "
            f"got {list(dimensions)}."
        )


def encode(name: str, elements: Array) -> bytes:
    """A picture's file; elements below 0 and NaN are black, those above 1 full."""
    values = np.nan_to_num(elements[0].astype(np.float32), nan=0).clip(0, 1)
    pixels = np.rint(values.transpose(1, 2, 0) * np.float32(255)).astype(np.uint8)
    file = io.BytesIO()
    image = load_pillow().fromarray(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels)
    image.save(file, _FORMATS[name[name.rindex(".") :].lower()])
    return file.getvalue()


@contextmanager
def _opened(file: BinaryIO) -> Iterator[Any]:
    opening: Callable[..., Any] = load_pillow().open
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sizes, which are checked here
            with opening(file, formats=tuple(_FORMATS.values())) as image:
                yield image
    except ModelError:
        raise
    except Exception as error:  # whatever a decoder raises of a file that is broken
        raise ModelError(f"it cannot be decoded: {error}") from error
