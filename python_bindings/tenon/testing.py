# SPDX-License-Identifier: Apache-2.0
"""Tests for operators: what every operator must get right, checked on your samples.

from tenon.testing import check_operator

check_operator(tenon.ops.acme.swiglu, [(x, gate)])
"""

import contextlib

from tenon import _core, autograd, plugins

__all__ = ["check_operator"]

Tensor = _core.Tensor

# Relative errors that rounding explains, by dtype: a few units of the last place.
_TOLERANCE = {
    "float64": 1e-9,
    "float32": 1e-4,
    "float16": 1e-2,
    "bfloat16": 6e-2,
    "float8_e4m3": 0.3,
    "float8_e5m2": 0.6,
}


def check_operator(op, samples, *, gradients=True, rtol=1e-3, atol=1e-5):
    """Check an operator on samples: tuples of arguments, the last of which may be a dict of keywords.

    Floating tensors among the arguments are taken as float64 and as every other floating dtype that
    the operator serves, contiguous and strided, on the device `meta`, with `out=` and in place; the
    samples also with no elements, and with one element and no axes. With
    `gradients`, first and second derivatives of every floating argument are compared with finite
    differences (`rtol`, `atol`) where the operator has them. Raises AssertionError with all that is
    wrong.
    """
    found = []
    for number, sample in enumerate(samples):
        arguments, keywords = list(sample), {}
        if arguments and isinstance(arguments[-1], dict):
            keywords = arguments.pop()
        case = _Case(op, f"{op.full_name}, sample {number}", arguments, keywords, found)
        for check in (case.dtypes, case.strides, case.meta, case.out, case.in_place, case.extents):
            case.guarded(check)
        if gradients:
            case.guarded(case.gradients, rtol, atol)
    if found:
        raise AssertionError("\n".join(found))


