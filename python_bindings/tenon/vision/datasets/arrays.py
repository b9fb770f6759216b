# SPDX-License-Identifier: Apache-2.0
"""Images and labels in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tenon import Tensor
from tenon.data import Dataset


class ImageArrays(Dataset):
    """Images [n, C, H, W] and labels [n]; a sample is `(transform(image),
    target_transform(label))`."""

    classes: Sequence[str] = ()

    def __init__(
        self,
        images: Tensor,
        labels: Tensor,
        transform: Callable[[Tensor], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
    ) -> None:
        if images.ndim != 4 or labels.ndim != 1 or len(images) != len(labels):
            raise ValueError(
                f"{type(self).__name__}: expected images [n, C, H, W] and labels [n], got shapes "
                f"{tuple(images.shape)} and {tuple(labels.shape)}"
            )
        self.data, self.targets = images, labels
        self.transform, self.target_transform = transform, target_transform

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image: Any = self.data[index]
        label: Any = int(self.targets[index].item())
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return image, label


def check_flags(dataset: str, **flags: Any) -> None:
    """An error for a switch that is neither True nor False, such as the name of a part."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"{dataset}: expected {name} to be True or False, got {value!r}")


def existing(root: str | Path, names: Sequence[str], dataset: str) -> Path:
    """The first of the files below `root` that exists."""
    for name in names:
        path = Path(root) / name
        if path.exists():
            return path
    raise FileNotFoundError(
        f"{dataset}: expected one of {', '.join(names)} in {root}, got none of them; download the "
        "files first, as Tenon downloads nothing"
    )
