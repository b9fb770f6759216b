# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions, by reverse mode and by forward mode.

jvp() calls the function with dual tensors (tenon/autograd/forward.py). Where they do not get through, and for linearize(),
which calls it once for many vectors, a product with the Jacobian from the right is the derivative of the product from the
left by its vector, in which it is linear: two backward passes give it exactly (Townsend, A new trick for calculating
Jacobian vector products, 2017).

Results have a history while recording is on, as those of every operator: they can be differentiated
again, by other transformations and by backward(). Inside `tenon.no_grad()` they have none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tenon import _core, autograd
from tenon._core import Tensor
from tenon.autograd import forward
from tenon.func.batching import lift, nest_like, raw_of, refuse_lost, running_levels
from tenon.func.tree import flatten, map_leaves, unflatten

Function = Callable[..., Any]
Argnums = int | Sequence[int]


def _is_differentiable(x: Any) -> bool:
    return isinstance(x, Tensor) and (x.dtype.is_floating_point or x.dtype.is_complex)


def _tracked(x: Tensor) -> Tensor:
    """`x` as an input of its own: where it has a history, derivatives reach it through this one."""
    x = lift(x)
    raw = raw_of(x)
    if raw.requires_grad:
        return nest_like(_core.operator("expand")(raw, raw.shape), x)
    return nest_like(_detached(raw).requires_grad_(), x)


def _detached(raw: Tensor) -> Tensor:
    """Without history, and with the tangents of a forward mode around."""
    result = raw.detach()
    _core._forward_copy(raw, result)
    return result


def _derivatives(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    seeds: Sequence[Tensor],
    *,
    retain: bool,
    create: bool,
) -> list[Tensor]:
    """Gradients of `outputs` by `inputs`; zeros where there is no path. Batched tensors are
    differentiated as a whole: the samples do not depend on each other."""
    pairs = []
    for out, seed in zip(outputs, seeds, strict=True):
        if raw_of(out).requires_grad:
            pairs.append((raw_of(out), raw_of(lift(seed, out))))
    raw = [raw_of(x) for x in inputs]
    found: Sequence[Tensor | None] = [None] * len(raw)
    if pairs:
        found = autograd.grad(
            [out for out, _ in pairs],
            raw,
            [seed for _, seed in pairs],
            retain_graph=retain or create,
            create_graph=create,
            allow_unused=True,
        )
    zeros = _core.operator("zeros_like")
    return [
        nest_like(zeros(of) if each is None else each, x)
        for each, of, x in zip(found, raw, inputs, strict=True)
    ]


def _check_differentiable(name: str, leaves: Sequence[Any]) -> None:
    for leaf in leaves:
        if not _is_differentiable(leaf):
            got = leaf.dtype if isinstance(leaf, Tensor) else type(leaf).__name__
            raise TypeError(
                f"{name}: expected floating or complex tensors to differentiate by, got {got}; "
                f"choose others with argnums, or convert it"
            )


