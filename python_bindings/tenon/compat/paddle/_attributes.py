# SPDX-License-Identifier: Apache-2.0
"""paddle.ParamAttr: what is said of a parameter when it is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenon._core import Tensor


class ParamAttr:
    """How a layer makes a parameter: by which initialiser, and whether it is trained.

    What an optimizer of Paddle's would read of it is refused, because Tenon's optimizers have parameter groups for it:
    `learning_rate` other than 1, `regularizer`, and `need_clip=False`.
    """

    def __init__(
        self,
        name: str | None = None,
        initializer: Callable[[Tensor], Any] | None = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = True,
        need_clip: bool = True,
    ) -> None:
        if initializer is not None and not callable(initializer):
            raise TypeError(f"ParamAttr(): expected an initialiser, got {initializer!r}")
        if learning_rate != 1.0:
            raise NotImplementedError(
                f"ParamAttr(): expected learning_rate=1, got {learning_rate}; give the optimizer a group "
                "of parameters with its own `lr`"
            )
        if regularizer is not None:
            raise NotImplementedError(
                f"ParamAttr(): expected regularizer=None, got {regularizer!r}; give the optimizer a group "
                "of parameters with its own `weight_decay`"
            )
        if not need_clip or not do_model_average:
            raise NotImplementedError(
                "ParamAttr(): expected need_clip=True and do_model_average=True; pass those parameters "
                "alone to clip_grad_norm_() or AveragedModel that are to be clipped or averaged"
            )
        self.name, self.initializer, self.trainable = name, initializer, trainable

    def __repr__(self) -> str:
        return (
            f"ParamAttr(name={self.name!r}, initializer={self.initializer!r}, "
            f"trainable={self.trainable})"
        )
