# SPDX-License-Identifier: Apache-2.0
"""Branches and loops over tensors: plain Python when they are called, and one structural step when
an exported function calls them (tenon.export).

The functions that are given take and return tensors, or tuples, lists and dicts of them. In an
exported function they must not write into tensors from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.jit import structures

__all__ = ["cond", "scan", "while_loop"]


def cond(
    predicate: Tensor,
    true_function: Callable[..., Any],
    false_function: Callable[..., Any],
    *operands: Any,
) -> Any:
    """`true_function(*operands)` where `predicate`, a bool tensor of one element, holds, else
    `false_function(*operands)`.

    An exported function calls both, so that both are recorded; they have to return the same
    structure, shapes and dtypes.
    """
    if not _core.is_recording():
        return true_function(*operands) if predicate else false_function(*operands)
    _check_predicate(predicate, "cond")
    tensors = _tensors(operands)
    then_region, then_results, structure = _record_region(true_function, operands, tensors)
    else_region, else_results, other = _record_region(false_function, operands, tensors)
    if not structures.same(structure, other):
        raise ValueError(
            "cond: expected both functions to return the same structure, got "
            f"{structures.describe(structure)} and {structures.describe(other)}"
        )
    with _Suspended():
        results = _own(then_results if predicate else else_results, "cond")
    _core.record_cond(predicate, tensors, then_region, else_region, results)
    _core.record_join()
    return structures.unflatten(structure, iter(results))


def while_loop(
    condition: Callable[..., Tensor], body: Callable[..., Any], carried: tuple[Any, ...]
) -> Any:
    """`carried = body(*carried)` as long as `condition(*carried)`, a bool tensor of one element,
    holds. The body returns a tuple with the structure, shapes and dtypes of `carried`."""
    carried = tuple(carried)
    if not _core.is_recording():
        while condition(*carried):
            carried = _next(body, carried)
        return carried
    tensors = _tensors(carried)
    with _Suspended():  # of their own, as the loop's values differ from what it starts from
        inputs = [x.clone() for x in tensors]
    structure = structures.flatten(carried, [])
    arguments = structures.unflatten(structure, iter(inputs))
    condition_region, truth, _ = _record_region(condition, arguments, inputs)
    _check_predicate(truth[0] if len(truth) == 1 else None, "while_loop")
    body_region, _, _ = _record_region(lambda *c: _next(body, c), arguments, inputs)
    with _Suspended():
        while condition(*carried):
            carried = _next(body, carried)
        results = _own(_tensors(carried), "while_loop")
    _core.record_while(tensors, condition_region, body_region, results)
    _core.record_join()
    return structures.unflatten(structure, iter(results))


def scan(body: Callable[..., Any], carried: Any, xs: Any) -> tuple[Any, Any]:
    """`carried, y = body(carried, x)` for each `x` along the first axis of the tensors in `xs`.

    Returns the last `carried`, and the `y` of all steps stacked along a new first axis. The axis has
    at least one element.
    """
    rows = _tensors(xs)
    if not rows or any(x.ndim == 0 or x.shape[0] != rows[0].shape[0] for x in rows):
        raise ValueError("scan: expected tensors with first axes of one length in xs")
    length = rows[0].shape[0]
    if length == 0:
        raise ValueError("scan: expected a first axis of at least one element, got none")
    if not _core.is_recording():
        return _run_scan(body, carried, xs, rows, length)
    initial = _tensors(carried)
    structure = structures.flatten(carried, [])
    with _Suspended():
        inputs = [x.clone() for x in initial] + [x[0].clone() for x in rows]
    first = structures.unflatten(structure, iter(inputs))
    x = structures.unflatten(structures.flatten(xs, []), iter(inputs[len(initial) :]))
    region, _, _ = _record_region(lambda c, x: _step(body, c, x), (first, x), inputs)
    with _Suspended():
        last, ys = _run_scan(body, carried, xs, rows, length)
        results = _own([*_tensors(last), *_tensors(ys)], "scan")
    _core.record_scan(initial, rows, region, results)
    _core.record_join()
    made = iter(results)
    return structures.unflatten(structure, made), structures.unflatten(
        structures.flatten(ys, []), made
    )


def _run_scan(
    body: Callable[..., Any], carried: Any, xs: Any, rows: list[Tensor], length: int
) -> tuple[Any, Any]:
    structure = structures.flatten(xs, [])
    made: list[list[Tensor]] = []
    y: Any = None
    for index in range(length):
        slices = structures.unflatten(structure, iter([x[index] for x in rows]))
        carried, y = _step(body, carried, slices)
        made.append(_tensors(y))
    stacked = [tenon.stack(list(column)) for column in zip(*made, strict=True)]
    return carried, structures.unflatten(structures.flatten(y, []), iter(stacked))


def _step(body: Callable[..., Any], carried: Any, x: Any) -> tuple[Any, Any]:
    result = body(carried, x)
    if not isinstance(result, tuple) or len(result) != 2:
        raise ValueError(f"scan: expected body to return (carried, y), got {type(result).__name__}")
    _check_carried(carried, result[0], "scan")
    return result


def _next(body: Callable[..., Any], carried: tuple[Any, ...]) -> tuple[Any, ...]:
    result = body(*carried)
    result = result if isinstance(result, tuple) else (result,)
    _check_carried(carried, result, "while_loop")
    return result


def _check_carried(before: Any, after: Any, name: str) -> None:
    old: list[Tensor] = []
    new: list[Tensor] = []
    if not structures.same(structures.flatten(before, old), structures.flatten(after, new)):
        raise ValueError(f"{name}: expected body to return values with the structure it was given")
    for a, b in zip(old, new, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ValueError(
                f"{name}: expected body to keep the carried shapes and dtypes, got "
                f"{b.dtype} {tuple(b.shape)} for {a.dtype} {tuple(a.shape)}"
            )


def _check_predicate(predicate: Any, name: str) -> None:
    if not isinstance(predicate, Tensor) or predicate.dtype != tenon.bool or predicate.numel() != 1:
        raise ValueError(
            f"{name}: expected a bool tensor of one element to decide; compare, as in x.sum() > 0"
        )


def _tensors(tree: Any) -> list[Tensor]:
    tensors: list[Tensor] = []
    structures.flatten(tree, tensors)
    return tensors


def _record_region(
    function: Callable[..., Any], arguments: Any, inputs: list[Tensor]
) -> tuple[_core.Region, list[Tensor], list[Any]]:
    _core.region_begin(inputs)
    try:
        results: list[Tensor] = []
        structure = structures.flatten(function(*arguments), results)
    except BaseException:
        _core.region_abandon()
        raise
    return _core.region_end(results), results, structure


def _own(results: list[Tensor], name: str) -> list[Tensor]:
    """Tensors of their own for the results of a structural step. Their history would be that of what
    ran while recording: it ends here, with an error where a gradient has to pass."""
    clones = [x.clone() for x in results]
    owned = [x.detach() for x in clones]

    def refuse(grads: list[Any]) -> list[Any]:
        raise NotImplementedError(
            f"{name}: gradients through it inside an exported function are not supported; export the "
            "function without its backward pass, and differentiate where the program is called"
        )

    if any(x.requires_grad for x in clones):
        _core._record(name, tuple(clones), tuple(owned), refuse)
    return owned


class _Suspended:
    """Calls in this block run and are not recorded."""

    def __enter__(self) -> None:
        _core.record_suspend()

    def __exit__(self, *exception: object) -> None:
        _core.record_resume()
