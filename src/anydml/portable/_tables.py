"""The element types and modes of native/common/*.def. Written by write_lists.py."""

from typing import Any, Final

TABLES: Final[dict[str, Any]] = {
    "types": [
        ("float64", 9, 8, "f", True),
        ("float32", 1, 4, "f", True),
        ("float16", 2, 2, "f", True),
        ("bfloat16", 64, 2, "f", False),
        ("int64", 11, 8, "i", True),
        ("int32", 6, 4, "i", True),
        ("int16", 7, 2, "i", True),
        ("int8", 8, 1, "i", True),
        ("uint64", 10, 8, "u", True),
        ("uint32", 3, 4, "u", True),
        ("uint16", 4, 2, "u", True),
        ("uint8", 5, 1, "u", True),
        ("complex64", 65, 8, "c", True),
        ("complex128", 66, 16, "c", True),
        ("bool", 0, 1, "b", True),
        ("float8_e3m4", 0, 1, "f", False),
        ("float8_e4m3", 0, 1, "f", False),
        ("float8_e4m3b11fnuz", 0, 1, "f", False),
        ("float8_e4m3fn", 0, 1, "f", False),
        ("float8_e4m3fnuz", 0, 1, "f", False),
        ("float8_e5m2", 0, 1, "f", False),
        ("float8_e5m2fnuz", 0, 1, "f", False),
        ("float8_e8m0fnu", 0, 1, "f", False),
    ],
    "index_types": [
        "int64",
        "int32",
        "uint32",
        "uint64",
    ],
    "padding_modes": [
        "constant",
        "edge",
        "reflection",
        "symmetric",
        "wrap",
    ],
    "interpolations": [
        "nearest_neighbor",
        "linear",
    ],
    "index_modes": [
        "raise",
        "clamp",
        "wrap",
        "clip",
    ],
    "reductions": [
        ("none", "none"),
        ("add", "sum"),
        ("mul", "prod"),
        ("min", "amin"),
        ("max", "amax"),
    ],
    "most_elements": 281474976710656,
}
DLPACK_CODES: Final = {
    "bfloat16": 4,
    "float8_e3m4": 7,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 9,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
}
