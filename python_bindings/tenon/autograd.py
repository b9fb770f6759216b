# SPDX-License-Identifier: Apache-2.0
"""Gradients: the recording switch, grad, custom functions, and a check by finite differences."""

from __future__ import annotations

import functools

from tenon import _core
from tenon._saved_tensors import (
    SavedTensor,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)

Tensor = _core.Tensor

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "disable_saved_tensors_hooks",
    "enable_grad",
    "grad",
    "gradcheck",
    "hessian",
    "inference_mode",
    "is_grad_enabled",
    "jacobian",
    "no_grad",
    "save_on_cpu",
    "saved_tensors_hooks",
    "once_differentiable",
    "set_grad_enabled",
]

is_grad_enabled = _core.is_grad_enabled


class set_grad_enabled:
    """Switch recording on or off: at once as a call, for a block as a context manager."""

    __slots__ = ("_on", "_previous")

    def __init__(self, on):
        self._on = bool(on)
        self._previous = _core._set_grad_enabled(self._on)

    def __enter__(self):
        _core._set_grad_enabled(self._on)
        return self

    def __exit__(self, *exception):
        _core._set_grad_enabled(self._previous)


class _Recording:
    """Context manager and decorator that sets recording for a block or a function."""

    _on: bool
    __slots__ = ("_previous",)

    def __enter__(self):
        self._previous = _core._set_grad_enabled(self._on)
        return self

    def __exit__(self, *exception):
        _core._set_grad_enabled(self._previous)

    def __new__(cls, function=None):
        self = super().__new__(cls)
        return self if function is None else self(function)

    def __call__(self, function):
        on = self._on

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            previous = _core._set_grad_enabled(on)
            try:
                return function(*args, **kwargs)
            finally:
                _core._set_grad_enabled(previous)

        return wrapper


class no_grad(_Recording):
    """Operators in this block are not recorded. Also a decorator: `@tenon.no_grad()`."""

    __slots__ = ()
    _on = False


class enable_grad(_Recording):
    """Operators in this block are recorded. Also a decorator: `@tenon.enable_grad()`."""

    __slots__ = ()
    _on = True


class inference_mode(no_grad):
    """no_grad() by the name that programs for inference use; `inference_mode(False)` changes
    nothing.

    Tensors made inside are ordinary ones: they may be used in recorded operators later.
    """

    __slots__ = ()

    def __new__(cls, mode=True):
        if callable(mode):
            return no_grad(mode)
        return super().__new__(cls) if mode else set_grad_enabled(is_grad_enabled())


def _as_tuple(value):
    return (value,) if value is None or isinstance(value, Tensor) else tuple(value)


def _seeds(outputs, grads):
    grads = (None,) * len(outputs) if grads is None else _as_tuple(grads)
    if len(grads) != len(outputs):
        raise ValueError(
            f"expected {len(outputs)} gradients, one for each output, got {len(grads)}"
        )
    return grads


def backward(outputs, gradients=None, retain_graph=None, create_graph=False):
    """Add the gradients of `outputs` to .grad of the leaves they depend on."""
    outputs = _as_tuple(outputs)
    retain = create_graph if retain_graph is None else retain_graph
    _core._backward(outputs, _seeds(outputs, gradients), retain, create_graph)


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=False,
    *,
    materialize_grads=False,
):
    """Gradients of `outputs` with respect to `inputs`, as a tuple; .grad is left alone, so that
    `only_inputs` has no other value.

    With `allow_unused`, inputs that the outputs do not depend on give None instead of an error, with
    `materialize_grads` zeros.
    """
    if only_inputs is not True:
        raise NotImplementedError(
            f"grad: expected only_inputs True, got {only_inputs!r}; backward() adds to .grad"
        )
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    retain = create_graph if retain_graph is None else retain_graph
    found = _core._gradients(
        outputs,
        _seeds(outputs, grad_outputs),
        inputs,
        retain,
        create_graph,
        bool(allow_unused) or materialize_grads,
    )
    if materialize_grads:
        zeros = _core.operator("zeros_like")
        found = [zeros(x) if each is None else each for each, x in zip(found, inputs, strict=True)]
    return tuple(found)


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

    @staticmethod
    def forward(ctx, *args, **kwargs):
        raise NotImplementedError("a Function defines forward(ctx, *args)")

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError("a Function defines backward(ctx, *grads)")

    @classmethod
    def apply(cls, *args, **kwargs):
        from tenon.func.batched import common_levels, levels_of, raw_of, with_levels

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
            wanted = common_levels((output, *tensors))
            if levels_of(output) == wanted:
                continue
            if is_dirty:
                raise RuntimeError(
                    f"vmap: {cls.__name__} writes into a tensor that all samples share; return a new "
                    f"one"
                )
            # Each sample has a gradient of its own, so each has a result of its own.
            outputs[i] = with_levels(output, wanted).clone()
            saved = [outputs[i] if tensor is output else tensor for tensor in saved]
        recorded = tuple(
            out for out in outputs if isinstance(out, Tensor) and id(out) not in constant
        )
        _core._record(
            cls.__name__,
            tuple(map(raw_of, tensors)),
            tuple(map(raw_of, recorded)),
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
        from tenon.func import batching

        self.cls, self.ctx = cls, ctx
        self.positions, self.count = positions, len(args)
        self.levels = [batching.levels_of(args[i]) for i in positions]
        self.results = [
            _Result(out) if isinstance(out, Tensor) and id(out) not in constant else None
            for out in outputs
        ]
        self.running = batching.running_levels()

    def __call__(self, given):
        from tenon.func import batching

        given = iter(given)
        grads = [
            each and each.gradient(next(given), self.ctx._materialize) for each in self.results
        ]
        with batching.running(self.running):
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
                else batching.raw_of(batching.gradient_like(result[i], levels))
                for i, levels in zip(self.positions, self.levels, strict=True)
            ]


