"""The blocks of the GPU page that need a GPU."""

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]
PAGE = Path(__file__).parents[2] / "docs" / "gpu.md"


def test_python_blocks_run():
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 1
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {})
