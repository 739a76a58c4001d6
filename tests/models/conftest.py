"""Folders for models to reach, or not."""

import pytest


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A model's folder and the current one, beside a third."""
    for name in ("model", "current", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sub").mkdir()
        (tmp_path / name / f"{name}.bin").write_bytes(name.encode())
    monkeypatch.chdir(tmp_path / "current")
    return tmp_path
