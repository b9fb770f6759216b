# SPDX-License-Identifier: Apache-2.0
"""CIFAR in its binary version (Krizhevsky, 2009)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tenon
from tenon import Tensor

from .arrays import ImageArrays, check_flags, existing

_PIXELS = 3 * 32 * 32


class CIFAR10(ImageArrays):
    """32 x 32 pixels in ten classes, uint8 [n, 3, 32, 32], from the files of the binary version in
    `root` or `root`/cifar-10-batches-bin. (The version for Python consists of pickles, which may
    run code.)"""

    folder = "cifar-10-batches-bin"
    files: dict[bool, Sequence[str]] = {
        True: [f"data_batch_{i}.bin" for i in range(1, 6)],
        False: ["test_batch.bin"],
    }
    label_bytes = 1
    classes = tuple("airplane automobile bird cat deer dog frog horse ship truck".split())

    def __init__(
        self,
        root: str | Path,
        train: bool = True,
        transform: Callable[[Tensor], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        download: bool = False,
    ) -> None:
        # With `download` scripts ask for files that may be there: nothing is downloaded.
        check_flags(type(self).__name__, train=train, download=download)
        records = []
        for name in self.files[train]:
            names = [f"{self.folder}/{name}", name]
            path = existing(root, names, type(self).__name__)
            content = bytearray(path.read_bytes())
            length = self.label_bytes + _PIXELS
            if not content or len(content) % length:
                raise ValueError(
                    f"{type(self).__name__}: expected records of {length} bytes in {path}, got "
                    f"{len(content)} bytes; it may be cut off"
                )
            shape = [len(content) // length, length]
            records.append(tenon.frombuffer(content, tenon.uint8, shape))
        rows = tenon.concat(records)
        images = rows[:, self.label_bytes :].reshape([-1, 3, 32, 32])
        labels = rows[:, self.label_bytes - 1].to(tenon.int64)  # CIFAR-100: the fine one
        super().__init__(images, labels, transform, target_transform)


class CIFAR100(CIFAR10):
    """32 x 32 pixels in a hundred classes; labels are the fine ones."""

    folder = "cifar-100-binary"
    files: dict[bool, Sequence[str]] = {True: ["train.bin"], False: ["test.bin"]}
    label_bytes = 2
    classes = ()
