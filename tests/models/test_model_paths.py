"""What a model may read and write."""

import errno
import os

import numpy as np
import pytest
from model_files import listed, only, run, write_model

from anydml import ModelError
from anydml.models import Limits, load_model


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A model's folder and the current one, beside a third."""
    for name in ("model", "current", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sub").mkdir()
        (tmp_path / name / f"{name}.bin").write_bytes(name.encode())
    monkeypatch.chdir(tmp_path / "current")
    return tmp_path


def read(folders, source, **limits):
    resource = {"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": str(source)}}
    limits = Limits(**limits)
    _, buffers = run(folders / "model", only({"r": resource}), limits)
    return buffers["r"].tobytes().rstrip(b"\0")


def write(folders, target, resource=None, **fields):
    resources = {"r": resource or listed([1, 2, 3], "UINT8")}
    command = {"type": "writeFile", "resource": "r", "targetPath": str(target)}
    limits = Limits(
        **{k: fields.pop(k) for k in ("output_dir", "allow_outside_paths") if k in fields}
    )
    return run(folders / "model", only(resources, [command | fields]), limits)


class TestSources:
    def test_beside_the_model_then_in_the_current_folder(self, folders):
        assert read(folders, "model.bin") == b"model"
        assert read(folders, "current.bin") == b"current"
        (folders / "current" / "model.bin").write_bytes(b"second")
        assert read(folders, "model.bin") == b"model"

    def test_both_slashes(self, folders):
        (folders / "model" / "sub" / "x.bin").write_bytes(b"x")
        assert read(folders, "sub/x.bin") == read(folders, "sub\\x.bin") == b"x"
        assert read(folders, ".\\sub\\..\\sub\\x.bin") == b"x"

    def test_absolute_paths_inside(self, folders):
        assert read(folders, folders / "model" / "model.bin") == b"model"
        assert read(folders, "../current/current.bin") == b"current"

    @pytest.mark.parametrize("source", ["../other/other.bin", "sub/../../other/other.bin"])
    def test_outside(self, folders, source):
        for path in (source, folders / "model" / source):
            with pytest.raises(ModelError, match="--allow-outside-paths"):
                read(folders, path)
            assert read(folders, path, allow_outside_paths=True) == b"other"

    def test_links_are_followed_before_the_check(self, folders):
        (folders / "model" / "link").symlink_to(folders / "other" / "other.bin")
        (folders / "model" / "folder").symlink_to(folders / "other")
        (folders / "model" / "good").symlink_to(folders / "current" / "current.bin")
        for name in ("link", "folder/other.bin"):
            with pytest.raises(ModelError, match="--allow-outside-paths"):
                read(folders, name)
            assert read(folders, name, allow_outside_paths=True) == b"other"
        assert read(folders, "good") == b"current"

    def test_a_loop_of_links(self, folders):
        (folders / "model" / "loop").symlink_to("loop")
        with pytest.raises(ModelError, match="Resource 'r': "):
            read(folders, "loop")

    def test_only_regular_files(self, folders):
        os.mkfifo(folders / "model" / "fifo")
        for name in ("fifo", "sub", "."):
            with pytest.raises(ModelError, match="regular file"):
                read(folders, name)
        with pytest.raises(ModelError, match="regular file"):
            read(folders, "/dev/zero", allow_outside_paths=True)

    @pytest.mark.parametrize("name", ["none", "no\0ne", "\ud800", "x" * 5000, "", 5])
    def test_no_file(self, folders, name):
        with pytest.raises(ModelError, match="Resource 'r': Error parsing field 'initialValues'"):
            run(
                folders / "model",
                only({"r": listed({"sourcePath": name}, "UINT8")}),
            )

    def test_unreadable(self, folders, monkeypatch):
        opened = os.open

        def refusing(path, *arguments):
            if str(path).endswith(".bin"):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return opened(path, *arguments)

        monkeypatch.setattr(os, "open", refusing)  # permissions do not hold for every user
        with pytest.raises(ModelError, match="cannot be read: Permission denied"):
            read(folders, "model.bin")

    def test_a_file_that_becomes_shorter(self, folders):
        resource = {"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": "model.bin"}}
        model = load_model(write_model(folders / "model", only({"r": resource})))
        (folders / "model" / "model.bin").write_bytes(b"mod")
        with pytest.raises(ModelError, match="shorter"):
            model.resources["r"].allocate()


