# SPDX-License-Identifier: Apache-2.0
"""How the gradients of DistributedDataParallel travel, where they do not as they are: `model.register_comm_hook(state, hook)`.

A hook is called with its state and a GradBucket of one dtype when that is whole. It returns the mean over the ranks as a
tensor of as many numbers, or a Future of it, with which the pass goes on meanwhile. The state of these hooks is a group, or
None: the one of the bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import Tensor

from .dtensor import local_of
from .futures import Future
from .group import ProcessGroup
from .power_sgd import PowerSGDState, powerSGD_hook
from .recorded_calls import recordable
from .work import Work

__all__ = [
    "GradBucket",
    "PowerSGDState",
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
    "noop_hook",
    "powerSGD_hook",
]

Hook = Callable[[Any, "GradBucket"], Any]


class GradBucket:
    """Gradients that travel together: a copy of them in one row of numbers, `buffer()`."""

    def __init__(
        self,
        index: int,
        is_last: bool,
        flat: Tensor,
        params: Sequence[Tensor],
        group: ProcessGroup,
    ) -> None:
        self._index, self._is_last, self._flat = index, is_last, flat
        self._params, self.group = list(params), group

    def index(self) -> int:
        """Behind how many others it travels."""
        return self._index

    def is_last(self) -> bool:
        """Whether no other one comes in this pass."""
        return self._is_last

    def buffer(self) -> Tensor:
        return self._flat

    def set_buffer(self, flat: Tensor) -> None:
        self._flat = flat

    def parameters(self) -> list[Tensor]:
        return list(self._params)

    def gradients(self) -> list[Tensor]:
        """Views of the buffer, in the shapes of parameters."""
        result, start = [], 0
        for param in self._params:
            own = local_of(param)
            result.append(self._flat[start : start + own.numel()].reshape(list(own.shape)))
            start += own.numel()
        return result


def allreduce_hook(state: ProcessGroup | None, bucket: GradBucket) -> Future:
    """The mean: what happens without a hook."""
    return as_future(mean_later(state or bucket.group, bucket.buffer()))


def fp16_compress_hook(state: ProcessGroup | None, bucket: GradBucket) -> Future:
    """The mean of gradients that travel as float16, and so with half the bytes of float32. Beyond 65,504 they overflow."""
    return _compressed(state, bucket, tenon.float16)


def bf16_compress_hook(state: ProcessGroup | None, bucket: GradBucket) -> Future:
    """The mean of gradients that travel as bfloat16, with 8 bits of precision and the range of float32."""
    return _compressed(state, bucket, tenon.bfloat16)


def noop_hook(_state: Any, bucket: GradBucket) -> Future:
    """Every rank keeps its own gradients: to measure what communication takes."""
    future = Future()
    future.set_result(bucket.buffer())
    return future


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """`hook`, called with float16 gradients."""
    return _wrapped(hook, tenon.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """`hook`, called with bfloat16 gradients."""
    return _wrapped(hook, tenon.bfloat16)


def as_future(result: Any) -> Future:
    """What a hook returned."""
    if isinstance(result, Work):
        return Future(result.result)
    if isinstance(result, Tensor):
        future = Future()
        future.set_result(result)
        return future
    if not isinstance(result, Future):
        raise TypeError(
            f"a hook of gradients: expected a tensor, a Work or a Future of one, got {type(result).__name__}; return "
            "work.get_future().then(lambda future: future.value()[0])"
        )
    return result


def mean_later(group: ProcessGroup, flat: Tensor) -> Work | Future:
    """Over the ranks, into `flat`; in a program, a step of it, where it is called."""
    calls = recordable(group)
    if calls is group:
        return group.all_reduce(flat, "mean", flat, async_op=True)
    return as_future(calls.all_reduce(flat, "mean"))


def _compressed(state: ProcessGroup | None, bucket: GradBucket, dtype: Any) -> Future:
    flat = bucket.buffer()
    sent = flat if flat.dtype == dtype else flat.to(dtype)
    mean = as_future(mean_later(state or bucket.group, sent))
    return mean.then(lambda future: future.wait().to(flat.dtype))


def _wrapped(hook: Hook, dtype: Any) -> Hook:
    def compressed(state: Any, bucket: GradBucket) -> Future:
        before = bucket.buffer().dtype
        bucket.set_buffer(bucket.buffer().to(dtype))
        return as_future(hook(state, bucket)).then(lambda future: future.wait().to(before))

    return compressed
