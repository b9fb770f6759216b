# SPDX-License-Identifier: Apache-2.0
"""Results of compiled functions that are sharded tensors, and what such functions leave in `.grad` of sharded tensors: the
program of each rank makes their local tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon.jit import structures
from tenon.jit.sharded_calls import KIND, Spec, local_of, spec_of, tensor_of
from tenon.jit.signature import Refused

_GRADIENTS = (
    "gradients of sharded tensors are recorded, and pass to what it returns; call backward() in the function, as a whole "
    "step of training does, or call it under tenon.no_grad()"
)


class ShardedResults:
    """Which results of a program are local tensors of sharded ones, and of which sharded tensors the program sets `.grad`:
    the local tensors of these gradients are further results of it."""

    def __init__(self, outputs: list[Tensor]) -> None:
        self._specs = tuple(map(spec_of, outputs))
        self._grads: list[tuple[Tensor, Spec | None]] = []  # None: no gradient
        self._from_none: list[Tensor] = []  # without a gradient before and after
        self.local = list(map(local_of, outputs))

    def add_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        """`tensor` has `grad` after a call, whatever it had before."""
        self._grads.append((tensor, None if grad is None else spec_of(grad)))
        if grad is not None:
            self.local.append(local_of(grad))

    def expect_none(self, tensor: Tensor) -> None:
        """A call begins without a gradient of `tensor`, and leaves none."""
        self._from_none.append(tensor)

    def is_needed(self) -> bool:
        return any(self._specs) or bool(self._grads) or bool(self._from_none)

    def key(self) -> Any:
        """Equal for recordings that treat the same tensors in the same way."""
        return (
            self._specs,
            tuple((id(tensor), spec) for tensor, spec in self._grads),
            tuple(map(id, self._from_none)),
        )

    def structure(self, returned: list[Any]) -> list[Any]:
        """That of the program's results, where `returned` is that of the function's."""
        grads = [structures.TENSOR] * (len(self.local) - len(self._specs))
        return ["tuple", [returned, ["tuple", grads]]]

    def fits(self) -> bool:
        """Whether a call of the program does what the function would."""
        return all(tensor.grad is None for tensor in self._from_none)

    def assemble(self, structure: list[Any], local: Sequence[Tensor]) -> Any:
        """What the function returns, of the structure and the results of its program. Sets `.grad`."""
        count = len(self._specs)
        results = map(tensor_of, local[:count], self._specs)
        following = iter(local[count:])
        for tensor, spec in self._grads:
            tensor.grad = None if spec is None else tensor_of(next(following), spec)
        return structures.unflatten(structure[1][0], results)


def sharded_results(
    recording: _core.Recording, outputs: list[Tensor], before: list[tuple[Tensor, Tensor | None]]
) -> ShardedResults | None:
    """Of a recording that returned `outputs`; `before`: the tensors that it reaches, with the `.grad` that each had. None:
    no sharded tensor is a result or has another gradient. Raises Refused."""
    sharded = [(t, grad) for t, grad in before if t.layout == KIND]
    trains = _core.is_grad_enabled() and any(tensor.requires_grad for tensor, _ in sharded)
    if trains and not recording.frees_history() and any(t.requires_grad for t in outputs):
        raise Refused(_GRADIENTS)
    if any(t is tensor for t in outputs for tensor, _ in sharded):
        raise Refused("it returns a sharded tensor that it has not made; return a clone()")
    results = ShardedResults(outputs)
    for tensor, grad in sharded:
        if not tensor.requires_grad:
            continue
        last = tensor.grad
        if recording.replaces_grad(tensor, grad):
            results.add_grad(tensor, last)
        elif recording.accumulates():
            if grad is not None or last is not None:
                raise Refused(
                    "it adds to .grad of a sharded tensor that it has not assigned; set it to None first in the function, "
                    "as optimizer.zero_grad() does"
                )
            results.expect_none(tensor)
    return results if results.is_needed() else None
