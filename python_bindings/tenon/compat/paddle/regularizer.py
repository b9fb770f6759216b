# SPDX-License-Identifier: Apache-2.0
"""paddle.regularizer: what is added to a loss to keep parameters small."""

from __future__ import annotations

__all__ = ["L1Decay", "L2Decay"]


class L2Decay(float):
    """The coefficient of half the sum of squares: what optimizers of Tenon's take as `weight_decay`."""

    def __new__(cls, coeff: float = 0.0) -> L2Decay:
        return super().__new__(cls, coeff)

    def __repr__(self) -> str:
        return f"L2Decay({float(self)})"


class L1Decay:
    """Refused: no optimizer of Tenon's adds the sum of magnitudes to a loss."""

    def __init__(self, coeff: float = 0.0) -> None:
        raise NotImplementedError(
            f"L1Decay(): expected L2Decay, got L1Decay({coeff}); add {coeff} * abs(p).sum() of the parameters to the "
            "loss"
        )