def _split_aux(name: str, result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(
            f"{name}: with has_aux, expected a pair (result, aux) from the function, got "
            f"{type(result).__name__}"
        )
    return result


def _check_results(name: str, outputs: Sequence[Any]) -> None:
    for out in outputs:
        if not isinstance(out, Tensor):
            raise TypeError(f"{name}: expected tensors from the function, got {type(out).__name__}")


class _Call:
    """One call of a function, recorded, with the arguments that it is differentiated by."""

    def __init__(
        self, name: str, function: Function, args: Sequence[Any], argnums: Argnums, has_aux: bool
    ) -> None:
        self.create = autograd.is_grad_enabled()
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        if not all(-len(args) <= n < len(args) for n in numbers):
            raise ValueError(f"{name}: expected argnums below {len(args)}, got {argnums}")
        chosen = [args[n] for n in numbers]
        leaves, self._rebuild = flatten(chosen[0] if isinstance(argnums, int) else tuple(chosen))
        _check_differentiable(name, leaves)
        with autograd.enable_grad():
            self.inputs = [_tracked(leaf) for leaf in leaves]
            given = self.with_inputs(self.inputs)
            call = list(args)
            for n, value in zip(
                numbers, (given,) if isinstance(argnums, int) else given, strict=True
            ):
                call[n] = value
            result = function(*call)
        self.aux: Any = None
        if has_aux:
            result, aux = _split_aux(name, result)
            self.aux = map_leaves(self.finished, aux)
        self.result = result
        self.outputs, self.rebuild_result = flatten(result)
        _check_results(name, self.outputs)
        refuse_lost(self.outputs, self.inputs)

    def with_inputs(self, values: Sequence[Any]) -> Any:
        """`values`, one for each input, nested as the arguments were."""
        return unflatten(self._rebuild, values)

    def finished(self, x: Any) -> Any:
        """A result for the caller, who records or does not."""
        if self.create or not isinstance(x, Tensor) or not raw_of(x).requires_grad:
            return x
        return nest_like(_detached(raw_of(x)), x)

    def pull(self, seeds: Sequence[Tensor], *, retain: bool = True) -> list[Tensor]:
        """Products of `seeds` with the Jacobian, one for each input."""
        return _derivatives(self.outputs, self.inputs, seeds, retain=retain, create=self.create)

    def pushed(self) -> Callable[[Sequence[Tensor]], list[Tensor]]:
        """The function from tangents of the inputs to tangents of the outputs."""
        with autograd.enable_grad():
            zeros = [nest_like(_zeros(raw_of(out)).requires_grad_(), out) for out in self.outputs]
            pulled = _derivatives(self.outputs, self.inputs, zeros, retain=True, create=True)
        return lambda tangents: _derivatives(
            pulled, zeros, tangents, retain=True, create=self.create
        )


def _zeros(x: Tensor) -> Tensor:
    return _core.operator("zeros_like")(x)


def _ones(x: Tensor) -> Tensor:
    return _core.operator("ones_like")(x)


def grad_and_value(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that gives (gradient, value) of `function`, which gives a tensor of one element;
    with `has_aux`, `function` gives (value, aux), and the result is (gradient, (value, aux))."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = _Call("grad", functools.partial(function, **kwargs), args, argnums, has_aux)
        if len(call.outputs) != 1 or call.outputs[0].numel() != 1:
            got = [tuple(out.shape) for out in call.outputs]
            raise ValueError(
                f"grad: expected a function that gives one tensor of one element, got shapes {got}; "
                f"use vjp, jacrev or jacfwd"
            )
        gradient = call.with_inputs(call.pull([_ones(call.outputs[0])], retain=False))
        value = call.finished(call.outputs[0])
        return (gradient, (value, call.aux)) if has_aux else (gradient, value)

    return wrapper


def value_and_grad(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that gives (value, gradient), in the order of its name; with `has_aux`,
    ((value, aux), gradient)."""
    both = grad_and_value(function, argnums, has_aux)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return value, gradient

    return wrapper


def grad(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that gives the gradient of `function`, which gives a tensor of one element, by its
    argument number `argnums`, or by several of them as a tuple. With `has_aux`, `function` gives
    (value, aux), and the result is (gradient, aux)."""
    both = grad_and_value(function, argnums, has_aux)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def vjp(function: Function, *primals: Any, has_aux: bool = False) -> Any:
    """`function(*primals)`, and a function from a tensor like the result (or a nest like it) to its
    product with the Jacobian: a tuple, with a gradient for each of `primals`."""
    call = _Call("vjp", function, primals, tuple(range(len(primals))), has_aux)

    def pull(cotangents: Any) -> Any:
        seeds, _ = flatten(cotangents)
        _check_like("vjp", seeds, call.outputs, "results")
        return call.with_inputs(call.pull(seeds))

    result = unflatten(call.rebuild_result, map(call.finished, call.outputs))
    return (result, pull, call.aux) if has_aux else (result, pull)


def _check_like(name: str, given: Sequence[Any], wanted: Sequence[Tensor], what: str) -> None:
    for got, want in zip(given, wanted, strict=False):
        if not isinstance(got, Tensor) or tuple(got.shape) != tuple(want.shape):
            shape = tuple(got.shape) if isinstance(got, Tensor) else type(got).__name__
            raise ValueError(
                f"{name}: expected vectors of the shapes of the {what}, got {shape} for "
                f"{tuple(want.shape)}"
            )
    if len(given) != len(wanted):
        raise ValueError(
            f"{name}: expected {len(wanted)} vectors, one for each of the {what}, got {len(given)}"
        )


def jvp(
    function: Function, primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False
) -> Any:
    """`function(*primals)`, and the product of its Jacobian with `tangents`, which are like
    `primals`.

    The function is called once, with tensors that carry their tangents along: memory is that of the function, twice. Where
    tangents do not get through an operation (a tenon.Function, a write into a part of a tensor, a vmap around), it is
    called a second time, and two backward passes give the product.
    """
    if not isinstance(primals, (list, tuple)) or not isinstance(tangents, (list, tuple)):
        raise TypeError("jvp: expected primals and tangents as tuples, with one item per argument")
    if not running_levels():
        try:
            return _jvp_by_duals(function, primals, tangents, has_aux)
        except forward.Refused:
            pass
    call = _Call("jvp", function, primals, tuple(range(len(primals))), has_aux)
    vectors, _ = flatten(tuple(tangents))
    _check_like("jvp", vectors, call.inputs, "arguments")
    pushed = call.pushed()(vectors)
    result = unflatten(call.rebuild_result, map(call.finished, call.outputs))
    tangent = unflatten(call.rebuild_result, pushed)
    return (result, tangent, call.aux) if has_aux else (result, tangent)


def _jvp_by_duals(
    function: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool
) -> Any:
    leaves, rebuild = flatten(tuple(primals))
    _check_differentiable("jvp", leaves)
    vectors, _ = flatten(tuple(tangents))
    _check_like("jvp", vectors, leaves, "arguments")
    if any(x.layout != "strided" for x in (*leaves, *vectors)):
        raise forward.Refused("composed tensors")
    rebuilds: list[Any] = []

    def call(duals: Sequence[Tensor]) -> list[Any]:
        result, aux = function(*unflatten(rebuild, duals)), ()
        if has_aux:
            result, aux = _split_aux("jvp", result)
        outputs, rebuild_result = flatten(result)
        _check_results("jvp", outputs)
        others, rebuild_aux = flatten(aux)
        rebuilds.extend((rebuild_result, rebuild_aux, len(outputs)))
        return [*outputs, *others]

    results, found = forward.push(call, leaves, vectors)
    rebuild_result, rebuild_aux, count = rebuilds
    outputs = results[:count]
    pushed = [
        _zeros(out) if tangent is None else tangent
        for out, tangent in zip(outputs, found, strict=False)
    ]
    result, tangent = unflatten(rebuild_result, outputs), unflatten(rebuild_result, pushed)
    return (
        (result, tangent, unflatten(rebuild_aux, results[count:])) if has_aux else (result, tangent)
    )


def linearize(function: Function, *primals: Any) -> tuple[Any, Function]:
    """`function(*primals)`, and a function from tangents, which are like `primals`, to their products with the Jacobian
    there: as jvp(), but the function is called once for any number of tangents."""
    call = _Call("linearize", function, primals, tuple(range(len(primals))), False)
    push = call.pushed()

    def tangent(*tangents: Any) -> Any:
        vectors, _ = flatten(tuple(tangents))
        _check_like("linearize", vectors, call.inputs, "arguments")
        return unflatten(call.rebuild_result, push(vectors))

    return unflatten(call.rebuild_result, map(call.finished, call.outputs)), tangent


def _units(x: Tensor) -> list[Tensor]:
    """The unit vectors of the space of `x`, each in its shape. Not batched."""
    raw = raw_of(x)
    rows = _core.operator("eye")(x.numel(), dtype=x.dtype, device=raw.device)
    return [rows[i].reshape(x.shape) for i in range(x.numel())]


def _require_real(name: str, call: _Call) -> None:
    if any(x.dtype.is_complex for x in (*call.inputs, *call.outputs)):
        raise TypeError(
            f"{name}: expected real tensors, got complex ones, whose derivative is no matrix unless the "
            f"function is holomorphic; use vjp or jvp, or the real and imaginary parts"
        )


def _stack(parts: list[Tensor], shape: tuple[int, ...], of: Tensor) -> Tensor:
    """Parts, one for each element of a tensor of `shape`, in an array of that shape in front."""
    if not parts:
        return _zeros(of).expand((0, *of.shape)).reshape((*shape, *of.shape))
    return _core.operator("stack")(parts, 0).reshape((*shape, *of.shape))


def jacrev(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that gives the Jacobian of `function`, one backward pass for each element of the
    result: for few results of many arguments. For a result of shape R and an argument of shape A
    the Jacobian has shape R + A; nests of results and arguments give a nest of the arguments in
    each result's place."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = _Call("jacrev", functools.partial(function, **kwargs), args, argnums, has_aux)
        _require_real("jacrev", call)
        blocks = []
        for k, out in enumerate(call.outputs):
            rows = []
            for unit in _units(out):
                seeds = [unit if i == k else _zeros(o) for i, o in enumerate(call.outputs)]
                rows.append(call.pull(seeds))
            blocks.append(
                call.with_inputs(
                    [
                        _stack([row[i] for row in rows], tuple(out.shape), x.detach())
                        for i, x in enumerate(call.inputs)
                    ]
                )
            )
        result = unflatten(call.rebuild_result, blocks)
        return (result, call.aux) if has_aux else result

    return wrapper


def jacfwd(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function of jacrev(), with one product from the right for each element of the arguments:
    for few arguments of many results."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = _Call("jacfwd", functools.partial(function, **kwargs), args, argnums, has_aux)
        _require_real("jacfwd", call)
        push = call.pushed()
        # columns[i][j][k]: the derivative of output k by element j of input i
        columns = []
        for i, x in enumerate(call.inputs):
            columns.append(
                [
                    push([unit if n == i else _zeros(o) for n, o in enumerate(call.inputs)])
                    for unit in _units(x)
                ]
            )
        blocks = []
        for k, out in enumerate(call.outputs):
            of_inputs = []
            for i, x in enumerate(call.inputs):
                block = _stack([column[k] for column in columns[i]], (x.numel(),), out.detach())
                block = _core.operator("movedim")(block, 0, -1)
                of_inputs.append(block.reshape((*out.shape, *x.shape)))
            blocks.append(call.with_inputs(of_inputs))
        result = unflatten(call.rebuild_result, blocks)
        return (result, call.aux) if has_aux else result

    return wrapper


def hessian(function: Function, argnums: Argnums = 0) -> Function:
    """A function that gives the second derivatives of `function`: for a result of shape R and an
    argument of shape A a tensor of shape R + A + A."""
    return jacrev(jacrev(function, argnums), argnums)


def _pair(name: str, function: Function, primals: Sequence[Any], vectors: Sequence[Any]) -> Any:
    if not isinstance(primals, (list, tuple)) or not isinstance(vectors, (list, tuple)):
        raise TypeError(
            f"{name}: expected primals and vectors as tuples, with one item per argument"
        )
    numbers = tuple(range(len(primals)))
    with autograd.enable_grad():
        return _Call(name, grad_and_value(function, numbers), primals, numbers, False)


def vhp(function: Function, primals: Sequence[Any], vectors: Sequence[Any]) -> Any:
    """`function(*primals)`, a tensor of one element, and the product of `vectors`, which are like
    `primals`, with its Hessian: one more backward pass."""
    create = autograd.is_grad_enabled()
    call = _pair("vhp", function, primals, vectors)
    call.create = create
    (gradients, value), seeds = call.result, flatten(tuple(vectors))[0]
    call.outputs = flatten(gradients)[0]
    _check_like("vhp", seeds, call.outputs, "arguments")
    return call.finished(value), call.with_inputs(call.pull(seeds))


def hvp(function: Function, primals: Sequence[Any], vectors: Sequence[Any]) -> Any:
    """`function(*primals)`, a tensor of one element, and the product of its Hessian with
    `vectors`. The Hessian of real functions is symmetric, so that this is vhp()."""
    return vhp(function, primals, vectors)