class _Result:
    """What is known of a result in backward: its gradient looks like it."""

    def __init__(self, out):
        from tenon.func.batched import levels_of, raw_of

        raw = raw_of(out)
        self.shape, self.dtype, self.device = raw.shape, raw.dtype, raw.device
        self.levels = levels_of(out)

    def gradient(self, grad, materialize):
        from tenon.func.batched import of_levels

        if grad is None:
            if not materialize:
                return None
            grad = _core.operator("zeros")(self.shape, dtype=self.dtype, device=self.device)
        return of_levels(grad, self.levels)


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


def jacobian(function, inputs):
    """Derivatives of `function(*inputs)` by every element of every input: for one tensor and one
    result, of shapes A and R, a tensor of shape R + A; for tuples, tuples of such.
    tenon.func.jacrev with the arguments in another order."""
    from tenon.func import jacrev

    argnums = 0 if isinstance(inputs, Tensor) else tuple(range(len(inputs)))
    return jacrev(function, argnums)(*_as_tuple(inputs))


def hessian(function, inputs):
    """Second derivatives of `function(*inputs)`, one number: for one tensor of shape A a tensor of
    shape A + A; for a tuple, tuples of tuples of such."""
    from tenon.func import hessian as of

    argnums = 0 if isinstance(inputs, Tensor) else tuple(range(len(inputs)))
    return of(function, argnums)(*_as_tuple(inputs))


def detect_anomaly():
    """Stop at the first operator of forward or backward passes in a block that makes NaN or an infinity
    from finite arguments: tenon.utils.check_numerics, under PyTorch's name."""
    from tenon.utils import check_numerics

    return check_numerics()


def gradcheck(function, inputs, *, step=1e-4, rtol=1e-3, atol=1e-5):
    """Compare the gradients of `function(*inputs)` with central differences; True, or an error.

    The inputs that require grad should be float64 or complex128. Results of any shape are reduced with fixed
    weights, so that every element counts, and both parts of a complex one. The gradient of a complex
    element is the derivative by its real part and i times that by its imaginary part.
    """
    inputs, as_real = _as_tuple(inputs), _core.operator("as_real")

    def total(*args):
        with_weights = []
        for result in _as_tuple(function(*args)):
            result = as_real(result) if result.dtype.is_complex else result
            if result.dtype.is_floating_point:
                weights = [0.3 + 0.7 * ((7 * i) % 11) / 11 for i in range(result.size)]
                weights = _core.tensor(weights, dtype=result.dtype, device=result.device)
                with_weights.append((result.reshape(-1) * weights).sum())
        return sum(with_weights[1:], with_weights[0])

    checked = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not checked:
        raise ValueError("gradcheck: expected an input that requires grad")
    analytic = grad(total(*inputs), [inputs[i] for i in checked], allow_unused=True)
    with no_grad():
        for i, gradient in zip(checked, analytic, strict=True):
            start = inputs[i].detach().cpu()
            gradient = [0.0] * start.size if gradient is None else gradient.reshape(-1).tolist()
            for k in range(start.size):
                numeric = 0.0
                for direction in (1, 1j) if start.dtype.is_complex else (1,):
                    values = []
                    for sign in (1, -1):
                        moved = start.clone().reshape(-1)
                        moved[k] += sign * step * direction
                        args = list(inputs)
                        args[i] = moved.reshape(start.shape).to(inputs[i].device)
                        values.append(total(*args).item())
                    numeric += direction * (values[0] - values[1]) / (2 * step)
                if not abs(numeric - gradient[k]) <= atol + rtol * abs(numeric):
                    raise AssertionError(
                        f"gradcheck: input {i}, element {k}: expected {numeric:.8g} by finite differences, "
                        f"got {gradient[k]:.8g}"
                    )
    return True
