"""What a model may read and write."""

import errno
import io
import os
import stat
import sys

import numpy as np
import pytest
from model_files import listed, only, run, write_model

from anydml import ModelError
from anydml.models import Limits, files, load_model, run_model


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A model's folder and the current one, beside a third."""
    for name in ("model", "current", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sub").mkdir()
        (tmp_path / name / f"{name}.bin").write_bytes(name.encode())
    monkeypatch.chdir(tmp_path / "current")
    return tmp_path


def source_model(name):
    resource = {"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": str(name)}}
    return only({"r": resource})


def read(folders, source, **limits):
    _, buffers = run(folders / "model", source_model(source), Limits(**limits))
    return buffers["r"].tobytes().rstrip(b"\0")


def target_model(target, resource=None, **fields):
    command = {"type": "writeFile", "resource": "r", "targetPath": str(target)}
    return only({"r": resource or listed([1, 2, 3], "UINT8")}, [command | fields])


def write(folders, target, resource=None, limits=None, **fields):
    return run(folders / "model", target_model(target, resource, **fields), limits or Limits())


class Swap:
    """Does something just before the first call of `os.open` for a name, as another process may."""

    def __init__(self, monkeypatch, name, change):
        self.name, self.change, self.done = name, change, False
        self.open = os.open
        monkeypatch.setattr(files.os, "open", self)

    def __call__(self, path, *arguments, **options):
        if path == self.name and not self.done:
            self.done = True
            self.change()
        return self.open(path, *arguments, **options)


class TestSources:
    def test_beside_the_model_only(self, folders):
        assert read(folders, "model.bin") == b"model"
        with pytest.raises(ModelError, match=r"current.bin' cannot be read: No such file"):
            read(folders, "current.bin")

    def test_another_folder_instead(self, folders):
        assert read(folders, "other.bin", input_dir=folders / "other") == b"other"
        with pytest.raises(ModelError, match=r"model.bin' cannot be read: No such file"):
            read(folders, "model.bin", input_dir=folders / "other")

    def test_both_slashes(self, folders):
        (folders / "model" / "sub" / "x.bin").write_bytes(b"x")
        assert read(folders, "sub/x.bin") == read(folders, "sub\\x.bin") == b"x"
        assert read(folders, ".\\sub\\..\\sub\\x.bin") == b"x"

    def test_absolute_paths_inside(self, folders):
        (folders / "named").symlink_to(folders / "model")
        for folder in ("model", "named"):
            path = folders / folder / "model.bin"
            assert read(folders, path, input_dir=folders / folder) == b"model"
        assert read(folders, folders / "model/model.bin", input_dir=folders / "named") == b"model"

    @pytest.mark.parametrize(
        "source", ["../other/other.bin", "sub/../../other/other.bin", "..", ".", "a/.."]
    )
    def test_outside(self, folders, source):
        with pytest.raises(ModelError, match=r"'sourcePath': Expected a file inside folder '.*mod"):
            read(folders, source)

    def test_absolute_paths_outside(self, folders):
        for path in ("/etc/hostname", folders / "other" / "other.bin", folders / "model2"):
            with pytest.raises(ModelError, match="Expected a file inside folder"):
                read(folders, path)

    def test_no_hidden_files(self, folders):
        (folders / "model" / ".hidden").mkdir()
        (folders / "model" / ".hidden" / "x").write_bytes(b"x")
        (folders / "model" / ".x").write_bytes(b"x")
        for name in (".x", ".hidden/x", "sub/../.x", "sub\\..\\.x", folders / "model" / ".x"):
            with pytest.raises(ModelError, match="Expected a file that is not hidden, got"):
                read(folders, name)

    def test_links_are_not_followed(self, folders):
        (folders / "model" / "link").symlink_to(folders / "other" / "other.bin")
        (folders / "model" / "folder").symlink_to(folders / "other")
        (folders / "model" / "good").symlink_to(folders / "model" / "model.bin")
        for name in ("link", "folder/other.bin", "good"):
            with pytest.raises(ModelError, match=r"'(link|folder|good)' is a link, and links are"):
                read(folders, name)

    def test_the_users_own_links_are(self, folders):
        (folders / "link").symlink_to(folders / "model")
        (folders / "link.json").symlink_to(write_model(folders / "model", only()))
        load_model(folders / "link.json")
        assert read(folders, "model.bin", input_dir=folders / "link") == b"model"

    def test_a_loop_of_links(self, folders):
        (folders / "model" / "loop").symlink_to("loop")
        with pytest.raises(ModelError, match=r"Resource 'r': .* is a link"):
            read(folders, "loop")
        with pytest.raises(ModelError, match="Expected a folder, got"):
            read(folders, "x", input_dir=folders / "model" / "loop")

    def test_only_regular_files(self, folders):
        os.mkfifo(folders / "model" / "fifo")
        for name in ("fifo", "sub"):
            with pytest.raises(ModelError, match="regular file"):
                read(folders, name)
        with pytest.raises(ModelError, match="regular file"):
            read(folders, "zero", input_dir="/dev")

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("none", "No such file or directory"),
            ("none/x", "No such file or directory"),
            ("model.bin/x", "Not a directory"),
            ("no\0ne", "printable"),
            ("no\nne", "printable"),
            ("\ud800", "printable"),
            ("\x1b[2J", "printable"),
            ("\u202egpj.x", "printable"),
            ("x" * 256, "at most 255 bytes"),
            ("é" * 128, "at most 255 bytes"),
            ("x/" * 600, "at most 1024 bytes"),
            ("", "a file's path"),
            ("/", "a file's path"),
            ("model.bin/", "a file's path"),
            (5, "Expected a string"),
        ],
    )
    def test_no_file(self, folders, name, message):
        resource = listed({"sourcePath": name}, "UINT8")
        with pytest.raises(ModelError, match=message) as caught:
            run(folders / "model", only({"r": resource}))
        assert str(caught.value).startswith("Resource 'r': Error parsing field 'initialValues'")
        assert str(caught.value).isprintable()

    def test_unreadable(self, folders, monkeypatch):
        def refuse():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        Swap(monkeypatch, "model.bin", refuse)  # permissions do not hold for every user
        with pytest.raises(ModelError, match=r"model.bin' cannot be read: Permission denied"):
            read(folders, "model.bin")

    def test_standard_input_has_no_files_beside_it(self, folders, monkeypatch):
        path = write_model(folders / "model", source_model("model.bin"))
        (folders / "current" / "model.bin").write_bytes(b"secret")

        def piped():
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))

        piped()
        with pytest.raises(ModelError, match=r"Expected no files.*--input-dir.*'model.bin'"):
            load_model("-")
        piped()
        buffers = run_model(load_model("-", Limits(input_dir=folders / "model")))
        assert buffers["r"].tobytes() == b"model\0\0\0"


