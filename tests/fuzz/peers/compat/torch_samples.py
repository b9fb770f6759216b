# SPDX-License-Identifier: Apache-2.0
"""Arguments for functions of PyTorch's that its table of samples lacks, and for parameters it never gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

# Results that are drawn, beside those that the table of samples knows.
DRAWN = set(
    """binomial dropout dropout_ multinomial poisson rand randperm seed initial_seed get_rng_state
    nn.functional.dropout1d nn.functional.gumbel_softmax nn.functional.fractional_max_pool2d_with_indices
    nn.functional.fractional_max_pool3d_with_indices""".split()
)


def _twice(x: Any) -> Any:
    return x * 2


def _thrice(x: Any) -> Any:
    return x * 3


def _sum(x: Any) -> Any:
    return x.sum()


# Functions as arguments, which both libraries call.
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {f: f for f in (_twice, _thrice, _sum)}


def _x(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Different numbers of both signs."""
    count = int(np.prod(shape))
    values = torch.arange(count, dtype=torch.float64) * 0.75 - count / 3
    return values.reshape(shape).to(dtype)


def _whole(*shape: int, below: int) -> torch.Tensor:
    return (torch.arange(int(np.prod(shape))) % below).reshape(shape)


def _triangle(n: int) -> torch.Tensor:
    return torch.tril(_x(n, n)) + 5 * torch.eye(n)


