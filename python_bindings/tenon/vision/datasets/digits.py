# SPDX-License-Identifier: Apache-2.0
"""The digits that come with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import Tensor

from .arrays import ImageArrays


class Digits(ImageArrays):
    """1,797 handwritten digits of 8 x 8 pixels, float32 from 0 to 1, [1797, 1, 8, 8]. Needs
    scikit-learn."""

    classes = tuple("0123456789")

    def __init__(
        self,
        transform: Callable[[Tensor], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
    ) -> None:
        try:
            from sklearn.datasets import load_digits
        except ImportError as error:
            raise ImportError(
                "Digits: expected scikit-learn, which contains the images; run `pip install "
                "scikit-learn`"
            ) from error
        digits = load_digits()
        images = tenon.tensor(digits.images / 16.0, dtype=tenon.float32).unsqueeze(1)
        labels = tenon.tensor(digits.target, dtype=tenon.int64)
        super().__init__(images, labels, transform, target_transform)
