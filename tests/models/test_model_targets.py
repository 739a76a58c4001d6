"""What a model may write: where, under which names, and what happens to files that exist."""

import errno
import os
import stat

import numpy as np
import pytest
from model_files import only, run, target_model, value_resource, write_model, write_target

from anydml import Device, ModelError
from anydml.models import Limits, files, load_model, run_model
from anydml.models import run as running
from anydml.models.check import Checks, run_problems


class TestTargets:
    def test_a_new_folder_named_after_the_model(self, folders):
        text, _ = write_target(folders, "sub/out.dat")
        assert text == "Files are written to 'model.out'.\n"
        assert (folders / "current/model.out/sub/out.dat").read_bytes() == b"\1\2\3\0"
        assert {path.name for path in (folders / "current").iterdir()} == {
            "current.bin", "sub", "model.out",
        }  # fmt: skip

    def test_it_is_refused_when_it_exists(self, folders):
        write_target(folders, "out.dat")
        with pytest.raises(ModelError, match=r"^Output folder 'model.out' exists: .*--overwrite"):
            write_target(folders, "other.dat")
        assert [path.name for path in (folders / "current/model.out").iterdir()] == ["out.dat"]
        write_target(
            folders, "out.dat", value_resource([7], "UINT8", sizeInBytes=1), Limits(overwrite=True)
        )
        assert (folders / "current/model.out/out.dat").read_bytes() == b"\7"

    @pytest.mark.parametrize("overwrite", [False, True])
    @pytest.mark.parametrize("to", ["other", "none"])
    def test_it_is_no_link(self, folders, overwrite, to):
        (folders / "current" / "model.out").symlink_to(folders / to)
        before = {*(folders / "other").rglob("*")}
        with pytest.raises(ModelError, match=r"exists|is a link"):
            write_target(folders, "out.dat", limits=Limits(overwrite=overwrite))
        assert {*(folders / "other").rglob("*")} == before
        assert not (folders / "none").exists()

    def test_it_appears_between_check_and_run(self, folders, monkeypatch):
        monkeypatch.setattr(running, "run_problems", lambda *_: iter(()))
        (folders / "current" / "model.out").mkdir()
        with pytest.raises(ModelError, match=r"Output folder 'model.out' cannot be made: File exi"):
            write_target(folders, "out.dat")

    def test_a_model_that_writes_nothing_leaves_nothing(self, folders):
        text, _ = run(folders / "model", only({"r": value_resource([1])}), Limits())
        assert text == ""
        assert not (folders / "current" / "model.out").exists()

    def test_a_run_that_fails_before_it_writes_leaves_nothing(self, folders, monkeypatch):
        model = load_model(write_model(folders / "model", target_model("out.dat")))
        monkeypatch.setattr(running, "_show", lambda *_: 1 / 0)
        (folders / "empty").mkdir()
        for limits in (Limits(), Limits(folders / "empty")):
            with pytest.raises(ZeroDivisionError):
                run_model(model, limits=limits, write=lambda _: None)
        assert not (folders / "current" / "model.out").exists()
        assert (folders / "empty").exists()  # it was there

    @pytest.mark.parametrize(
        ("name", "out"),
        [("m.JSON", "m.out"), ("m.txt", "m.txt.out"), (".m.json", "m.out"), ("..json", "model.out"),
         ("a\x1bb.json", "a_b.out")],
    )  # fmt: skip
    def test_its_name(self, folders, name, out):
        path = write_model(folders / "model", target_model("out.dat")).rename(folders / name)
        run_model(load_model(path), write=lambda _: None)
        assert (folders / "current" / out / "out.dat").exists()

    def test_output_dir(self, folders):
        out = folders / "other" / "made"
        assert write_target(folders, "out.dat", limits=Limits(out))[0] == ""
        write_target(folders, "a\\b.dat", limits=Limits(out))
        write_target(folders, out / "c.dat", limits=Limits(out))
        assert {path.name for path in out.rglob("*")} == {"out.dat", "a", "b.dat", "c.dat"}

    def test_output_dir_may_be_behind_a_link(self, folders):
        (folders / "link").symlink_to(folders / "other")
        write_target(folders, "out.dat", limits=Limits(folders / "link"))
        assert (folders / "other" / "out.dat").exists()

    def test_nothing_is_replaced(self, folders):
        before = (folders / "other" / "other.bin").read_bytes()
        limits = Limits(folders / "other")
        model = load_model(write_model(folders / "model", target_model("other.bin")), limits)
        (problem,) = run_problems(Checks(model, Device("cpu"), limits))
        assert "other.bin' cannot be written: it exists (--overwrite replaces files)." in problem
        with pytest.raises(ModelError, match=r"index 0: File '.*' cannot be written: it exists \("):
            write_target(folders, "other.bin", limits=Limits(folders / "other"))
        assert (folders / "other" / "other.bin").read_bytes() == before

    def test_nothing_is_replaced_that_comes_after_the_check(self, folders, monkeypatch):
        monkeypatch.setattr(running, "run_problems", lambda *_: iter(()))
        with pytest.raises(ModelError, match=r"index 0: File '.*' cannot be written: it exists \("):
            write_target(folders, "other.bin", limits=Limits(folders / "other"))
        monkeypatch.setattr(files.Output, "_replaced", lambda *_: None)  # and just before opening
        with pytest.raises(ModelError, match="cannot be written: File exists"):
            write_target(folders, "other.bin", limits=Limits(folders / "other"))
        assert (folders / "other" / "other.bin").read_bytes() == b"other"

    def test_a_run_may_write_its_own_files_again(self, folders):
        commands = [
            {"type": "writeFile", "resource": name, "targetPath": "a/x"} for name in ("r", "s")
        ]
        resources = {"r": value_resource([1], "UINT8"), "s": value_resource([2], "UINT8")}
        run(folders / "model", only(resources, commands), Limits())
        assert (folders / "current/model.out/a/x").read_bytes() == b"\2\0\0\0"
        assert len([*(folders / "current/model.out/a").iterdir()]) == 1

    def test_overwriting(self, folders):
        target = folders / "other" / "other.bin"
        target.chmod(0o640)
        os.link(target, folders / "second")
        write_target(folders, "other.bin", limits=Limits(folders / "other", overwrite=True))
        assert target.read_bytes() == b"\1\2\3\0"
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
        assert (folders / "second").read_bytes() == b"other"  # another name of the old file
        assert {path.name for path in (folders / "other").iterdir()} == {"other.bin", "sub"}

    def test_overwriting_what_is_protected(self, folders):
        (folders / "other" / "other.bin").chmod(0o555)
        with pytest.raises(ModelError, match="it exists and is write-protected"):
            write_target(folders, "other.bin", limits=Limits(folders / "other", overwrite=True))

    @pytest.mark.parametrize("overwrite", [False, True])
    def test_nothing_is_left_of_a_file_that_fails(self, folders, monkeypatch, overwrite):
        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(files.os, "write", full)
        (folders / "other" / "x.npy").write_bytes(b"old") if overwrite else None
        before = {path: path.read_bytes() for path in (folders / "other").glob("*.*")}
        with pytest.raises(ModelError, match=r"index 0: File .* cannot be written: No space left"):
            write_target(folders, "x.npy", limits=Limits(folders / "other", overwrite=overwrite))
        assert {path: path.read_bytes() for path in (folders / "other").glob("*.*")} == before
        assert len([*(folders / "other").iterdir()]) == len(before) + 1

    def test_a_folder_that_may_not_be_written(self, folders, monkeypatch):
        monkeypatch.setattr(files.os, "access", lambda *_, **__: False)
        with pytest.raises(
            ModelError, match=r"index 0: File .* cannot be written: Permission deni"
        ):
            write_target(folders, "x.npy")
        assert not (folders / "current" / "model.out").exists()

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({}, [1, 2, 3]),
            ({"dimensions": []}, [1, 2, 3]),
            ({"dimensions": [3, 1]}, [[1], [2], [3]]),
            ({"dimensions": [2]}, [1, 2]),
            ({"dimensions": [1] * 32}, np.ones((1,) * 32).tolist()),
        ],
    )
    def test_npy(self, folders, fields, expected):
        write_target(folders, "out.NPY", value_resource([1, 2, 3], "FLOAT16"), **fields)
        found = np.load(folders / "current" / "model.out" / "out.NPY")
        assert found.dtype == "f2"
        assert found.tolist() == expected

    def test_npy_of_a_buffer_with_a_size_of_its_own(self, folders):
        write_target(folders, "out.npy", value_resource([1, 2, 3], "UINT8", sizeInBytes=5))
        assert np.load("model.out/out.npy").tolist() == [1, 2, 3, 0, 0]

    def test_npy_of_values_behind_an_offset(self, folders):
        write_target(
            folders, "out.npy", value_resource([1, 2, 3], "UINT8", initialValuesOffsetInBytes=1)
        )
        assert np.load("model.out/out.npy").tolist() == [1, 2, 3]

    def test_who_may_read_and_write_a_new_file(self, folders):
        mask = os.umask(0)
        try:
            write_target(folders, "out.bin")
        finally:
            os.umask(mask)
        assert stat.S_IMODE(os.stat("model.out/out.bin").st_mode) == 0o666

    @pytest.mark.parametrize("dimensions", [[4], [2**32 - 1] * 32, [1] * 33, "3", [1.0], [-1]])
    def test_wrong_dimensions(self, folders, dimensions):
        with pytest.raises(ModelError, match=r"index 0: dimensions(\[0\])?: expected"):
            write_target(folders, "out.npy", dimensions=dimensions)
        assert not (folders / "current" / "model.out").exists()

    @pytest.mark.parametrize(
        "target", ["../other/x", "sub/../../x", "/tmp/x", "..", ".", "~/../../x", "..\\x", "a/.."]
    )
    def test_outside(self, folders, target):
        before = {*folders.rglob("*")}
        with pytest.raises(ModelError, match=r"index 0: .*targetPath: expected a file inside fol"):
            write_target(folders, target)
        assert {*folders.rglob("*")} - before == {folders / "model" / "model.json"}

    @pytest.mark.parametrize("target", ["link/x", "file", "sub/file"])
    @pytest.mark.parametrize("overwrite", [False, True])
    def test_links(self, folders, target, overwrite):
        other = folders / "other"
        (other / "link").symlink_to(folders / "model")
        (other / "file").symlink_to(folders / "model" / "model.bin")
        (other / "sub" / "file").symlink_to(folders / "model" / "new")
        before = {*folders.rglob("*")}
        with pytest.raises(ModelError, match="link, and links are not followed"):
            write_target(folders, target, limits=Limits(other, overwrite=overwrite))
        assert {*folders.rglob("*")} - before == {folders / "model" / "model.json"}
        assert (folders / "model" / "model.bin").read_bytes() == b"model"

    @pytest.mark.parametrize("target", [".profile", ".git/hooks/x", "sub/.hidden/x", "a/../.x"])
    def test_hidden(self, folders, target):
        with pytest.raises(ModelError, match="not hidden"):
            write_target(folders, target)

    @pytest.mark.parametrize("target", ["", "x/", "a\0b", "a\nb", "\ud800", "x" * 256, "x/" * 999])
    def test_names_that_are_none(self, folders, target):
        with pytest.raises(ModelError, match=r"index 0: .*targetPath: expected ") as caught:
            write_target(folders, target)
        assert str(caught.value).isprintable()

    def test_nothing_runs_before_targets_are_checked(self, folders):
        commands = [
            {"type": "writeFile", "resource": "r", "targetPath": "good"},
            {"type": "writeFile", "resource": "r", "targetPath": "good/bad"},
        ]
        for order in (commands, commands[::-1]):
            with pytest.raises(ModelError, match=r"index 1: .* both as a file and as a folder"):
                run(folders / "model", only({"r": value_resource([1])}, order), Limits())
        assert not (folders / "current" / "model.out").exists()

    def test_only_regular_files(self, folders):
        os.mkfifo(folders / "other" / "fifo")
        for overwrite in (False, True):
            for target in ("fifo", "sub", "other.bin/x"):
                with pytest.raises(ModelError, match=r"index 0: File .*(not a regular|Not a dire)"):
                    write_target(
                        folders, target, limits=Limits(folders / "other", overwrite=overwrite)
                    )
        with pytest.raises(ModelError, match="not a regular file"):
            write_target(folders, "null", limits=Limits("/dev", overwrite=True))

    def test_an_output_folder_that_is_none(self, folders):
        with pytest.raises(ModelError, match="cannot be written: Not a directory"):
            write_target(folders, "x", limits=Limits(folders / "other" / "other.bin"))

    def test_npy_needs_a_type(self, folders):
        values = {"initialValues": [{"type": "UINT8", "value": 1}]}
        write_target(folders, "a.bin", values)
        with pytest.raises(ModelError, match="needs an 'initialValuesDataType'"):
            write_target(folders, "a.npy", values)

    def test_what_is_written_can_be_read(self, folders):
        write_target(folders, "a.npy", value_resource([0.5, "nan", 3], "FLOAT64"))
        resource = {"initialValues": {"sourcePath": "a.npy"}}
        limits = Limits(input_dir=folders / "current" / "model.out")
        _, buffers = run(folders / "model", only({"r": resource}), limits)
        assert buffers["r"].tobytes() == np.array([0.5, np.nan, 3]).tobytes()
