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
    Pillow image in mode RGB; without a transform it is a uint8 tensor (3, height, width).
    `target_transform` is given the number of the class. Needs Pillow.
    """

    def __init__(
        self,
        root: str | os.PathLike,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        extensions: Sequence[str] = IMAGE_EXTENSIONS,
    ) -> None:
        need("PIL.Image", "pillow", "ImageFolder")
        self.root = os.fspath(root)
        self.transform, self.target_transform = transform, target_transform
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
        from PIL import Image

        path, number = self.samples[index]
        try:
            with Image.open(path) as file:
                image = file.convert("RGB")
        except Exception as error:
            raise OSError(f"ImageFolder: {path}: {error}") from error
        sample = image_tensor(image) if self.transform is None else self.transform(image)
        return sample, number if self.target_transform is None else self.target_transform(number)


def image_tensor(image: Any) -> Tensor:
    """A Pillow image as a uint8 tensor (channels, height, width)."""
    channels = len(image.getbands())
    pixels = tenon.frombuffer(
        bytearray(image.tobytes()), tenon.uint8, (image.height, image.width, channels)
    )
    return pixels.permute([2, 0, 1])


def _files(folder: str, endings: tuple[str, ...]) -> list[str]:
    return sorted(
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.lower().endswith(endings)
    )
