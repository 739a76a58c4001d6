"""The kinds of documents, and how a file's kind is known."""

from __future__ import annotations

from pathlib import Path

from anydml.core.errors import ModelError
from anydml.core.file_kinds import kind_of
from anydml.documents.document import Document, Options
from anydml.documents.models import ExampleDocument, ModelDocument
from anydml.documents.onnx import OnnxDocument
from anydml.models.document import STANDARD_INPUT
from anydml.models.files import Limits, open_file

_HEAD = 4096


def open_document(path: Path, limits: Limits, options: Options) -> Document:
    """Return the document in a file, of the kind that its name or its first bytes say."""
    return (OnnxDocument if _is_onnx(path) else ModelDocument)(path, limits, options)


def example_document(operator: str, limits: Limits, options: Options) -> Document:
    """Return the examples of an operator, by its name in `OPERATORS`."""
    return ExampleDocument(Path(operator), limits, options)


def _is_onnx(path: Path) -> bool:
    if path.suffix.lower() == ".onnx":
        return True
    if str(path) == STANDARD_INPUT or path.suffix.lower() in (".json", ".bin"):
        return False
    try:
        with open_file(path) as file:
            kind = kind_of(file.read(_HEAD), complete=False)
    except ModelError:
        return False
    return kind is not None and "ONNX model" in kind