def sample(made: Callable[[], tuple[Any, ...]]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional arguments and keywords; the last item is a dict if there are keywords."""
    given = made()
    if given and isinstance(given[-1], dict):
        return given[:-1], given[-1]
    return given, {}


_ONE = (lambda: (_x(2, 3),), lambda: (_x(4, dtype=torch.float64),))
_NOTHING = (lambda: (),)
_LENGTH = (lambda: (5,), lambda: (4, {"periodic": False}))


def _pool(axes: int, *more: Any, batch: bool = True) -> tuple[Callable[[], tuple[Any, ...]], ...]:
    extents = (7, 6, 5)[:axes]
    return (
        lambda: (_x(2, 3, *extents), *more),
        lambda: (_x(3, *extents), *more),
    )


SAMPLES: dict[str, tuple[Callable[[], tuple[Any, ...]], ...]] = (
    {
        "chunk": (lambda: (_x(0, 3), 3, {"dim": 0}), lambda: (_x(4, 3), 2)),
        "sign": (lambda: (torch.tensor([float("nan"), -2.0, 0.0]),),),
        "sgn": (lambda: (torch.tensor([float("nan"), -2.0, 0.0]),),),
        "prelu": (lambda: (_x(2, 3, 3), _x(3)), lambda: (_x(4), _x(1)), lambda: (_x(2, 3), _x(3))),
        "nn.functional.prelu": (lambda: (_x(2, 3, 3), _x(3)), lambda: (_x(2, 4, 1, 4), _x(4))),
        "nn.functional.pad": (
            lambda: (_x(1, 3), (-1, 2), "reflect"),
            lambda: (_x(2, 3, 4), (2, -1, -1, 1), "reflect"),
            lambda: (_x(1, 4), (1, 1), "constant", 2.5),
        ),
        "linalg.qr": (lambda: (_x(2, 3, 3), "r"),),
        "unique": (
            lambda: (_whole(4, 2, below=3), True, True, True),
            lambda: (_whole(4, 2, below=3), {"dim": 0, "return_counts": True}),
        ),
        "histogram": (lambda: (_x(6), 3), lambda: (_x(6), {"bins": 4, "range": (-1.0, 2.0)})),
        "bincount": (
            lambda: (_whole(5, below=3), _x(5, dtype=torch.float16), 5),
            lambda: (_whole(5, below=3), _x(5)),
        ),
        "flip": (lambda: (_x(2, 3), (0,)), lambda: (_x(2, 3), (0, -1))),
        "tile": (lambda: (_x(2, 3), (1, 1)), lambda: (_x(2), (2, 2))),
        "repeat_interleave": (
            lambda: (_x(2, 3), 1, 0),
            lambda: (_x(2, 3), torch.tensor([1, 2]), 0, {"output_size": 3}),
        ),
        "searchsorted": (lambda: (_whole(2, 5, below=9), _whole(2, 3, below=9)),),
        "adaptive_avg_pool1d": _pool(1, 2),
        "adaptive_max_pool1d": _pool(1, 2),
        "avg_pool1d": _pool(1, 2),
        "as_tensor": (lambda: ([1.0, 2.0],), lambda: (_x(3),), lambda: (np.ones(2),)),
        "asarray": (lambda: ([1.0, 2.0],), lambda: (_x(3), {"copy": True})),
        "tensor": (lambda: ([1.0, 2.0],), lambda: ([[1], [2]], {"dtype": torch.float64})),
        "from_numpy": (lambda: (np.arange(3.0),),),
        "bartlett_window": _LENGTH,
        "blackman_window": _LENGTH,
        "hamming_window": (*_LENGTH, lambda: (5, True, 0.5), lambda: (5, True, 0.5, 0.25)),
        "hann_window": _LENGTH,
        "kaiser_window": (*_LENGTH, lambda: (5, True, 8.0)),
        "bilinear": (lambda: (_x(4, 2), _x(4, 3), _x(5, 2, 3), _x(5)),),
        "binomial": (lambda: (torch.full((3,), 5.0), torch.full((3,), 0.5)),),
        "poisson": (lambda: (torch.full((3,), 2.0),),),
        "bernoulli": (lambda: (torch.full((3,), 0.5),), lambda: (torch.full((3,), 0.5), 0.25)),
        "multinomial": (lambda: (torch.full((3,), 0.5), 2),),
        "can_cast": (
            lambda: (torch.int64, torch.float32),
            lambda: (torch.float32, torch.int32),
            lambda: (torch.bool, torch.int8),
        ),
        "promote_types": (lambda: (torch.int64, torch.float16), lambda: (torch.uint8, torch.int8)),
        "result_type": (lambda: (_x(2), 1), lambda: (torch.tensor([1]), 1.5)),
        "celu": _ONE,
        "chain_matmul": (lambda: (_x(2, 3), _x(3, 4), _x(4, 2)),),
        "channel_shuffle": (lambda: (_x(1, 4, 2, 2), 2),),
        "cosine_similarity": (lambda: (_x(3, 4), _x(3, 4)),),
        "pairwise_distance": (lambda: (_x(3, 4), _x(3, 4) * 2),),
        "detach_copy": _ONE,
        "select_copy": (lambda: (_x(2, 3), 1, 0),),
        "split_copy": (lambda: (_x(5, 3), 2),),
        "dropout": (lambda: (_x(4), 0.5, True),),
        "pdist": (lambda: (_x(4, 3),),),
        "hardshrink": _ONE,
        "relu": _ONE,
        "selu": _ONE,
        "threshold": (lambda: (_x(6), 0.5, 2.0),),
        "pixel_shuffle": (lambda: (_x(1, 4, 2, 2), 2), lambda: (_x(1, 4, 2, 2), 1)),
        "pixel_unshuffle": (lambda: (_x(1, 1, 4, 4), 2), lambda: (_x(1, 1, 4, 4), 1)),
        "fake_quantize_per_channel_affine": (
            lambda: (_x(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, 0, 255),
        ),
        "is_complex": _ONE,
        "is_floating_point": _ONE,
        "is_nonzero": (lambda: (torch.tensor([2.0]),),),
        "is_tensor": (*_ONE, lambda: (3,)),
        "numel": _ONE,
        "get_default_dtype": _NOTHING,
        "is_grad_enabled": _NOTHING,
        "initial_seed": _NOTHING,
        "rand": (lambda: ((2, 3),),),
        "randn": (lambda: ((2, 3),),),
        "randperm": (lambda: (5,),),
        "randint": (lambda: (5, (2, 3)), lambda: (1, 5, (2,))),
        "randint_like": (lambda: (_x(3), 5), lambda: (_x(3), 1, 5)),
        "range": (
            lambda: (0, 4),
            lambda: (1, 5, 2),
        ),  # PyTorch divides by a step that a dtype makes 0
        "arange": (lambda: (5,), lambda: (1, 5, 2), lambda: (0.0, 1.0, 0.25)),
        "slogdet": (lambda: (_triangle(3),),),
        "linalg.slogdet": (lambda: (_triangle(3),),),
        "cholesky_inverse": (lambda: (_triangle(3),), lambda: (_triangle(3).T.contiguous(), True)),
        "cholesky_solve": (lambda: (_x(3, 2), _triangle(3)),),
        "vander": (lambda: (_x(3), 4, True), lambda: (_x(3),)),
        "where": (lambda: (_x(2, 3) > 0, _x(2, 3), _x(3)), lambda: (_x(3) > 0, _x(3), 2.0)),
        "lu": (lambda: (_x(2, 3, 3),), lambda: (_triangle(3), True, True)),
        "linalg.lstsq": (
            lambda: (_triangle(4)[:, :3], _x(4, 2)),
            lambda: (_triangle(4)[:, :3], _x(4, 2), {"driver": "gelsd"}),
        ),
        "einsum": (lambda: ("ij,jk->ik", _x(2, 3), _x(3, 2)), lambda: ("ii->i", _x(3, 3))),
        "empty_strided": (lambda: ((2, 3), (3, 1)), lambda: ((2, 3), (1, 2))),
        "normal": (lambda: (0.0, 1.0, (2, 3)), lambda: (_x(3), torch.ones(3)), lambda: (_x(3),)),
        "special.gammainc": (lambda: (_x(4).abs() + 1, _x(4).abs()),),
        "special.gammaincc": (lambda: (_x(4).abs() + 1, _x(4).abs()),),
        "special.polygamma": (lambda: (1, _x(4).abs() + 1),),
        "polygamma": (lambda: (1, _x(4).abs() + 1),),
        "fft.fftfreq": (lambda: (5,), lambda: (4, 0.5)),
        "fft.rfftfreq": (lambda: (5,), lambda: (4, 0.5)),
        "nn.functional.affine_grid": (lambda: (_x(1, 2, 3), (1, 1, 3, 4)),),
        "nn.functional.dropout1d": (lambda: (_x(2, 3, 4),),),
        "nn.functional.fold": (lambda: (_x(1, 4, 4), (3, 3), (2, 2)),),
        "nn.functional.unfold": (lambda: (_x(1, 2, 4, 4), (2, 2)),),
        "nn.functional.gumbel_softmax": (lambda: (_x(2, 3),), lambda: (_x(2, 3), 2.0, True)),
        "nn.functional.upsample": (lambda: (_x(1, 1, 2, 3), {"scale_factor": 2}),),
        "nn.functional.interpolate": (
            lambda: (_x(1, 1, 4), {"size": 6, "mode": "linear", "align_corners": True}),
            lambda: (_x(1, 1, 4, 4), {"scale_factor": 1.5, "mode": "bicubic"}),
        ),
        "nn.functional.embedding_bag": (
            lambda: (_whole(2, 3, below=5), _x(5, 4)),
            lambda: (_whole(6, below=5), _x(5, 4), torch.tensor([0, 2]), {"max_norm": 1.0}),
            lambda: (_whole(2, 3, below=5), _x(5, 4), {"mode": "sum", "padding_idx": 1}),
        ),
        "nn.functional.embedding": (
            lambda: (_whole(2, 3, below=5), _x(5, 4)),
            lambda: (_whole(3, below=5), _x(5, 4), 1, 1.0),
        ),
        "nn.functional.mse_loss": (lambda: (_x(4), _x(4) * 2, {"weight": _x(4).abs()}),),
        "nn.functional.l1_loss": (lambda: (_x(4), _x(4) * 2, {"weight": _x(4).abs()}),),
        "nn.functional.huber_loss": (lambda: (_x(4), _x(4) * 2, {"weight": _x(4).abs()}),),
        "nn.functional.normalize": (
            lambda: (_x(2, 3), 2.0, (0, 1)),
            lambda: (_x(2, 3), float("inf")),
        ),
        "nn.functional.cross_entropy": (
            lambda: (_x(3, 4), torch.tensor([0, 1, 3]), _x(4).abs(), None, 1, None, "sum", 0.1),
        ),
    }
    | {
        f"nn.functional.{name}{axes}d{suffix}": _pool(axes, *more)
        for axes in (1, 2, 3)
        for name, suffix, more in (
            ("adaptive_max_pool", "_with_indices", (2,)),
            ("max_pool", "_with_indices", (2,)),
            ("lp_pool", "", (2.0, 2)),
        )
    }
    | {
        f"nn.functional.fractional_max_pool{axes}d{suffix}": (
            lambda axes=axes: (
                _x(2, 3, *(7, 6, 5)[:axes]) % 7,
                2,
                3,
                {"_random_samples": torch.full((2, 3, axes), 0.4)},
            ),
            lambda axes=axes: (
                _x(3, *(7, 6, 5)[:axes]) % 7,
                2,
                None,
                0.5,
                {"_random_samples": torch.full((1, 3, axes), 0.7)},
            ),
        )
        for axes in (2, 3)
        for suffix in ("", "_with_indices")
    }
)
