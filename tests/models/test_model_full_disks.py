"""Files that cannot be written: the reason, the bytes, and nothing left behind."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from model_files import target_model, value_resource, write_model, write_target, zeros

from anydml import ModelError
from anydml.models import Limits, files

REASONS = {
    errno.ENOSPC: "No space left on device: the disk is full",
    errno.EDQUOT: "Disk quota exceeded",
    errno.EIO: "Input/output error",
    errno.EFBIG: "File too large",
}
NPY_HEADER = 128


@pytest.mark.parametrize("code", REASONS)
@pytest.mark.parametrize("target", ["x.npy", "x.bin", "sub/x.npy"])
@pytest.mark.parametrize("written", [0, 1, 200, 4096])
def test_bytes_are_counted(folders, monkeypatch, code, target, written):
    left = written

    def write(handle, data):
        nonlocal left
        if not left:
            raise OSError(code, os.strerror(code))
        count = os_write(handle, data[: min(left, 100)])  # short, as they may be
        left -= count
        return count

    os_write = os.write
    monkeypatch.setattr(files.os, "write", write)
    total = 8000 + NPY_HEADER * target.endswith("npy")
    with pytest.raises(ModelError) as error:
        write_target(folders, target, zeros(1000, "FLOAT64"))
    assert str(error.value) == (
        f"Command at index 0: File 'model.out/{target}' cannot be written: {REASONS[code]}; "
        f"wrote {written} of {total} bytes."
    )
    monkeypatch.undo()
    assert not [path for path in (folders / "current").rglob("*") if path.is_file()
                and path.parent.name != "current"]  # fmt: skip


@pytest.mark.parametrize("limit", [1, 7, 128, 2**30])
def test_short_writes_make_whole_files(folders, monkeypatch, limit):
    os_write = os.write
    monkeypatch.setattr(files.os, "write", lambda handle, data: os_write(handle, data[:limit]))
    monkeypatch.setattr(files, "_PIECE", 100)
    write_target(folders, "x.npy", value_resource([1, 2, 3], "INT64"), dimensions=[3, 1])
    write_target(folders, "x.bin", value_resource([1, 2, 3], "INT64"), Limits(overwrite=True))
    monkeypatch.undo()
    output_file = folders / "current" / "model.out"
    assert np.load(output_file / "x.npy").tolist() == [[1], [2], [3]]
    assert np.fromfile(output_file / "x.bin", "i8").tolist() == [1, 2, 3]


def test_a_write_of_nothing_does_not_wait_forever(folders, monkeypatch):
    monkeypatch.setattr(files.os, "write", lambda *_: 0)
    with pytest.raises(ModelError, match="wrote 0 of 4 bytes"):
        write_target(folders, "x.bin")


def test_a_disk_that_is_full_when_the_file_is_closed(folders, monkeypatch):
    real = os.close

    def close(handle):
        regular = files.stat.S_ISREG(os.fstat(handle).st_mode)
        real(handle)
        if regular:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(files.os, "close", close)
    with pytest.raises(ModelError, match="Disk quota exceeded; wrote 4 of 4 bytes"):
        write_target(folders, "x.bin")
    monkeypatch.undo()
    assert not (folders / "current" / "model.out" / "x.bin").exists()


@pytest.mark.parametrize(
    ("data_type", "count", "dimensions"),
    [
        ("FLOAT16", 6, [2, 3]),
        ("UINT8", 5, [5]),
        ("INT64", 4, [0]),
        ("INT8", 32, [2] * 5 + [1] * 27),
    ],
)
def test_npy_files_are_as_numpy_writes_them(folders, data_type, count, dimensions):
    write_target(folders, "x.npy", zeros(count, data_type), dimensions=dimensions)
    np.save("expected.npy", np.zeros(dimensions, data_type.lower()))
    assert Path("model.out/x.npy").read_bytes() == Path("expected.npy").read_bytes()


@pytest.fixture
def mounted(tmp_path):
    """Mounts a small file system; its folder."""
    folder = tmp_path / "mounted"
    folder.mkdir()

    def mount(*options):
        command = ["mount", "-t", "tmpfs", "-o", ",".join(("size=64k", *options)), "tmpfs", folder]
        if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("needs to mount a file system")
        return folder

    yield mount
    subprocess.run(["umount", folder], capture_output=True, check=False)


def anydml(*arguments, cwd):
    return subprocess.run([sys.executable, "-m", "anydml", *arguments], cwd=cwd,
                          capture_output=True, text=True, check=False)  # fmt: skip


@pytest.mark.parametrize("target", ["x.npy", "x.bin"])
def test_a_full_file_system(tmp_path, mounted, target):
    folder = mounted()
    model = write_model(tmp_path, target_model(target, zeros(100_000, "UINT8")))
    total = 100_000 + NPY_HEADER * (target == "x.npy")
    done = anydml("run", model, "--output-dir", folder, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        f"Error: Command at index 0: File '{folder}/{target}' cannot be written: No space left on "
        f"device: the disk is full; wrote 65536 of {total} bytes.\n"
    )
    assert not [*folder.iterdir()]


def test_a_read_only_file_system(tmp_path, mounted):
    folder = mounted("ro")
    model = write_model(tmp_path, target_model("x.bin"))
    inside = folder / "made"
    for command in ("check", "run"):
        for output in (folder, inside):
            done = anydml(command, model, "--output-dir", output, cwd=tmp_path)
            assert done.returncode == 1
            assert (
                f"File '{output}/x.bin' cannot be written: Read-only file system."
                in done.stdout + done.stderr
            )
        done = anydml(command, model, cwd=folder)
        assert "File 'model.out/x.bin' cannot be written: Read-only file system." in (
            done.stdout + done.stderr
        )


@pytest.mark.parametrize("arguments", [["run"], ["check"], ["check", "--json"]])
def test_standard_output_is_full(tmp_path, arguments):
    model = target_model("x.bin", zeros(5000, "UINT8"))
    model["commands"].append({"type": "print", "resource": "r"})
    path = write_model(tmp_path, model)
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "anydml", *arguments, path], stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False,
                              cwd=tmp_path)  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "Error: standard output: No space left on device: the disk is full\n"
