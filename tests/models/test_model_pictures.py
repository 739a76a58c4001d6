"""Pictures that models read and write."""

import sys

import numpy as np
import pytest
from model_files import first_values, only, run, value_resource, write_target

from anydml import ModelError
from anydml.models import Limits

image = pytest.importorskip("PIL.Image")

PIXELS = np.random.default_rng(5).integers(0, 256, (4, 6, 4), np.uint8)
MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def picture(channels):
    pixels = PIXELS[..., :channels]
    return image.fromarray(pixels.squeeze(-1) if channels == 1 else pixels)


def from_file(name="a.png", data_type="FLOAT32", **fields):
    return value_resource({"sourcePath": name}, data_type, **fields)


@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_picture_that_is_read(tmp_path, channels, data_type):
    picture(channels).save(tmp_path / "a.PNG")
    dtype = data_type.lower()
    _, own = first_values(tmp_path, from_file("a.PNG", data_type), dtype)
    expected = (PIXELS[..., :channels].transpose(2, 0, 1) / np.float32(255)).astype(dtype)
    assert own.tolist() == expected.ravel().tolist()
    sizes = [1, channels, 4, 6]
    resource = from_file("a.PNG", data_type, resampleSize=sizes, resampleMode="scale")
    assert first_values(tmp_path, resource, dtype)[1].tolist() == own.tolist()


def test_other_sizes_and_channels(tmp_path):
    picture(3).save(tmp_path / "a.jpg")
    _, values = first_values(tmp_path, from_file("a.jpg", resampleSize=[1, 1, 2, 9]), "f4")
    grey = image.open(tmp_path / "a.jpg").convert("L").resize((9, 2), image.Resampling.BICUBIC)
    np.testing.assert_array_equal(values, (np.asarray(grey, np.float32) / np.float32(255)).ravel())


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_what_is_read_can_be_written(tmp_path, channels):
    picture(channels).save(tmp_path / "a.png")
    command = {"type": "writeFile", "resource": "r", "targetPath": "sub/b.png",
               "dimensions": [1, channels, 4, 6]}  # fmt: skip
    run(tmp_path, only({"r": from_file()}, [command]), Limits(tmp_path / "out"))
    with image.open(tmp_path / "out/sub/b.png") as written:
        assert (written.mode, written.size) == (MODES[channels], (6, 4))
        np.testing.assert_array_equal(np.asarray(written).reshape(4, 6, channels),
                                      PIXELS[..., :channels])  # fmt: skip


def test_values_that_no_pixel_has(folders):
    values = value_resource([-1, "nan", 0.5, "inf", 0.7, 0.2])
    write_target(folders, "a.png", values, dimensions=[1, 1, 2, 3])
    with image.open(folders / "current/model.out/a.png") as written:
        assert np.asarray(written).tolist() == [[0, 0, 128], [255, 178, 51]]


@pytest.mark.parametrize(
    ("name", "values", "dimensions", "message"),
    [
        ("a.png", value_resource([1, 2]), [1, 1, 1, 3], "at most 2 elements"),
        ("a.png", value_resource([1, 2]), [1, 2, 1, 1], r"channels \(1, 3 or 4\)"),
        ("a.jpg", value_resource([1] * 4), [1, 4, 1, 1], r"channels \(1 or 3\)"),
        ("a.JPG", value_resource([1] * 6), [2, 3, 1, 1], "Expected 1, channels"),
        ("a.png", value_resource([1, 2]), [1, 2], "Expected 1, channels"),
        ("a.png", value_resource([1, 2], "UINT8"), [1, 1, 1, 2], "FLOAT32 or FLOAT16"),
        ("a.png", {"initialValues": [{"type": "INT8", "value": 1}]}, [1, 1, 1, 1],
         "needs an 'initialValuesDataType'"),
    ],
)  # fmt: skip
def test_a_picture_that_is_not_written(folders, name, values, dimensions, message):
    with pytest.raises(ModelError, match=message):
        write_target(folders, name, values, dimensions=dimensions)


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        (from_file("none.png"), "No such file"),
        (from_file("broken.png"), "File '.*broken.png': it cannot be decoded"),
        (from_file("short.png"), "File '.*short.png': it cannot be decoded"),
        (from_file("gif.png"), "it cannot be decoded"),
        (from_file("good.png", "INT32"), "expected FLOAT32 or FLOAT16"),
        (from_file("good.png", resampleSize=[1, 3, 4]), "resampleSize: expected 1, channels"),
        (from_file("good.png", resampleSize=[2, 3, 4, 4]), "resampleSize: expected 1, channels"),
        (from_file("good.png", resampleSize=[1, 3, 0, 4]), "resampleSize: expected 1, channels"),
        (from_file("good.png", resampleMode="crop"), "resampleMode: expected 'scale'"),
        (from_file("good.png", resampleSize=[1, 3, 9999, 9999]), "--memory-limit"),
        (from_file("large.png", resampleSize=[1, 3, 4, 4]), "2000 x 2000 pixels"),
    ],
)
def test_a_picture_that_is_not_read(tmp_path, resource, message):
    picture(3).save(tmp_path / "good.png")
    picture(3).save(tmp_path / "gif.gif")
    (tmp_path / "gif.gif").rename(tmp_path / "gif.png")
    (tmp_path / "broken.png").write_bytes(b"1234")
    (tmp_path / "short.png").write_bytes((tmp_path / "good.png").read_bytes()[:-30])
    image.new("L", (2000, 2000)).save(tmp_path / "large.png")
    with pytest.raises(ModelError, match=message) as caught:
        run(tmp_path, only({"r": resource}), Limits(tmp_path / "out", memory_limit=2**20))
    assert str(caught.value).startswith("Resource 'r': ")


def test_members_of_pictures_elsewhere_are_warned_of(tmp_path):
    from model_files import write_model

    from anydml.models import load_model

    path = write_model(tmp_path, only({"r": value_resource([1.0], resampleSize=[1, 1, 1, 1])}))
    assert "nothing reads member 'resampleSize'" in str(load_model(path).warnings)


def test_without_pillow(tmp_path, folders, monkeypatch):
    picture(3).save(tmp_path / "a.png")
    monkeypatch.setitem(sys.modules, "PIL", None)
    message = r"Images need Pillow: .*pip install 'anydml\[image\]'"
    with pytest.raises(ModelError, match=message):
        first_values(tmp_path, from_file(), "f4")
    with pytest.raises(ModelError, match=message):
        write_target(folders, "a.png", dimensions=[1, 1, 1, 1])
