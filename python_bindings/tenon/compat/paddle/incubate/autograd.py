# SPDX-License-Identifier: Apache-2.0
"""paddle.incubate.autograd: products with Jacobians, and Jacobians and Hessians of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon._core import Tensor

__all__ = "Hessian Jacobian jvp vjp".split()

Tensors = Tensor | Sequence[Tensor]


def _tuple(xs: Any) -> tuple[Tensor, ...]:
    return (xs,) if isinstance(xs, Tensor) else tuple(xs)


def _as_given(values: Any, is_one: bool) -> Any:
    return values[0] if is_one and isinstance(values, tuple) else values


def _like(made: Any) -> Any:
    return tenon.ones_like(made) if isinstance(made, Tensor) else tuple(map(tenon.ones_like, made))


def vjp(func: Callable[..., Any], xs: Tensors, v: Any = None) -> tuple[Any, Any]:
    """The results of `func`, and the products of `v`, by default ones, with its Jacobian: one for each of `xs`."""
    given = _tuple(xs)
    out, product = tenon.func.vjp(func, *given)
    if v is None:
        v = _like(out)
    elif not isinstance(out, Tensor):
        v = _tuple(v)
    elif not isinstance(v, Tensor):
        (v,) = v
    return out, _as_given(product(v), isinstance(xs, Tensor))


def jvp(func: Callable[..., Any], xs: Tensors, v: Any = None) -> tuple[Any, Any]:
    """The results of `func`, and the products of its Jacobian with `v`, by default ones: one for each result."""
    given = _tuple(xs)
    tangents = tuple(map(tenon.ones_like, given)) if v is None else _tuple(v)
    return tenon.func.jvp(func, given, tangents)


class _Derivative:
    """A matrix of derivatives, computed when it is read. All inputs are taken as one vector, and so are the results; of
    batches the first axis is kept."""

    _matrix: Tensor | None = None

    def __init__(self, func: Callable[..., Any], xs: Tensors, is_batched: bool = False) -> None:
        self._func, self._xs, self._is_batched = func, _tuple(xs), is_batched
        if is_batched and len({x.shape[0] if x.ndim else -1 for x in self._xs}) != 1:
            raise ValueError(
                f"{type(self).__name__}(): expected inputs of one batch, got shapes {[tuple(x.shape) for x in self._xs]}"
            )

    def _compute(self) -> Tensor:
        raise NotImplementedError

    def _whole(self) -> Tensor:
        if self._matrix is None:
            self._matrix = self._compute()
        return self._matrix

    @property
    def shape(self) -> Any:
        """[results, inputs], or [batch, results, inputs]."""
        return self._whole().shape

    def __getitem__(self, index: Any) -> Tensor:
        return self._whole()[index]

    def _flat(self, values: Any) -> Tensor:
        """[..., n] of several tensors."""
        keep = 1 if self._is_batched else 0
        parts = [
            x.reshape([*x.shape[:keep], -1]) if x.ndim > keep else x.reshape([*x.shape, 1])
            for x in _tuple(values)
        ]
        return parts[0] if len(parts) == 1 else tenon.concat(parts, -1)

    def _rows(self, function: Callable[..., Any], xs: tuple[Tensor, ...]) -> Tensor:
        """The derivatives of the results of `function`, one row for each."""
        out = self._flat(function(*xs))
        rows = []
        for i in range(out.shape[-1]):
            total = tenon.select(out, -1, i).sum()  # of a batch: its elements do not mix
            found = tenon.grad(
                total, list(xs), create_graph=True, retain_graph=True, allow_unused=True
            )
            found = [
                tenon.zeros_like(x) if g is None else g for g, x in zip(found, xs, strict=True)
            ]
            rows.append(self._flat(found))
        return tenon.stack(rows, -2)


class Jacobian(_Derivative):
    """Derivatives of the results of `func` by its inputs."""

    def _compute(self) -> Tensor:
        with tenon.enable_grad():
            xs = tuple(x.detach().requires_grad_() for x in self._xs)
            return self._rows(self._func, xs).detach()


class Hessian(_Derivative):
    """Second derivatives of a function with one result, or one for each of a batch."""

    def _compute(self) -> Tensor:
        with tenon.enable_grad():
            xs = tuple(x.detach().requires_grad_() for x in self._xs)
            out = self._flat(self._func(*xs))
            if out.shape[-1] != 1:
                raise ValueError(
                    f"Hessian: expected a function with one result, got shape {tuple(out.shape)}"
                )

            def gradient(*given: Tensor) -> Tensor:
                total = self._func(*given).sum()
                found = tenon.grad(total, list(given), create_graph=True, allow_unused=True)
                return self._flat(
                    [
                        tenon.zeros_like(x) if g is None else g
                        for g, x in zip(found, given, strict=True)
                    ]
                )

            return self._rows(gradient, xs).detach()
