# SPDX-License-Identifier: Apache-2.0
"""Images of noise, for programs that are tried out without data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon.data import Dataset


class FakeData(Dataset):
    """`size` images of noise, uint8 [C, H, W], with labels below `num_classes`. A sample is the same whenever it is read;
    `random_offset` gives others."""

    def __init__(
        self,
        size: int = 1000,
        image_size: Sequence[int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        random_offset: int = 0,
    ) -> None:
        self.size, self.image_size, self.num_classes = size, tuple(image_size), num_classes
        self.transform, self.target_transform = transform, target_transform
        self.random_offset = random_offset

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if not 0 <= index < self.size:
            raise IndexError(f"FakeData: expected an index from 0 to {self.size - 1}, got {index}")
        with tenon.Generator(seed=index + self.random_offset):
            image: Any = tenon.randint(0, 256, list(self.image_size)).to("uint8")
            label: Any = int(tenon.randint(0, self.num_classes, [1]).item())
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return image, label
