"""JSON models: read, checked, run and printed as DxDispatch does, without Windows.

`load_model` reads a model and checks every reference; `run_model` executes its commands. A model is
untrusted: what it may read, write and allocate is what its `Limits` say.
"""

from anydml.models.check import load_model
from anydml.models.files import Limits
from anydml.models.model import Model
from anydml.models.run import run_model

__all__ = ["Limits", "Model", "load_model", "run_model"]