class TestTargets:
    def test_raw_in_the_current_folder(self, folders):
        write(folders, "new/sub/out.dat")
        assert (folders / "current/new/sub/out.dat").read_bytes() == b"\1\2\3\0"
        write(folders, "new\\sub\\out.dat", listed([7], "UINT8", sizeInBytes=1))
        assert (folders / "current/new/sub/out.dat").read_bytes() == b"\7"

    def test_output_dir(self, folders):
        write(folders, "out.dat", output_dir=folders / "other" / "made")
        assert (folders / "other/made/out.dat").exists()
        write(folders, folders / "other/made/b.dat", output_dir=folders / "other" / "made")
        assert (folders / "other/made/b.dat").exists()

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({}, [1, 2, 3]),
            ({"dimensions": []}, [1, 2, 3]),
            ({"dimensions": [3, 1]}, [[1], [2], [3]]),
            ({"dimensions": [2]}, [1, 2]),
        ],
    )
    def test_npy(self, folders, fields, expected):
        write(folders, "out.NPY", listed([1, 2, 3], "FLOAT16"), **fields)
        found = np.load(folders / "current" / "out.NPY")
        assert found.dtype == "f2"
        assert found.tolist() == expected

    def test_npy_of_a_buffer_with_a_size_of_its_own(self, folders):
        write(folders, "out.npy", listed([1, 2, 3], "UINT8", sizeInBytes=5))
        assert np.load("out.npy").tolist() == [1, 2, 3, 0, 0]

    @pytest.mark.parametrize("dimensions", [[4], [2**32 - 1] * 32, [1] * 33, "3", [1.0], [-1]])
    def test_wrong_dimensions(self, folders, dimensions):
        with pytest.raises(ModelError, match="index 0: Error parsing field 'dimensions'"):
            write(folders, "out.npy", dimensions=dimensions)
        assert not (folders / "current" / "out.npy").exists()

    @pytest.mark.parametrize(
        "target",
        [
            "../other/x",
            "sub/../../x",
            "/tmp/x",
            "..",
            ".",
            "",
            "~/../../x",
            "..\\x",
            "link/x",
            "file",
        ],
    )
    def test_outside(self, folders, target):
        (folders / "current" / "link").symlink_to(folders / "other")
        (folders / "current" / "file").symlink_to(folders / "other" / "new")
        before = {*folders.rglob("*")}
        with pytest.raises(ModelError, match=r"index 0: .*'targetPath': .*--allow-outside-paths"):
            write(folders, target)
        assert {*folders.rglob("*")} - before == {folders / "model" / "model.json"}

    def test_outside_when_it_is_allowed(self, folders):
        write(folders, "../other/x", allow_outside_paths=True)
        assert (folders / "other" / "x").read_bytes() == b"\1\2\3\0"

    @pytest.mark.parametrize("target", [".profile", ".git/hooks/x", "sub/.hidden/x"])
    def test_hidden(self, folders, target):
        with pytest.raises(ModelError, match="not hidden"):
            write(folders, target)
        write(folders, target, allow_outside_paths=True)
        assert (folders / "current" / target).exists()

    def test_nothing_runs_before_targets_are_checked(self, folders):
        commands = [
            {"type": "writeFile", "resource": "r", "targetPath": "good"},
            {"type": "writeFile", "resource": "r", "targetPath": "../bad"},
        ]
        with pytest.raises(ModelError, match="index 1"):
            run(folders / "model", only({"r": listed([1])}, commands), Limits())
        assert not (folders / "current" / "good").exists()

    def test_only_regular_files(self, folders):
        os.mkfifo(folders / "current" / "fifo")
        for target in ("fifo", "sub", "current.bin/x"):
            with pytest.raises(
                ModelError, match=r"index 0: (Expected a regular file|File .* cannot)"
            ):
                write(folders, target)
        with pytest.raises(ModelError, match="regular file"):
            write(folders, "/dev/null", allow_outside_paths=True)

    @pytest.mark.parametrize("target", ["a.png", "a.JPG"])
    def test_images(self, folders, target):
        with pytest.raises(ModelError, match="images are not written"):
            write(folders, target)

    def test_npy_needs_a_type(self, folders):
        values = {"initialValues": [{"type": "UINT8", "value": 1}]}
        write(folders, "a.bin", values)
        with pytest.raises(ModelError, match="needs an 'initialValuesDataType'"):
            write(folders, "a.npy", values)

    def test_what_is_written_can_be_read(self, folders):
        write(folders, "a.npy", listed([0.5, "nan", 3], "FLOAT64"))
        resource = {"initialValues": {"sourcePath": "a.npy"}}
        _, buffers = run(folders / "model", only({"r": resource}))
        assert buffers["r"].tobytes() == np.array([0.5, np.nan, 3]).tobytes()


@pytest.mark.parametrize("name", ["none.json", ".", "fifo"])
def test_a_model_that_is_no_file(tmp_path, name):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ModelError, match=r"cannot be read|regular file"):
        load_model(tmp_path / name)


def test_the_size_of_the_text_is_limited(tmp_path):
    path = write_model(tmp_path, only())
    path.write_text(path.read_text() + " " * 2**20)
    load_model(path)
    with pytest.raises(ModelError, match=r"at most 1048576 bytes .*--memory-limit"):
        load_model(path, Limits(memory_limit=2**24))


@pytest.mark.parametrize("depth", [200, 900, 980, 1000, 100_000])
def test_deep_nesting(tmp_path, depth):
    for nested in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        for text in (
            f'{{"resources": {nested}, "dispatchables": {{}}, "commands": []}}',
            f'{{"resources": {{"r": {{"initialValues": {nested}}}}}, "dispatchables": {{}}, '
            '"commands": []}',
            f'{{"resources": {{}}, "dispatchables": {{"d": {{"type": "SPLIT", "executionFlags": '
            f'{nested}}}}}, "commands": []}}',
            f'{{"resources": {{}}, "dispatchables": {{"d": {{"type": "SPLIT", "InputTensor": '
            f'{{"DataType": {nested}, "Sizes": [1]}}}}}}, "commands": []}}',
        ):
            with pytest.raises(ModelError):
                load_model(write_model(tmp_path, text))