class TestSwapped:
    """Links and files that come between a check and the use."""

    @pytest.mark.parametrize("swapped", ["file", "folder", "root"])
    def test_links_swapped_in_after_the_model_was_read(self, folders, swapped):
        (folders / "model" / "sub" / "x.bin").write_bytes(b"other")
        (folders / "other" / "x.bin").write_bytes(b"other")
        (folders / "other" / "sub" / "x.bin").write_bytes(b"other")
        model = load_model(write_model(folders / "model", source_model("sub/x.bin")))
        place = (
            folders / {"file": "model/sub/x.bin", "folder": "model/sub", "root": "model"}[swapped]
        )
        place.rename(folders / "moved")
        place.symlink_to(
            folders / {"file": "other/x.bin", "folder": "other", "root": "other"}[swapped]
        )
        with pytest.raises(ModelError, match="is a link, and links are not followed"):
            model.resources["r"].allocate()

    @pytest.mark.parametrize("swapped", ["x.bin", "sub"])
    def test_a_link_swapped_in_while_the_path_is_walked(self, folders, monkeypatch, swapped):
        folder = folders / "model" / "sub"
        (folder / "x.bin").write_bytes(b"x")
        (folders / "other" / "x.bin").write_bytes(b"other")
        place, to = {
            "x.bin": (folder / "x.bin", folders / "other" / "x.bin"),
            "sub": (folder, folders / "other"),
        }[swapped]

        def change():
            place.rename(folders / "moved")
            place.symlink_to(to)

        swap = Swap(monkeypatch, swapped, change)
        with pytest.raises(ModelError, match="is a link, and links are not followed"):
            read(folders, "sub/x.bin")
        assert swap.done

    def test_a_pipe_swapped_in(self, folders):
        model = load_model(write_model(folders / "model", source_model("model.bin")))
        (folders / "model" / "model.bin").unlink()
        os.mkfifo(folders / "model" / "model.bin")
        with pytest.raises(ModelError, match="Expected a regular file"):
            model.resources["r"].allocate()

    @pytest.mark.parametrize("now", [b"mod", b"", b"model and more", b"MODEL"])
    def test_a_file_that_changes_after_the_model_was_read(self, folders, now):
        path = folders / "model" / "model.bin"
        model = load_model(write_model(folders / "model", source_model("model.bin")))
        before = path.stat()
        path.write_bytes(now)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
        with pytest.raises(ModelError, match=r"model.bin' has changed since the model was read"):
            model.resources["r"].allocate()

    @pytest.mark.parametrize("size", [2, 10])
    def test_a_file_that_changes_while_it_is_read(self, folders, monkeypatch, size):
        path = folders / "model" / "model.bin"
        model = load_model(write_model(folders / "model", source_model("model.bin")))
        known = files.state
        states = []

        def state(file):
            states.append(known(file))
            if len(states) == 1:
                os.truncate(path, size)
            return states[-1]

        monkeypatch.setattr("anydml.models.resources.state", state)
        with pytest.raises(ModelError, match="has changed since the model was read"):
            model.resources["r"].allocate()

    @pytest.mark.parametrize("overwrite", [False, True])
    @pytest.mark.parametrize("swapped", ["made", "made/x.bin"])
    def test_a_target_swapped_for_a_link_after_the_check(
        self, folders, monkeypatch, swapped, overwrite
    ):
        place, to = folders / "out" / swapped, folders / "other"
        (folders / "out" / "made").mkdir(parents=True)
        if overwrite:
            (folders / "out" / "made" / "x.bin").write_bytes(b"old")
        if swapped != "made":
            to /= "other.bin"

        def swap(*_):
            if place.exists():
                place.rename(folders / "moved")
            place.symlink_to(to)
            return iter(())

        monkeypatch.setattr("anydml.models.runner.run_problems", swap)
        before = {*(folders / "other").rglob("*")}
        with pytest.raises(ModelError, match="link, and links are not followed"):
            write(folders, "made/x.bin", limits=Limits(folders / "out", overwrite=overwrite))
        assert {*(folders / "other").rglob("*")} == before
        assert (folders / "other" / "other.bin").read_bytes() == b"other"

    def test_a_target_swapped_for_a_link_just_before_it_is_replaced(self, folders, monkeypatch):
        target, rename = folders / "out" / "x.bin", os.rename
        target.parent.mkdir()
        target.write_bytes(b"old")

        def swap(*arguments, **options):
            target.unlink()
            target.symlink_to(folders / "other" / "other.bin")
            rename(*arguments, **options)

        monkeypatch.setattr(files.os, "rename", swap)
        write(folders, "x.bin", limits=Limits(folders / "out", overwrite=True))
        assert target.read_bytes() == b"\1\2\3\0"
        assert not target.is_symlink()
        assert (folders / "other" / "other.bin").read_bytes() == b"other"


