# SPDX-License-Identifier: Apache-2.0
"""Operations with a gradient of their own."""

from __future__ import annotations

import functools

from tenon import _core
from tenon._tensor import batched
from tenon.autograd.forward import refuse_function
from tenon.autograd.grad_mode import is_grad_enabled, no_grad
from tenon.autograd.saved_tensors import SavedTensor

Tensor = _core.Tensor


class _Context:
    """What forward leaves for backward. Attributes may be added freely."""

    def __init__(self):
        self._to_save = ()
        self._saved = None
        self._dirty = ()
        self._constant = ()
        self._materialize = True
        self.needs_input_grad = ()

    def save_for_backward(self, *tensors):
        """Keep tensors for backward; None is allowed. Found again as ctx.saved_tensors."""
        self._to_save = tensors

    @property
    def saved_tensors(self):
        if self._saved is None:
            return self._to_save
        return tuple(saved and saved.unpack() for saved in self._saved)

    def mark_dirty(self, *tensors):
        """Name the arguments that forward modified in place (and returned)."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors):
        """Name the outputs that have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value):
        """False: backward gets None, not zeros, where no gradient reached an output."""
        self._materialize = bool(value)


class Function:
    """An operation with a gradient of its own.

    Subclasses define two static methods, `forward(ctx, *args)` and `backward(ctx, *grads)`, which
    returns a gradient (or None) for each argument of forward. Call it with `MyFunction.apply(...)`.
    """

    __module__ = "tenon.autograd"

    @staticmethod
    def forward(ctx, *args, **kwargs):
        raise NotImplementedError("a Function defines forward(ctx, *args)")

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError("a Function defines backward(ctx, *grads)")

    @classmethod
    def apply(cls, *args, **kwargs):
        if _core._forward_level():
            refuse_function(cls.__name__, args)
        ctx = _Context()
        positions = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.needs_input_grad = tuple(isinstance(arg, Tensor) and arg.requires_grad for arg in args)
        recording = is_grad_enabled() and any(ctx.needs_input_grad)
        with no_grad():
            result = cls.forward(ctx, *args, **kwargs)
        if not recording:
            return result
        tensors = tuple(args[i] for i in positions)
        single = isinstance(result, Tensor)
        outputs = [result] if single else list(result)
        saved = list(ctx._to_save)
        constant = {id(tensor) for tensor in ctx._constant}
        for i, output in enumerate(outputs):
            if not isinstance(output, Tensor) or id(output) in constant:
                continue
            is_dirty = any(output is tensor for tensor in ctx._dirty)
            if not is_dirty and any(output is arg for arg in tensors):
                output = outputs[i] = output.detach()  # the argument keeps its own history
            wanted = batched.common_levels((output, *tensors))
            if batched.levels_of(output) == wanted:
                continue
            if is_dirty:
                raise RuntimeError(
                    f"vmap: {cls.__name__} writes into a tensor that all samples share; return a new "
                    f"one"
                )
            # Each sample has a gradient of its own, so each has a result of its own.
            outputs[i] = batched.with_levels(output, wanted).clone()
            saved = [outputs[i] if tensor is output else tensor for tensor in saved]
        recorded = tuple(
            out for out in outputs if isinstance(out, Tensor) and id(out) not in constant
        )
        _core._record(
            cls.__name__,
            tuple(map(batched.raw_of, tensors)),
            tuple(map(batched.raw_of, recorded)),
            _BackwardCall(cls, ctx, positions, args, outputs, constant),
        )
        ctx._saved = [
            tensor
            if tensor is None
            else SavedTensor(tensor, any(tensor is out for out in recorded))
            for tensor in saved
        ]
        ctx._to_save = ()
        if single:
            return outputs[0]
        return type(result)(outputs) if type(result) in (list, tuple) else tuple(outputs)


class _BackwardCall:
    """Calls a Function's backward with the gradients of its results, each a sample of the batches
    that its result was a sample of."""

    def __init__(self, cls, ctx, positions, args, outputs, constant):
        self.cls, self.ctx = cls, ctx
        self.positions, self.count = positions, len(args)
        self.levels = [batched.levels_of(args[i]) for i in positions]
        self.results = [
            _Result(out) if isinstance(out, Tensor) and id(out) not in constant else None
            for out in outputs
        ]
        self.running = batched.running_levels()

    def __call__(self, given):
        given = iter(given)
        grads = [
            each and each.gradient(next(given), self.ctx._materialize) for each in self.results
        ]
        with batched.running(self.running):
            result = self.cls.backward(self.ctx, *grads)
            result = result if isinstance(result, tuple | list) else (result,)
            if len(result) != self.count:
                raise ValueError(
                    f"{self.cls.__name__}.backward: expected {self.count} gradients, one for each "
                    f"argument of forward, got {len(result)}"
                )
            return [
                None
                if result[i] is None
                else batched.raw_of(batched.gradient_like(result[i], levels))
                for i, levels in zip(self.positions, self.levels, strict=True)
            ]


class _Result:
    """What is known of a result in backward: its gradient looks like it."""

    def __init__(self, out):
        raw = batched.raw_of(out)
        self.shape, self.dtype, self.device = raw.shape, raw.dtype, raw.device
        self.levels = batched.levels_of(out)

    def gradient(self, grad, materialize):
        if grad is None:
            if not materialize:
                return None
            grad = _core.operator("zeros")(self.shape, dtype=self.dtype, device=self.device)
        return batched.of_levels(grad, self.levels)


class _Once(Function):
    """Passes gradients on, and refuses to be differentiated."""

    @staticmethod
    def forward(ctx, name, gradient, *dependencies):
        ctx.name = name
        return gradient.detach().clone()

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(
            f"{ctx.name} is differentiable once only (once_differentiable); write it with operators that "
            f"are recorded, and leave the decorator out"
        )


def once_differentiable(backward):
    """Decorator of a Function's `backward` that computes what autograd cannot follow, such as by
    NumPy: it runs without recording, and differentiating its results is an error instead of a
    wrong number."""

    @functools.wraps(backward)
    def wrapper(ctx, *grads):
        with no_grad():
            results = backward(ctx, *grads)
        dependencies = [
            each
            for each in (*grads, *ctx.saved_tensors)
            if isinstance(each, Tensor) and each.requires_grad
        ]
        if not is_grad_enabled() or not dependencies:
            return results
        name = f"{backward.__qualname__}()"
        marked = [
            _Once.apply(name, each, *dependencies) if isinstance(each, Tensor) else each
            for each in (results if isinstance(results, tuple | list) else (results,))
        ]
        return tuple(marked)

    return wrapper
