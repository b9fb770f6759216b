# SPDX-License-Identifier: Apache-2.0
"""Images in folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import Tensor

from .dataset import Dataset
from .optional import need

IMAGE_EXTENSIONS = (
    ".jpg",
    ".jpeg",
    ".png",
    ".bmp",
    ".gif",
    ".ppm",
    ".pgm",
    ".tif",
    ".tiff",
    ".webp",
)


class ImageFolder(Dataset):
    """Images of `root/<class>/.../<file>`: samples are (image, number of the class).

    Classes are the folders of `root` in alphabetical order: `classes` lists their names, `class_to_idx`
    maps them to numbers, `samples` lists (path, class). The image is what `transform` makes of the
    Pillow image; without a transform it is a tensor (channels, height, width). `target_transform` is given the
    number of the class. Needs Pillow.

    mode    the image is converted to this mode of Pillow first: "RGB", "L" for grey, "RGBA"; None: as the file
            has it. Images of 16 or 32 bits for each element do not fit into 8, and are an error
            unless `mode` is None: their tensors are uint16, int32 or float32
    upright rotate and mirror the image as its EXIF data says; False: as it is stored, as in torchvision

    Of a file with several images it is the first. A file that is cut off is an error.
    """

    def __init__(
        self,
        root: str | os.PathLike,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        extensions: Sequence[str] = IMAGE_EXTENSIONS,
        *,
        mode: str | None = "RGB",
        upright: bool = False,
    ) -> None:
        need("PIL.Image", "pillow", "ImageFolder")
        self.root = os.fspath(root)
        self.transform, self.target_transform = transform, target_transform
        self.mode, self.upright = mode, upright
        folders = [entry.name for entry in os.scandir(self.root) if entry.is_dir()]
        self.classes = sorted(folders)
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        endings = tuple(extension.lower() for extension in extensions)
        self.samples = [
            (path, number)
            for name, number in self.class_to_idx.items()
            for path in _files(os.path.join(self.root, name), endings)
        ]
        if not self.samples:
            raise ValueError(
                f"ImageFolder: expected images at {self.root}/<class>/<file> with one of the endings "
                f"{', '.join(endings)}, got none in {len(self.classes)} folders"
            )

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        from PIL import Image, ImageOps

        path, number = self.samples[index]
        try:
            with Image.open(path) as file:
                file.load()
                image = ImageOps.exif_transpose(file) if self.upright else file
                if self.mode is not None:
                    image = _converted(image, self.mode)
                image = image.copy() if image is file else image
        except Exception as error:
            raise OSError(f"ImageFolder: {path}: {error}") from error
        sample = image_tensor(image) if self.transform is None else self.transform(image)
        return sample, number if self.target_transform is None else self.target_transform(number)


# Elements of more than 8 bits, by Pillow's mode.
_WIDE = {
    "I;16": tenon.uint16,
    "I;16L": tenon.uint16,
    "I;16N": tenon.uint16,
    "I": tenon.int32,
    "F": tenon.float32,
}


def _converted(image: Any, mode: str) -> Any:
    if image.mode == mode:
        return image
    if image.mode.startswith(("I", "F")):
        raise ValueError(
            f"expected 8 bits for each element to convert to {mode}, got mode {image.mode}, of which Pillow "
            "would keep the low numbers alone; pass mode=None and scale it"
        )
    return image.convert(mode)


def image_tensor(image: Any) -> Tensor:
    """A Pillow image as a tensor (channels, height, width), of uint8 but for modes with wider elements. A
    palette is applied, and black and white become 0 and 255."""
    if image.mode in ("1", "P", "PA"):
        image = image.convert("L" if image.mode == "1" else "RGBA" if image.mode == "PA" else "RGB")
    if image.mode == "I;16B":
        raise ValueError(
            "image_tensor: expected elements in this machine's byte order, got mode I;16B"
        )
    dtype = _WIDE.get(image.mode, tenon.uint8)
    channels = len(image.getbands())
    pixels = tenon.frombuffer(
        bytearray(image.tobytes()), dtype, (image.height, image.width, channels)
    )
    return pixels.permute([2, 0, 1])


def _files(folder: str, endings: tuple[str, ...]) -> list[str]:
    return sorted(
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.lower().endswith(endings)
    )
