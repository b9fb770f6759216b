# SPDX-License-Identifier: Apache-2.0
"""torch.special: functions that Tenon keeps among its operators."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import _core
from tenon.compat._adapt import operators_of
from tenon.compat.torch import _airy, _bessel, _functions, _moments, _polynomials, _signatures

_OF_TORCH = "log_softmax round softmax".split()

_OPERATORS = operators_of("torch", "special.")

__all__ = [
    *_OPERATORS,
    *_airy.__all__,
    *_bessel.__all__,
    *_polynomials.__all__,
    *_OF_TORCH,
    "logit",
    "logsumexp",
    "polygamma",
]

globals().update({theirs: _core.operator(ours) for theirs, ours in _OPERATORS.items()})
globals().update({name: getattr(_functions, name) for name in _OF_TORCH})
logsumexp = _moments.logsumexp
for _module in (_airy, _bessel, _polynomials):
    globals().update({name: getattr(_module, name) for name in _module.__all__})


def logit(input: Any, eps: float | None = None) -> tenon.Tensor:
    """log(x / (1 - x)); with `eps`, of x clamped to [eps, 1 - eps]."""
    if eps is not None:
        # Where the bounds cross, the lower one counts for what is below it, as in PyTorch.
        input = tenon.where(input < eps, eps, tenon.minimum(input, 1.0 - eps))
    return tenon.logit(input)


def polygamma(n: int, input: Any) -> tenon.Tensor:
    """The derivative of order `n` of digamma."""
    return tenon.polygamma(n, input)


_signatures.adapt_all("special", __all__, globals())


def __dir__() -> list[str]:
    return sorted(__all__)
