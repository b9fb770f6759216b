# SPDX-License-Identifier: Apache-2.0
"""Programs over tensors of layouts coo, csr, csc and bsr: each step runs on them and on dense tensors of the same elements."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tenon
from tenon import sparse

from .outcome import Fault, Refused, attempt, bits, dense, differs

DTYPES = ("float64", "float64", "float64", "float32", "float16", "int64", "bool", "complex128")
SHAPES = ((4, 6), (6, 4), (6, 6), (6, 6), (1, 6), (0, 4), (6,), (2, 3, 4), (4, 4, 2))
KINDS = ("coo", "repeated", "csr", "csc", "bsr")
# Those of which the derivative at 0 is finite come first.
SMOOTH = (
    "negative abs sin tanh square relu expm1 erf asinh log1p sinh tan sign floor ceil round positive real conj exp cos "
    "sigmoid isnan isfinite reciprocal logical_not softplus gelu silu hardswish leaky_relu elu hardtanh clone sqrt cbrt"
).split()
BINARY = (
    "add subtract multiply divide maximum minimum fmax equal not_equal less greater logical_and logical_or hypot "
    "matmul remainder power heaviside"
).split()
REDUCTIONS = "sum mean norm max min any all prod argmax var count_nonzero cumsum softmax".split()

# What these give of a number that is rounded another way may be another number.
JUMPS = set(
    "sign floor ceil round remainder equal not_equal less greater logical_and logical_or logical_not isnan heaviside any all argmax "
    "count_nonzero where power clip".split()
) | {
    "cast to integers",
    "cast to truths",
    "greater with a number",
    "less with a number",
    "equal with a number",
}
JUMPS |= {
    "not_equal with a number",
    "heaviside with a number",
    "remainder with a number",
    "power with a number",
}
# These round nothing while numbers are small.
EXACT = set(
    "negative abs square relu positive real conj clone add subtract multiply maximum minimum fmax zeros_like".split()
)

Function = Callable[..., Any]


class Pair:
    """A tensor of some layout, and the dense one that it stands for."""

    def __init__(self, given: tenon.Tensor, plain: tenon.Tensor, is_exact: bool = True) -> None:
        self.given, self.plain, self.is_exact = given, plain, is_exact


def in_kind(x: tenon.Tensor, kind: str) -> tenon.Tensor:
    if kind == "repeated":
        once = x.to_sparse()
        if not (x.dtype.is_floating_point or x.dtype.is_complex):
            return once
        twice = tenon.concat([once.indices(), once.indices()], 1)
        return sparse.coo(twice, tenon.concat([once.values() / 2, once.values() / 2]), x.shape)
    if x.ndim != 2:
        return x.to_sparse()
    if kind == "bsr":
        return x.to_sparse("bsr", tuple(2 if size and size % 2 == 0 else 1 for size in x.shape))
    return x.to_sparse(kind)


class MatrixProgram:
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.rng = np.random.default_rng(draw.getrandbits(32))
        self.dtype = draw.choice(DTYPES)
        self.gradients = self.dtype in ("float64", "complex128") and draw.random() < 0.6
        self.shape = draw.choice(SHAPES)
        self.leaves = [self._leaf(i) for i in range(draw.randint(1, 3))]
        self.values: list[Pair] = list(self.leaves)
        self.steps: list[tuple[Function, tuple[int, ...]]] = []

    def _numbers(self, shape: tuple[int, ...]) -> tenon.Tensor:
        x = self.rng.integers(-8, 9, shape) / 4.0
        x = np.where(self.rng.random(shape) < 0.5, x, 0.0)
        return tenon.tensor(x).to(getattr(tenon, self.dtype))

    def _leaf(self, number: int) -> Pair:
        shape = self.shape
        if number and self.draw.random() < 0.3:
            shape = self.draw.choice([shape[::-1], (*shape[:-1], 1), shape[-1:], (1, *shape[1:])])
        plain = self._numbers(shape)
        kind = self.draw.choice(KINDS if not number else (*KINDS, "dense"))
        given = plain.clone() if kind == "dense" else in_kind(plain, kind)
        if self.gradients:
            plain.requires_grad_()
            given.requires_grad_()
        return Pair(given, plain)

    # -- steps: (label, function, how many arguments), and the dense function where it is another ------------
    def _number(self) -> Any:
        return self.draw.choice([0, 1, 2, -2, 0.5, 3.0, True])

    def _unary(self) -> tuple[str, Function, int]:
        names = SMOOTH if not self.gradients else SMOOTH[:-2]
        name = self.draw.choice(names)
        return name, getattr(tenon, name), 1

    def _with_number(self) -> tuple[str, Function, int]:
        k = self._number()
        name = self.draw.choice(
            [
                *BINARY[:7],
                "power",
                "remainder",
                "greater",
                "less",
                "equal",
                "not_equal",
                "heaviside",
            ]
        )
        operator = getattr(tenon, name)
        if self.draw.random() < 0.3:
            return f"{name} of a number", lambda x: operator(k, x), 1
        if name in ("divide", "remainder") and k == 0:
            k = 4  # 0 / 0 is NaN in a dense tensor
        return f"{name} with a number", lambda x: operator(x, k), 1

    def _clip(self) -> tuple[str, Function, int]:
        low, high = sorted([self.draw.randint(-2, 2), self.draw.randint(-2, 2)])
        return "clip", lambda x: tenon.clip(x, low, high), 1

    def _binary(self) -> tuple[str, Function, int]:
        name = self.draw.choice(BINARY)
        return name, getattr(tenon, name), 2

    def _where(self) -> tuple[str, Function, int]:
        k = self._number()
        return "where", lambda x, y: tenon.where(x > 0, y, k), 2

    def _reduce(self) -> tuple[str, Function, int]:
        name, axis = self.draw.choice(REDUCTIONS), self.draw.choice([None, 0, 1, -1, [0, 1]])
        keep = self.draw.random() < 0.3
        operator = getattr(tenon, name)
        if name == "norm":
            return name, lambda x: operator(x), 1
        if axis is None:
            return name, lambda x: operator(x), 1
        if name in ("cumsum", "softmax"):
            return name, lambda x: operator(x, axis), 1
        return name, lambda x: operator(x, axis, keepdim=keep), 1

    def _view(self) -> tuple[str, Function, int]:
        i, j = sorted([self.draw.randint(0, 4), self.draw.randint(0, 4)])
        k = self.draw.randint(-3, 3)
        views: list[tuple[str, Function]] = [
            ("T", lambda x: x.T),
            ("transpose", lambda x: x.transpose(0, 1)),
            ("permute", lambda x: tenon.permute(x, [1, 0])),
            (f"[{i}:{j}]", lambda x: x[i:j]),
            (f"[:, {i}:{j}]", lambda x: x[:, i:j]),
            (f"[{k}]", lambda x: x[k]),
            (f"[:, {k}]", lambda x: x[:, k]),
            (f"[[{i}, {k}, {i}]]", lambda x: x[[i, k, i]]),
            ("[::2]", lambda x: x[::2]),
            ("[::-1]", lambda x: tenon.flip(x, [0])),
            ("[..., None]", lambda x: x[..., None]),
            ("reshape", lambda x: x.reshape([-1])),
            ("unsqueeze", lambda x: tenon.unsqueeze(x, 0)),
            ("squeeze", lambda x: tenon.squeeze(x)),
            ("expand", lambda x: x.expand([2, *x.shape])),
            ("roll", lambda x: tenon.roll(x, 1)),
            ("split", lambda x: tenon.split(x, 2)[0]),
            ("narrow", lambda x: tenon.narrow(x, 0, i, j - i)),
            ("diagonal", lambda x: tenon.diagonal(x)),
            ("tril", lambda x: tenon.tril(x)),
            ("index_select", lambda x: tenon.index_select(x, tenon.tensor([i, j]), 0)),
        ]
        return (*self.draw.choice(views), 1)

    def _same(self) -> tuple[str, Function, int]:
        """What a dense tensor is not changed by."""
        kind = self.draw.choice(KINDS)
        same: list[tuple[str, Function]] = [
            # Of stored zeros this keeps nothing, not even their gradients.
            (f"to dense and {kind}", lambda x: x if x.requires_grad else in_kind(dense(x), kind)),
            ("to_dense", dense),
            ("to csr", lambda x: x.to_sparse("csr")),
            ("to csc", lambda x: x.to_sparse("csc")),
            ("to coo", lambda x: x.to_sparse()),
            ("coalesce", lambda x: x.coalesce() if x.layout == "coo" else x),
            ("contiguous", lambda x: x.contiguous()),
            ("deepcopy", lambda x: x if x.requires_grad else copy.deepcopy(x)),
            ("pickle", lambda x: x if x.requires_grad else pickle.loads(pickle.dumps(x))),
        ]
        return (*self.draw.choice(same), 1)

    def _like(self) -> tuple[str, Function, int]:
        like: list[tuple[str, Function]] = [
            ("zeros_like", tenon.zeros_like),
            ("ones_like", tenon.ones_like),
            ("full_like", lambda x: tenon.full_like(x, 3)),
            ("cast", lambda x: x.to(tenon.float32)),
            ("cast to integers", lambda x: x.to(tenon.int64)),
            ("cast to truths", lambda x: x.to(tenon.bool)),
        ]
        return (*self.draw.choice(like), 1)

    def _join(self) -> tuple[str, Function, int]:
        axis = self.draw.choice([0, 1])
        joins: list[tuple[str, Function]] = [
            ("concat", lambda x, y: tenon.concat([x, y], axis)),
            ("stack", lambda x, y: tenon.stack([x, y])),
            ("linear", lambda x, y: tenon.linear(x, y)),
            ("outer", lambda x, y: tenon.outer(x, y)),
            ("kron", lambda x, y: tenon.kron(x, y)),
            ("dot", lambda x, y: tenon.dot(x, y)),
            ("@ T", lambda x, y: x @ y.T),
            ("addmm", lambda x, y: tenon.addmm(x, x, y)),
        ]
        return (*self.draw.choice(joins), 2)

    def _write(self) -> tuple[str, Function, int]:
        """In place, in a copy of the first argument."""
        k = self._number() or 2

        def written(change: Callable[[tenon.Tensor, Any], Any]) -> Function:
            def function(x: tenon.Tensor, *others: Any) -> tenon.Tensor:
                y = x.clone()
                change(y, *others)
                return y

            return function

        one: list[tuple[str, Function]] = [
            ("mul_", lambda y: y.mul_(k)),
            ("neg_", lambda y: y.neg_()),
            ("zero_", lambda y: y.zero_()),
            ("abs_", lambda y: y.abs_()),
            ("fill_", lambda y: y.fill_(k)),
            ("sin_", lambda y: y.sin_()),
            ("y *= k", lambda y: y.__imul__(k)),
            ("y[0] = k", lambda y: y.__setitem__(0, k)),
        ]
        two: list[tuple[str, Function]] = [
            ("add_", lambda y, z: y.add_(z)),
            ("sub_", lambda y, z: y.sub_(z)),
            ("copy_", lambda y, z: y.copy_(z)),
            ("mul_ of another", lambda y, z: y.mul_(z)),
        ]
        if self.draw.random() < 0.6:
            name, change = self.draw.choice(one)
            return name, written(change), 1
        name, change = self.draw.choice(two)
        return name, written(change), 2

    def _step(self) -> tuple[str, Function, Function, int]:
        kinds = [
            self._unary,
            self._with_number,
            self._clip,
            self._binary,
            self._where,
            self._reduce,
            self._view,
        ]
        kinds += [self._same, self._like, self._join, self._write]
        make = self.draw.choices(kinds, [12, 14, 3, 22, 2, 10, 16, 10, 4, 6, 7])[0]
        label, function, count = make()
        return label, function, (lambda x: x) if make == self._same else function, count

    # -- runs ---------------------------------------------------------------------------------------------------
    def checks(self) -> Iterator[tuple[str, str | None]]:
        trace = [f"{pair.given.layout}{list(pair.given.shape)}" for pair in self.leaves]
        for _ in range(self.draw.randint(4, 14)):
            label, function, plainly, count = self._step()
            chosen = tuple(self.draw.randrange(len(self.values)) for _ in range(count))
            pairs = [self.values[i] for i in chosen]
            if all(pair.given.layout == "strided" for pair in pairs):
                continue
            is_exact = all(pair.is_exact for pair in pairs)
            if not is_exact and label.removesuffix(" of a number") in JUMPS:
                continue
            where = f"{label}({', '.join(p.given.layout for p in pairs)})"
            history = f"after {'; '.join(trace)}, {where} of {chosen}: "
            try:
                want = attempt(plainly, *(p.plain for p in pairs))
            except (Refused, Fault):
                want = None
            try:
                got = attempt(function, *(p.given for p in pairs))
            except Refused:
                yield f"refused {label}", None
                continue
            except Fault as fault:
                yield where, f"{history}{fault}"
                return
            if want is None:
                if isinstance(got, tenon.Tensor):
                    yield where, f"{history}answered where dense tensors are refused: {got}"
                    return
                continue
            text = differs(got, want)
            yield label, text and history + text
            if text:
                return
            if isinstance(got, tenon.Tensor):
                stays = (
                    label in EXACT
                    or label in JUMPS
                    or label.startswith(("to", "[", "T"))
                    or not want.dtype.is_floating_point
                )
                self.values.append(Pair(got, want, is_exact and stays))
                self.steps.append((function, chosen))
                trace.append(f"{where} of {chosen} -> {got.layout}{list(got.shape)}")
        yield from self._compiled(trace)
        yield from self._gradients(trace)

    def _function(self, *leaves: tenon.Tensor) -> tenon.Tensor:
        values = list(leaves)
        for function, chosen in self.steps:
            values.append(function(*(values[i] for i in chosen)))
        return values[-1]

    def _compiled(self, trace: list[str]) -> Iterator[tuple[str, str | None]]:
        if not self.steps or self.draw.random() < 0.5:
            return
        made = self.draw.random() < 0.5
        kinds = [pair.given.layout for pair in self.leaves]

        def function(*leaves: tenon.Tensor) -> tenon.Tensor:
            if made:  # sparse tensors that are made of dense ones inside
                leaves = tuple(
                    x if k == "strided" else in_kind(x, k) for x, k in zip(leaves, kinds)
                )
            return dense(self._function(*leaves))

        leaves = [(pair.plain if made else pair.given).detach() for pair in self.leaves]
        program = tenon.compile(function)
        try:
            want = bits(attempt(function, *leaves))
        except Refused:
            return  # without gradients some steps make other layouts
        for _ in range(3):
            try:
                got = bits(attempt(program, *leaves))
            except (Refused, Fault) as error:
                yield "compiled", f"{'; '.join(trace)}: {error}"
                return
            yield (
                "compiled",
                None
                if got == want
                else f"{'; '.join(trace)}: other bits compiled, made inside: {made}",
            )

    def _gradients(self, trace: list[str]) -> Iterator[tuple[str, str | None]]:
        ends = [pair for pair in self.values[len(self.leaves) :] if pair.plain.requires_grad]
        if not self.gradients or not ends:
            return
        for pair in ends:
            if not pair.given.requires_grad:
                yield "gradient", f"{'; '.join(trace)}: a result that does not record gradients"
                return
        weights = [self._numbers(tuple(pair.plain.shape)).detach() for pair in ends]
        try:
            for which in ("plain", "given"):
                terms = [
                    (tenon.real(dense(getattr(p, which)) * w)).sum() for p, w in zip(ends, weights)
                ]
                attempt(sum(terms[1:], terms[0]).backward)
        except Refused:
            yield "refused gradient", None
            return
        except Fault as fault:
            yield "gradient", f"{'; '.join(trace)}: {fault}"
            return
        for number, leaf in enumerate(self.leaves):
            got, want = leaf.given.grad, leaf.plain.grad
            if want is None or got is None:
                if got is not None:
                    want = tenon.zeros_like(leaf.plain)
                elif want is None or not dense(want).abs().max().item():
                    continue
                else:
                    yield "gradient", f"{'; '.join(trace)}: no gradient of leaf {number}"
                    return
            if leaf.given.layout != "strided":
                if got.layout != leaf.given.layout:
                    yield (
                        "gradient",
                        f"{'; '.join(trace)}: a gradient of layout {got.layout} of leaf {number}",
                    )
                    return
                # Each stored element has the gradient of its place, also where indices repeat.
                counts = _counts(leaf.given)
                want = tenon.where(counts > 0, want * counts, tenon.zeros_like(want))
            text = differs(dense(got), want, 1e-4 if "cast(" in "; ".join(trace) else None)
            yield "gradient", text and f"{'; '.join(trace)}: leaf {number}: {text}"


def _counts(x: tenon.Tensor) -> tenon.Tensor:
    """How often each element is stored."""
    x = x.detach()
    ones = tenon.ones_like(x.values()).to(tenon.float64)
    parts = [x.indices()] if x.layout == "coo" else [x.indptr(), x.indices()]
    return dense(getattr(sparse, x.layout)(*parts, ones, x.shape))


def case(draw: random.Random) -> Iterator[tuple[str, str | None]]:
    yield from MatrixProgram(draw).checks()
