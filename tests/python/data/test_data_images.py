# SPDX-License-Identifier: Apache-2.0
"""Images as they are found: every mode of Pillow, several images, EXIF, files that are cut off."""

import numpy as np
import pytest
import tenon
from PIL import Image
from tenon import data
from tenon.data.images import image_tensor

FORK = {"num_workers": 2, "multiprocessing_context": "fork"}


def test_images_in_folders(tmp_path):
    for name, colour in (("dog/a.png", (255, 0, 0)), ("cat/deep/b.PNG", (0, 0, 7))):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        Image.new("RGB", (4, 2), colour).save(path)
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    dataset = data.ImageFolder(tmp_path)
    assert dataset.classes == ["cat", "dog"] and dataset.class_to_idx == {"cat": 0, "dog": 1}
    image, label = dataset[0]
    assert label == 0 and image.shape == (3, 2, 4) and image.dtype == tenon.uint8
    assert image[:, 0, 0].tolist() == [0, 0, 7]
    sizes = data.ImageFolder(tmp_path, lambda image: image.size[0], lambda number: number + 10)
    assert sizes[1] == (4, 11)
    ((batch, labels),) = data.DataLoader(dataset, 2, **FORK)
    assert batch.shape == (2, 3, 2, 4) and labels.tolist() == [0, 1]
    (tmp_path / "dog" / "a.png").write_bytes(b"cut off")
    with pytest.raises(OSError, match="a.png: cannot identify"):
        dataset[1]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="expected images at .*got none in 0 folders"):
        data.ImageFolder(tmp_path / "empty")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "one").mkdir()
    return tmp_path / "one"


def only(folder, **options):
    return data.ImageFolder(folder.parent, **options)[0][0]


PIXELS = np.arange(24, dtype=np.uint8).reshape(2, 4, 3) * 10


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1", "CMYK"])
def test_modes_of_8_bits_become_rgb(folder, mode):
    image = Image.fromarray(PIXELS).convert(mode)
    path = folder / ("a.tif" if mode == "CMYK" else "a.png")
    image.save(path)
    got = only(folder)
    assert got.shape == (3, 2, 4) and got.dtype == tenon.uint8
    expected = np.asarray(image.convert("RGB")).transpose(2, 0, 1)
    assert got.numpy().tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("mode", "channels"), [("L", 1), ("LA", 2), ("RGBA", 4), ("P", 3), ("1", 1), ("CMYK", 4)]
)
def test_an_image_as_its_file_has_it(folder, mode, channels):
    image = Image.fromarray(PIXELS).convert(mode)
    image.save(folder / ("a.tif" if mode == "CMYK" else "a.png"))
    got = only(folder, mode=None)
    assert got.shape == (channels, 2, 4) and got.dtype == tenon.uint8
    seen = image.convert({"P": "RGB", "1": "L"}.get(mode, mode))
    assert got.permute([1, 2, 0]).numpy().tolist() == np.asarray(seen).reshape(2, 4, -1).tolist()


def test_grey_by_request(folder):
    Image.fromarray(PIXELS).save(folder / "a.png")
    assert only(folder, mode="L").shape == (1, 2, 4)


@pytest.mark.parametrize(
    ("dtype", "name"), [(np.uint16, "a.png"), (np.int32, "a.tif"), (np.float32, "a.tif")]
)
def test_wider_elements_are_not_cut_to_8_bits(folder, dtype, name):
    numbers = np.array([[0, 255, 256], [1000, 40000, 65535]], dtype)
    Image.fromarray(numbers).save(folder / name)
    with pytest.raises(
        OSError, match=r"a\.(png|tif): expected 8 bits for each element to convert to RGB"
    ):
        only(folder)
    got = only(folder, mode=None)
    assert got.shape == (1, 2, 3) and got.numpy()[0].tolist() == numbers.tolist()
    assert (
        got.dtype
        == {np.uint16: tenon.uint16, np.int32: tenon.int32, np.float32: tenon.float32}[dtype]
    )


def test_a_photograph_upright(folder):
    exif = Image.Exif()
    exif[0x0112] = 6  # a camera held on its side: to be rotated by 270 degrees
    Image.fromarray(PIXELS).save(folder / "a.png", exif=exif)
    stored = PIXELS.transpose(2, 0, 1)
    assert only(folder).numpy().tolist() == stored.tolist()
    upright = np.rot90(PIXELS, 3).transpose(2, 0, 1)
    assert only(folder, upright=True).numpy().tolist() == upright.tolist()


def test_the_first_of_several(folder):
    frames = [Image.new("RGB", (3, 2), (value, 0, 0)) for value in (200, 100, 50)]
    frames[0].save(folder / "a.gif", save_all=True, append_images=frames[1:])
    assert only(folder)[0].numpy().tolist() == [[200] * 3] * 2


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.webp", "a.tif"])
def test_a_file_that_is_cut_off(folder, name):
    random = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    path = folder / name
    Image.fromarray(random).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(OSError, match=rf"ImageFolder: .*one/{name}: "):
        only(folder)


def test_a_transform_gets_an_image_that_outlives_its_file(folder):
    Image.fromarray(PIXELS).save(folder / "a.png")
    image = only(folder, transform=lambda image: image)
    assert image.getpixel((1, 0)) == (30, 40, 50) and image.mode == "RGB"
    assert image_tensor(image.rotate(90, expand=True)).shape == (3, 4, 2)