class TestTargets:
    def test_a_new_folder_named_after_the_model(self, folders):
        text, _ = write(folders, "sub/out.dat")
        assert text == "Files are written to 'model.out'.\n"
        assert (folders / "current/model.out/sub/out.dat").read_bytes() == b"\1\2\3\0"
        assert {path.name for path in (folders / "current").iterdir()} == {
            "current.bin", "sub", "model.out",
        }  # fmt: skip

    def test_it_is_refused_when_it_exists(self, folders):
        write(folders, "out.dat")
        with pytest.raises(ModelError, match=r"^Output folder 'model.out' exists: .*--overwrite"):
            write(folders, "other.dat")
        assert [path.name for path in (folders / "current/model.out").iterdir()] == ["out.dat"]
        write(folders, "out.dat", listed([7], "UINT8", sizeInBytes=1), Limits(overwrite=True))
        assert (folders / "current/model.out/out.dat").read_bytes() == b"\7"

    @pytest.mark.parametrize("overwrite", [False, True])
    @pytest.mark.parametrize("to", ["other", "none"])
    def test_it_is_no_link(self, folders, overwrite, to):
        (folders / "current" / "model.out").symlink_to(folders / to)
        before = {*(folders / "other").rglob("*")}
        with pytest.raises(ModelError, match=r"exists|is a link"):
            write(folders, "out.dat", limits=Limits(overwrite=overwrite))
        assert {*(folders / "other").rglob("*")} == before
        assert not (folders / "none").exists()

    def test_it_appears_between_check_and_run(self, folders, monkeypatch):
        monkeypatch.setattr("anydml.models.runner.run_problems", lambda *_: iter(()))
        (folders / "current" / "model.out").mkdir()
        with pytest.raises(ModelError, match=r"Output folder 'model.out' cannot be made: File exi"):
            write(folders, "out.dat")

    def test_a_model_that_writes_nothing_leaves_nothing(self, folders):
        text, _ = run(folders / "model", only({"r": listed([1])}), Limits())
        assert text == ""
        assert not (folders / "current" / "model.out").exists()

    def test_a_run_that_fails_before_it_writes_leaves_nothing(self, folders, monkeypatch):
        model = load_model(write_model(folders / "model", target_model("out.dat")))
        monkeypatch.setattr("anydml.models.runner._run", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_model(model, limits=Limits(), write=lambda _: None)
        assert not (folders / "current" / "model.out").exists()

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
        assert write(folders, "out.dat", limits=Limits(out))[0] == ""
        write(folders, "a\\b.dat", limits=Limits(out))
        write(folders, out / "c.dat", limits=Limits(out))
        assert {path.name for path in out.rglob("*")} == {"out.dat", "a", "b.dat", "c.dat"}

    def test_output_dir_may_be_behind_a_link(self, folders):
        (folders / "link").symlink_to(folders / "other")
        write(folders, "out.dat", limits=Limits(folders / "link"))
        assert (folders / "other" / "out.dat").exists()

    def test_nothing_is_replaced(self, folders):
        before = (folders / "other" / "other.bin").read_bytes()
        with pytest.raises(ModelError, match=r"index 0: File '.*' cannot be written: it exists \("):
            write(folders, "other.bin", limits=Limits(folders / "other"))
        assert (folders / "other" / "other.bin").read_bytes() == before

    def test_nothing_is_replaced_that_comes_after_the_check(self, folders, monkeypatch):
        monkeypatch.setattr("anydml.models.runner.run_problems", lambda *_: iter(()))
        with pytest.raises(ModelError, match=r"index 0: File '.*' cannot be written: it exists \("):
            write(folders, "other.bin", limits=Limits(folders / "other"))
        monkeypatch.setattr(files.Output, "_replaced", lambda *_: None)  # and just before opening
        with pytest.raises(ModelError, match="cannot be written: File exists"):
            write(folders, "other.bin", limits=Limits(folders / "other"))
        assert (folders / "other" / "other.bin").read_bytes() == b"other"

    def test_a_run_may_write_its_own_files_again(self, folders):
        commands = [
            {"type": "writeFile", "resource": name, "targetPath": "a/x"} for name in ("r", "s")
        ]
        resources = {"r": listed([1], "UINT8"), "s": listed([2], "UINT8")}
        run(folders / "model", only(resources, commands), Limits())
        assert (folders / "current/model.out/a/x").read_bytes() == b"\2\0\0\0"
        assert len([*(folders / "current/model.out/a").iterdir()]) == 1

    def test_overwriting(self, folders):
        target = folders / "other" / "other.bin"
        target.chmod(0o640)
        os.link(target, folders / "second")
        write(folders, "other.bin", limits=Limits(folders / "other", overwrite=True))
        assert target.read_bytes() == b"\1\2\3\0"
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
        assert (folders / "second").read_bytes() == b"other"  # another name of the old file
        assert {path.name for path in (folders / "other").iterdir()} == {"other.bin", "sub"}

    def test_overwriting_what_is_protected(self, folders):
        (folders / "other" / "other.bin").chmod(0o444)
        with pytest.raises(ModelError, match="it exists and is write-protected"):
            write(folders, "other.bin", limits=Limits(folders / "other", overwrite=True))

    @pytest.mark.parametrize("overwrite", [False, True])
    def test_nothing_is_left_of_a_file_that_fails(self, folders, monkeypatch, overwrite):
        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr("anydml.models.npy.write", full)
        (folders / "other" / "x.npy").write_bytes(b"old") if overwrite else None
        before = {path: path.read_bytes() for path in (folders / "other").glob("*.*")}
        with pytest.raises(ModelError, match=r"index 0: File .* cannot be written: No space left"):
            write(folders, "x.npy", limits=Limits(folders / "other", overwrite=overwrite))
        assert {path: path.read_bytes() for path in (folders / "other").glob("*.*")} == before
        assert len([*(folders / "other").iterdir()]) == len(before) + 1

    def test_a_folder_that_may_not_be_written(self, folders, monkeypatch):
        monkeypatch.setattr(files.os, "access", lambda *_, **__: False)
        with pytest.raises(
            ModelError, match=r"index 0: File .* cannot be written: Permission deni"
        ):
            write(folders, "x.npy")
        assert not (folders / "current" / "model.out").exists()

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
        found = np.load(folders / "current" / "model.out" / "out.NPY")
        assert found.dtype == "f2"
        assert found.tolist() == expected

    def test_npy_of_a_buffer_with_a_size_of_its_own(self, folders):
        write(folders, "out.npy", listed([1, 2, 3], "UINT8", sizeInBytes=5))
        assert np.load("model.out/out.npy").tolist() == [1, 2, 3, 0, 0]

    @pytest.mark.parametrize("dimensions", [[4], [2**32 - 1] * 32, [1] * 33, "3", [1.0], [-1]])
    def test_wrong_dimensions(self, folders, dimensions):
        with pytest.raises(ModelError, match="index 0: Error parsing field 'dimensions'"):
            write(folders, "out.npy", dimensions=dimensions)
        assert not (folders / "current" / "model.out").exists()

    @pytest.mark.parametrize(
        "target", ["../other/x", "sub/../../x", "/tmp/x", "..", ".", "~/../../x", "..\\x", "a/.."]
    )
    def test_outside(self, folders, target):
        before = {*folders.rglob("*")}
        with pytest.raises(
            ModelError, match=r"index 0: .*'targetPath': Expected a file inside fol"
        ):
            write(folders, target)
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
            write(folders, target, limits=Limits(other, overwrite=overwrite))
        assert {*folders.rglob("*")} - before == {folders / "model" / "model.json"}
        assert (folders / "model" / "model.bin").read_bytes() == b"model"

    @pytest.mark.parametrize("target", [".profile", ".git/hooks/x", "sub/.hidden/x", "a/../.x"])
    def test_hidden(self, folders, target):
        with pytest.raises(ModelError, match="not hidden"):
            write(folders, target)

    @pytest.mark.parametrize("target", ["", "x/", "a\0b", "a\nb", "\ud800", "x" * 256, "x/" * 999])
    def test_names_that_are_none(self, folders, target):
        with pytest.raises(ModelError, match=r"index 0: .*'targetPath': Expected ") as caught:
            write(folders, target)
        assert str(caught.value).isprintable()

    def test_nothing_runs_before_targets_are_checked(self, folders):
        commands = [
            {"type": "writeFile", "resource": "r", "targetPath": "good"},
            {"type": "writeFile", "resource": "r", "targetPath": "good/bad"},
        ]
        for order in (commands, commands[::-1]):
            with pytest.raises(ModelError, match=r"index 1: .* both as a file and as a folder"):
                run(folders / "model", only({"r": listed([1])}, order), Limits())
        assert not (folders / "current" / "model.out").exists()

    def test_only_regular_files(self, folders):
        os.mkfifo(folders / "other" / "fifo")
        for overwrite in (False, True):
            for target in ("fifo", "sub", "other.bin/x"):
                with pytest.raises(ModelError, match=r"index 0: File .*(no regular|Not a direc)"):
                    write(folders, target, limits=Limits(folders / "other", overwrite=overwrite))
        with pytest.raises(ModelError, match="no regular file"):
            write(folders, "null", limits=Limits("/dev", overwrite=True))

    def test_an_output_folder_that_is_none(self, folders):
        with pytest.raises(ModelError, match="cannot be written: Not a directory"):
            write(folders, "x", limits=Limits(folders / "other" / "other.bin"))

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
        limits = Limits(input_dir=folders / "current" / "model.out")
        _, buffers = run(folders / "model", only({"r": resource}), limits)
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
