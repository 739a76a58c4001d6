"""Of PyTorch only public names are used."""

import re
from pathlib import Path

import pytest

import anydml

ROOT = Path(anydml.__file__).parents[2]

# Also as strings and attributes. `torch.utils._python_dispatch.TorchDispatchMode` is documented by
# PyTorch as public, and `torch._check` by its pages on torch.export.
PRIVATE = re.compile(
    r"torch\._(?!check\b)|\b_C\b|_functorch|_dynamo|_SingleLevelFunction|_current_level"
    r"|_dispatch_keys|_dispatch_tls|_cdata|aoti_torch|_torchdynamo|libtorch|getCurrentRawStream"
)


@pytest.mark.parametrize("folder", ["src/anydml", "native"])
def test_private_names_of_pytorch(folder):
    if not (ROOT / folder).is_dir():
        pytest.skip("not in a source tree")
    files = [p for s in ("*.py", "*.cpp", "*.hpp", "*.h") for p in (ROOT / folder).rglob(s)]
    assert len(files) > 20
    found = {
        str(path.relative_to(ROOT)): match[0]
        for path in files
        for match in PRIVATE.finditer(path.read_text(encoding="utf-8"))
        # This package's own modules of that name.
        if not match[0].startswith("torch._")
        or (
            "anydml.torch._" not in path.read_text()[max(match.start() - 7, 0) : match.end()]
            and "libraries._torch" not in path.read_text()[max(match.start() - 12, 0) : match.end()]
        )
    }
    assert not found
