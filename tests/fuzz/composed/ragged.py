# SPDX-License-Identifier: Apache-2.0
"""Programs over ragged tensors: each step runs on them and on their rows one by one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tenon

from .outcome import Fault, Refused, attempt, bits, dense, differs

# Without jumps, at which numbers that are rounded another way give other numbers.
UNARY = "negative abs exp sin cos sigmoid tanh relu square isnan softplus gelu reciprocal".split()
BINARY = "add subtract multiply divide maximum minimum hypot logaddexp".split()
Rows = list[tenon.Tensor]
Function = Callable[..., Any]


class RaggedProgram:
    """A value is a ragged tensor and the list of its rows, or a dense tensor for both."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.rng = np.random.default_rng(draw.getrandbits(32))
        self.dtype = draw.choice(["float64", "float64", "float32", "int64", "bool"])
        self.gradients = self.dtype == "float64" and draw.random() < 0.6
        self.lengths = [draw.randint(0, 4) for _ in range(draw.randint(1, 5))]
        self.trailing = draw.choice([(), (), (3,), (2, 2)])
        self.leaves = [self._leaf() for _ in range(draw.randint(1, 2))]
        self.values: list[tuple[Any, Any]] = list(self.leaves)
        self.steps: list[tuple[Function, tuple[int, ...]]] = []

    def _numbers(self, shape: tuple[int, ...]) -> tenon.Tensor:
        x = self.rng.integers(-8, 9, shape) / 4.0
        return tenon.tensor(x).to(getattr(tenon, self.dtype))

    def _leaf(self) -> tuple[tenon.Tensor, Rows]:
        rows = [self._numbers((length, *self.trailing)) for length in self.lengths]
        given = tenon.ragged([row.clone() for row in rows], dtype=getattr(tenon, self.dtype))
        if self.gradients:
            given.requires_grad_()
            for row in rows:
                row.requires_grad_()
        return given, rows

    # -- steps: (label, of the ragged tensor, of the rows, how many arguments) ---------------------------------
    def _each(
        self, name: str, function: Function, count: int = 1
    ) -> tuple[str, Function, Function, int]:
        """The same function of each row."""
        return name, function, lambda *rows: [function(*some) for some in zip(*rows)], count

    def _unary(self) -> tuple[str, Function, Function, int]:
        name = self.draw.choice(UNARY)
        return self._each(name, getattr(tenon, name))

    def _with_number(self) -> tuple[str, Function, Function, int]:
        name, k = self.draw.choice(BINARY), self.draw.choice([1, -2, 0.5, 3.0])
        operator = getattr(tenon, name)
        if self.draw.random() < 0.3:
            return self._each(f"{name} of a number", lambda x: operator(k, x))
        return self._each(f"{name} with a number", lambda x: operator(x, k))

    def _binary(self) -> tuple[str, Function, Function, int]:
        name = self.draw.choice(BINARY)
        return self._each(name, getattr(tenon, name), 2)

    def _beside(self) -> tuple[str, Function, Function, int]:
        """A dense tensor [rows, 1 or longest, ...]."""
        operator = getattr(tenon, self.draw.choice(BINARY[:3]))
        rows, longest = len(self.lengths), max(self.lengths)
        whole = self._numbers(
            (self.draw.choice([1, rows]), self.draw.choice([1, longest]), *self.trailing)
        )

        def beside(x: tenon.Tensor) -> tenon.Tensor:
            return operator(x, whole) if tuple(x.shape[2:]) == self.trailing else x

        def of_rows(x: Rows) -> Rows:
            if tuple(x[0].shape[1:]) != self.trailing:
                return x
            if len(x) != rows and whole.shape[0] != 1:
                raise ValueError("another number of rows")
            longest_now = max(row.shape[0] for row in x)
            spread = whole.expand(
                [len(x), longest if whole.shape[1] != 1 else longest_now, *self.trailing]
            )
            return [operator(row, spread[i][: row.shape[0]]) for i, row in enumerate(x)]

        return "beside a dense tensor", beside, of_rows, 1

    def _reduce(self) -> tuple[str, Function, Function, int]:
        name = self.draw.choice(
            ["sum", "mean", "max", "min", "softmax", "log_softmax", "prod", "std", "cumsum"]
        )
        if self.gradients and name in ("max", "min"):
            name = "sum"  # of equal elements the first one has the gradient
        operator, axis = getattr(tenon, name), self.draw.choice([1, 1, 2, -1])
        if name in ("softmax", "log_softmax", "cumsum"):
            return self._each(f"{name} along {axis}", lambda x: operator(x, axis), 1)[:2] + (
                lambda x: [operator(row, axis - 1 if axis > 0 else axis) for row in x],
                1,
            )

        def of_rows(x: Rows) -> Any:
            found = [operator(row, axis - 1 if axis > 0 else axis) for row in x]
            along_rows = axis == 1 or (axis == -1 and x[0].ndim == 1)
            return tenon.stack(found) if along_rows else found

        return f"{name} along {axis}", lambda x: operator(x, axis), of_rows, 1

    def _whole(self) -> tuple[str, Function, Function, int]:
        name = self.draw.choice(["sum", "mean", "max", "norm"])
        operator = getattr(tenon, name)
        return f"{name} of all", lambda x: operator(x), lambda rows: operator(tenon.concat(rows)), 1

    def _view(self) -> tuple[str, Function, Function, int]:
        count, k = len(self.lengths), self.draw.randint(-4, 4)
        pad = self.draw.choice([0, -1, 7])

        def padded(rows: Rows) -> tenon.Tensor:
            longest = max(row.shape[0] for row in rows)
            filled = [
                tenon.concat(
                    [row, tenon.full([longest - row.shape[0], *row.shape[1:]], pad).to(row.dtype)]
                )
                for row in rows
            ]
            return tenon.stack(filled)

        views: list[tuple[str, Function, Function]] = [
            (f"[{k}]", lambda x: x[k], lambda rows: rows[k]),
            (f"[{k}:]", lambda x: x[k:], lambda rows: rows[k:]),
            ("to_dense", lambda x: x.to_dense(pad), padded),
            (
                "reshape",
                lambda x: x.reshape([*x.shape[:2], -1]),
                lambda rows: [
                    row.reshape(
                        [
                            row.shape[0],
                            row[0:1].numel()
                            if row.shape[0]
                            else max(1, int(np.prod(row.shape[1:]))),
                        ]
                    )
                    for row in rows
                ],
            ),
            (
                "[..., 0]",
                lambda x: x[..., 0] if x.ndim > 2 else x,
                lambda rows: [r[..., 0] if r.ndim > 1 else r for r in rows],
            ),
            ("flip", lambda x: tenon.flip(x, [0]), lambda rows: rows[::-1]),
            (
                "unsqueeze",
                lambda x: tenon.unsqueeze(x, -1),
                lambda rows: [tenon.unsqueeze(row, -1) for row in rows],
            ),
            ("clone", lambda x: x.clone(), lambda rows: [row.clone() for row in rows]),
            (
                "cast",
                lambda x: x.to(tenon.float32),
                lambda rows: [row.to(tenon.float32) for row in rows],
            ),
            ("zeros_like", tenon.zeros_like, lambda rows: [tenon.zeros_like(row) for row in rows]),
            ("ones_like", tenon.ones_like, lambda rows: [tenon.ones_like(row) for row in rows]),
        ]
        assert count
        return (*self.draw.choice(views), 1)

    def _layer(self) -> tuple[str, Function, Function, int]:
        width = self.trailing[-1] if self.trailing else 1
        weight = self._numbers((width, 2))
        table = tenon.tensor(self.rng.standard_normal((9, 2)))
        layers: list[tuple[str, Function]] = [
            ("matmul", lambda x: x @ weight),
            ("linear", lambda x: tenon.linear(x, weight.T)),
            ("layer_norm", lambda x: tenon.nn.functional.layer_norm(x, [width])),
            ("embedding", lambda x: tenon.nn.functional.embedding(x, table)),
        ]
        return self._each(*self.draw.choice(layers))

    def _join(self) -> tuple[str, Function, Function, int]:
        axis = self.draw.choice([0, 1, 2])

        def of_rows(x: Rows, y: Rows) -> Rows:
            if axis == 0:
                like = tenon.concat([x[0], y[0]], 0).dtype
                return [row.to(like) for row in (*x, *y)]
            return [tenon.concat([a, b], axis - 1) for a, b in zip(x, y)]

        return f"concat along {axis}", lambda x, y: tenon.concat([x, y], axis), of_rows, 2

    # -- runs ---------------------------------------------------------------------------------------------------
    def checks(self) -> Iterator[tuple[str, str | None]]:
        trace = [f"lengths {self.lengths}, trailing {self.trailing}, {self.dtype}"]
        kinds = [
            self._unary,
            self._with_number,
            self._binary,
            self._beside,
            self._reduce,
            self._whole,
            self._view,
        ]
        kinds += [self._layer, self._join]
        for _ in range(self.draw.randint(3, 10)):
            make = self.draw.choices(kinds, [10, 8, 10, 6, 10, 3, 12, 5, 5])[0]
            label, function, of_rows, count = make()
            ragged = [
                i for i, (_, rows) in enumerate(self.values) if isinstance(rows, list) and rows
            ]
            chosen = tuple(self.draw.choice(ragged) for _ in range(count))
            pairs = [self.values[i] for i in chosen]
            history = f"after {'; '.join(trace)}, {label} of {chosen}: "
            same_rows = all(
                [r.shape[0] for r in p[1]] == [r.shape[0] for r in pairs[0][1]] for p in pairs
            )
            want = None
            if same_rows or label == "concat along 0" or label == "concat along 1":
                try:
                    if len({len(p[1]) for p in pairs}) == 1 or label == "concat along 0":
                        want = attempt(of_rows, *(p[1] for p in pairs))
                except (Refused, Fault):
                    want = None
            try:
                got = attempt(function, *(p[0] for p in pairs))
            except Refused:
                yield f"refused {label}", None
                continue
            except Fault as fault:
                yield label, history + str(fault)
                return
            if want is None:
                yield label, f"{history}answered where rows are refused: {got}"
                return
            text = self._differs(got, want)
            yield label, text and history + text
            if text:
                return
            self.values.append((got, want))
            self.steps.append((function, chosen))
            trace.append(f"{label} of {chosen}")
        yield from self._compiled(trace)
        yield from self._gradients(trace)

    def _differs(self, got: Any, want: Any) -> str | None:
        if not isinstance(want, list):
            return differs(got, want)
        if got.layout != "ragged" or got.shape[0] != len(want):
            return f"got {got.layout}{list(got.shape)}, expected {len(want)} rows"
        for i, row in enumerate(want):
            text = differs(got[i], row)
            if text:
                return f"row {i}: {text}"
        return None

    def _compiled(self, trace: list[str]) -> Iterator[tuple[str, str | None]]:
        if not self.steps:
            return

        def function(*leaves: tenon.Tensor) -> Any:
            values: list[Any] = list(leaves)
            for step, chosen in self.steps:
                values.append(step(*(values[i] for i in chosen)))
            return dense(values[-1])

        leaves = [given.detach() for given, _ in self.leaves]
        program, want = tenon.compile(function), bits(function(*leaves))
        for _ in range(2):
            try:
                same = bits(attempt(program, *leaves)) == want
            except (Refused, Fault) as error:
                yield "compiled", f"{'; '.join(trace)}: {error}"
                return
            yield "compiled", None if same else f"{'; '.join(trace)}: other bits compiled"

    def _gradients(self, trace: list[str]) -> Iterator[tuple[str, str | None]]:
        if not self.gradients:
            return
        ours, theirs = [], []
        for given, rows in self.values[len(self.leaves) :]:
            one = (
                tenon.concat([row.reshape([-1]) for row in rows])
                if isinstance(rows, list) and rows
                else rows
            )
            if (
                not isinstance(one, tenon.Tensor)
                or not one.requires_grad
                or not one.dtype.is_floating_point
            ):
                continue
            other = given.values() if given.layout == "ragged" else given
            weight = self._numbers(tuple(other.shape)).to(one.dtype)
            if not given.requires_grad:
                yield "gradient", f"{'; '.join(trace)}: a result that does not record gradients"
                return
            ours.append((other * weight).sum().to(tenon.float64))
            theirs.append((one.reshape([-1]) * weight.reshape([-1])).sum().to(tenon.float64))
        if not ours:
            return
        try:
            attempt(sum(theirs[1:], theirs[0]).backward)
            attempt(sum(ours[1:], ours[0]).backward)
        except (Refused, Fault) as error:
            yield "gradient", f"{'; '.join(trace)}: {error}"
            return
        for number, (given, rows) in enumerate(self.leaves):
            wanted = [tenon.zeros_like(row) if row.grad is None else row.grad for row in rows]
            got = given.grad
            if got is None:
                text = (
                    "no gradient"
                    if any(g.numel() and g.abs().max().item() for g in wanted)
                    else None
                )
            else:
                text = self._differs(got, wanted)
            yield "gradient", text and f"{'; '.join(trace)}: leaf {number}: {text}"


def case(draw: random.Random) -> Iterator[tuple[str, str | None]]:
    yield from RaggedProgram(draw).checks()