class _Case:
    def __init__(self, op, name, arguments, keywords, found):
        self.op, self.name, self.keywords, self.found = op, name, keywords, found
        self.arguments = [_as(x, "float64") if _is_floating(x) else x for x in arguments]
        self.floating = [i for i, x in enumerate(self.arguments) if _is_floating(x)]

    def guarded(self, check, *arguments):
        try:
            check(*arguments)
        except Exception as error:
            self.found.append(
                f"{self.name}, {check.__name__}: {str(error) or type(error).__name__}"
            )

    def call(self, arguments=None, **keywords):
        result = self.op(*(arguments or self.arguments), **self.keywords, **keywords)
        return list(result) if isinstance(result, tuple | list) else [result]

    def expect(self, what, actual, expected, tolerance=0.0):
        for index, (a, e) in enumerate(zip(actual, expected)):
            which = f"{what}, result {index}" if len(expected) > 1 else what
            if a.shape != e.shape:
                self.found.append(f"{self.name}, {which}: expected shape {e.shape}, got {a.shape}")
                continue
            a, e = _values(a), _values(e)
            worst = max((_distance(x, y) for x, y in zip(a, e)), default=0.0)
            if not worst <= tolerance:
                self.found.append(
                    f"{self.name}, {which}: expected {_few(e)}, got {_few(a)}; they differ by {worst:.3g}, "
                    f"allowed {tolerance:.3g}"
                )

    def dtypes(self):
        """Every dtype against float64, computed from the same rounded arguments."""
        for dtype, tolerance in _TOLERANCE.items():
            if not self.floating or plugins.explain(self.op, dtype=dtype)["route"] == "none":
                continue
            narrow = [
                _as(x, dtype) if i in self.floating else x for i, x in enumerate(self.arguments)
            ]
            wide = [_as(x, "float64") if i in self.floating else x for i, x in enumerate(narrow)]
            try:
                actual = self.call(narrow)
            except TypeError:
                continue  # a dtype that the operator says it does not take
            self.expect(dtype, actual, self.call(wide), tolerance)

    def strides(self):
        expected = self.call()
        for name, view in (("transposed", _transposed), ("with gaps", _with_gaps)):
            views = [view(x) if isinstance(x, Tensor) else x for x in self.arguments]
            self.expect(name, self.call(views), expected, 1e-12)

    def meta(self):
        arguments = [x.to("meta") if isinstance(x, Tensor) else x for x in self.arguments]
        try:
            described = self.call(arguments)
        except NotImplementedError:
            return  # the shape depends on data
        for actual, expected in zip(described, self.call()):
            if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
                self.found.append(
                    f"{self.name}, meta: the shape rule says {actual.dtype} {actual.shape}, the kernel gives "
                    f"{expected.dtype} {expected.shape}"
                )

    def out(self):
        expected = self.call()
        if len(expected) != 1:
            return
        out = _core.operator("full_like")(expected[0], 0)
        try:
            self.call(out=out)
        except TypeError as error:
            if "out" in str(error):
                return  # it has no such form
            raise
        self.expect("out=", [out], expected, 1e-12)

    def in_place(self):
        namespace, name = self.op.full_name.split("::")
        try:
            in_place = _core.operator(f"{namespace}::{name}_")
        except AttributeError:
            return
        expected = self.call()
        first = self.arguments[0]
        if not isinstance(first, Tensor) or first.shape != expected[0].shape:
            return
        changed = first.clone()
        in_place(changed, *self.arguments[1:], **self.keywords)
        self.expect("in place", [changed], expected, 1e-12)

    def extents(self):
        """No elements, and one element without axes: either is refused with a reason, or right."""
        for name, cut in (("no elements", _emptied), ("0-d", _first)):
            arguments = [cut(x) if isinstance(x, Tensor) else x for x in self.arguments]
            with contextlib.suppress(ValueError, IndexError):
                actual = self.call(arguments)
                described = self.call(
                    [x.to("meta") if isinstance(x, Tensor) else x for x in arguments]
                )
                shapes = [x.shape for x in actual], [x.shape for x in described]
                if shapes[0] != shapes[1]:
                    self.found.append(
                        f"{self.name}, {name}: expected shapes {shapes[1]}, got {shapes[0]}"
                    )

    def gradients(self, rtol, atol):
        inputs = [self.arguments[i].clone() for i in self.floating]

        def function(*values):
            arguments = list(self.arguments)
            for i, value in zip(self.floating, values):
                arguments[i] = value
            return tuple(self.call(arguments))

        if not inputs or not any(r.dtype.is_floating_point for r in function(*inputs)):
            return
        for x in inputs:
            x.requires_grad_()
        if not any(r.requires_grad for r in function(*inputs)):
            return  # never differentiable
        autograd.gradcheck(function, inputs, rtol=rtol, atol=atol)

        def first_derivative(*values):
            with autograd.enable_grad():
                values = [x if x.requires_grad else x.detach().requires_grad_() for x in values]
                total = sum((r * r).sum() for r in function(*values) if r.dtype.is_floating_point)
                found = autograd.grad(total, values, create_graph=True, allow_unused=True)
            return tuple(g for g in found if g is not None)

        autograd.gradcheck(first_derivative, inputs, rtol=rtol * 10, atol=atol * 10)


def _is_floating(x):
    return isinstance(x, Tensor) and x.dtype.is_floating_point


def _as(x, dtype):
    return x.detach().to(dtype)


def _values(x):
    return x.detach().cpu().reshape(-1).to("float64").tolist()


def _distance(actual, expected):
    if actual != actual or expected != expected:
        return 0.0 if actual != actual and expected != expected else float("inf")
    if actual == expected:
        return 0.0
    return abs(actual - expected) / max(1.0, abs(expected))


def _few(values):
    return values if len(values) <= 4 else f"[{', '.join(map(str, values[:4]))}, ...]"


def _transposed(x):
    """Equal to x, with its axes in memory in reverse order."""
    if x.ndim < 2:
        return x
    axes = list(reversed(range(x.ndim)))
    return _core.operator("contiguous")(x.permute(axes)).permute(axes)


def _with_gaps(x):
    """Equal to x, with every other element in memory left out."""
    if x.ndim == 0 or x.numel() == 0:
        return x
    return _core.operator("stack")([x, x], axis=-1)[..., 0]


def _emptied(x):
    return x if x.ndim == 0 else x[:0]


def _first(x):
    return x if x.ndim == 0 or x.numel() == 0 else x.reshape(-1)[0]
