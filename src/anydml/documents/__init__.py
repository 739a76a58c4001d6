"""Documents: files of models and graphs of every kind, with one set of operations for the command.

`open_document` chooses the kind; `Document` says what each kind does.
"""

from anydml.documents.document import Converted, Document, Options, UsageError
from anydml.documents.kinds import example_document, open_document

__all__ = ["Converted", "Document", "Options", "UsageError", "example_document", "open_document"]
