"""What a model may read and write."""

import errno
import io
import os
import sys

import pytest
from model_files import only, run, value_resource, write_model, write_target

from anydml import ModelError
from anydml.models import Limits, files, load_model, open_folders, resources, run_model
from anydml.models import run as running
from anydml.models.files import Folder, parts_below


def source_model(name):
    resource = {"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": str(name)}}
    return only({"r": resource})


def read(folders, source, **limits):
    _, buffers = run(folders / "model", source_model(source), Limits(**limits))
    return buffers["r"].tobytes().rstrip(b"\0")


@pytest.fixture(autouse=True, params=[open_folders.HandleFolder, open_folders.PathFolder])
def form(request, monkeypatch):
    """Both ways of opening files: the second is for systems without `dir_fd`."""
    monkeypatch.setattr(open_folders, "FORM", request.param)
    if request.param is open_folders.PathFolder:  # without O_NOFOLLOW, too
        monkeypatch.setattr(files, "READ", open_folders.READ_USERS)
    return request.param


class Swap:
    """Does something just before the first call of `os.open` for a name, as another process may."""

    def __init__(self, monkeypatch, name, change):
        self.name, self.change, self.done = name, change, False
        self.open = os.open
        monkeypatch.setattr(files.os, "open", self)

    def __call__(self, path, *arguments, **options):
        if os.path.basename(path) == self.name and not self.done:
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
        with pytest.raises(ModelError, match=r"sourcePath: expected a file inside folder '.*mod"):
            read(folders, source)

    def test_absolute_paths_outside(self, folders):
        for path in ("/etc/hostname", folders / "other" / "other.bin", folders / "model2"):
            with pytest.raises(ModelError, match="expected a file inside folder"):
                read(folders, path)

    def test_no_hidden_files(self, folders):
        (folders / "model" / ".hidden").mkdir()
        (folders / "model" / ".hidden" / "x").write_bytes(b"x")
        (folders / "model" / ".x").write_bytes(b"x")
        for name in (".x", ".hidden/x", "sub/../.x", "sub\\..\\.x", folders / "model" / ".x"):
            with pytest.raises(ModelError, match="expected a file that is not hidden, got"):
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
            (5, "expected a string"),
        ],
    )
    def test_no_file(self, folders, name, message):
        resource = value_resource({"sourcePath": name}, "UINT8")
        with pytest.raises(ModelError, match=message) as caught:
            run(folders / "model", only({"r": resource}))
        assert str(caught.value).startswith("Resource 'r': initialValues")
        assert str(caught.value).isprintable()

    def test_the_longest_names(self, folders):
        folder = Folder.of(folders)
        for name in ("x" * 255, "a/" * 511 + "ab"):
            assert parts_below(folder, name) == tuple(name.split("/"))
        for name, maximum in (("x" * 256, 255), ("a/" * 511 + "abc", 1024)):
            with pytest.raises(ModelError, match=f"at most {maximum} bytes"):
                parts_below(folder, name)

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
        with pytest.raises(ModelError, match=r"expected no files.*--input-dir.*'model.bin'"):
            load_model("-")
        piped()
        buffers = run_model(load_model("-", Limits(input_dir=folders / "model")))
        assert buffers["r"].tobytes() == b"model"
        path.write_text(path.read_text().ljust(2**20 + 1))
        piped()
        with pytest.raises(ModelError, match="a model of at most 1048576 bytes"):
            load_model("-", Limits(memory_limit=2**24))
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(ModelError, match="Standard input is closed"):
            load_model("-")


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
    def test_a_link_swapped_in_while_the_path_is_walked(self, folders, monkeypatch, swapped, form):
        if swapped == "sub" and form is open_folders.PathFolder:
            pytest.skip("SECURITY.md does not promise it without handles of folders")
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

        def state(file):  # it has been read by now
            os.truncate(path, size)
            return known(file)

        monkeypatch.setattr(resources, "state", state)
        with pytest.raises(ModelError, match="has changed since the model was read"):
            model.resources["r"].allocate()

    def test_a_file_that_gives_fewer_bytes_than_it_says(self, folders, monkeypatch):
        path = folders / "model" / "model.bin"
        model = load_model(write_model(folders / "model", source_model("model.bin")))
        with open(path, "rb") as file:
            before = files.state(file)
        monkeypatch.setattr(resources, "state", lambda file: before)
        os.truncate(path, 2)
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

        monkeypatch.setattr(running, "run_problems", swap)
        before = {*(folders / "other").rglob("*")}
        with pytest.raises(ModelError, match="link, and links are not followed"):
            write_target(folders, "made/x.bin", limits=Limits(folders / "out", overwrite=overwrite))
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
        write_target(folders, "x.bin", limits=Limits(folders / "out", overwrite=True))
        assert target.read_bytes() == b"\1\2\3\0"
        assert not target.is_symlink()
        assert (folders / "other" / "other.bin").read_bytes() == b"other"


@pytest.mark.parametrize("name", ["none.json", ".", "fifo"])
def test_a_model_that_is_no_file(tmp_path, name):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ModelError, match=r"^File .* cannot be read: No|^Expected a regular file"):
        load_model(tmp_path / name)


def test_the_size_of_the_text_is_limited(tmp_path):
    path = write_model(tmp_path, only())
    path.write_text(path.read_text().ljust(2**20))
    load_model(path, Limits(memory_limit=2**24))
    path.write_text(path.read_text() + " ")
    load_model(path)
    with pytest.raises(ModelError, match=r"at most 1048576 bytes .*--memory-limit"):
        load_model(path, Limits(memory_limit=2**24))
    assert Limits(memory_limit=2**30).text_limit == 2**24
    assert Limits().memory_limit == 2**32


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
