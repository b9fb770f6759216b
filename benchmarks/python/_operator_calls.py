# SPDX-License-Identifier: Apache-2.0
"""Calls of operators as text, in Tenon and in its peers.

In a call, `lib` is the library (of JAX, jax.numpy), `F` its functions of neural networks, `S` its special
functions, `L` its linear algebra, `FFT` its Fourier transforms. Operands, of n elements in all:

    x y       normally distributed        p    from 0.1 to 3             u    from -0.9 to 0.9
    m         square                      w    square, well conditioned  spd  square, positive definite
    i         integers from 1 to 99       j    more of them              at   positions in x, one for each element
    b         true or false               rows positions in m's axis 1   classes, of m's rows
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Call:
    """`others`: what a library writes otherwise; None, that it has no such call."""

    text: str
    others: dict[str, str | None] = dataclasses.field(default_factory=dict)
    checked: bool = True
    largest: int = 10**6  # elements; more take too long

    def text_in(self, library: str) -> str | None:
        return self.others.get(library, self.text)


def same(names: str, arguments: str, **others: str | None) -> dict[str, Call]:
    """Functions of one name in all libraries; one that lacks it is left out when it is called."""
    return {name: Call(f"lib.{name}({arguments})", others) for name in names.split()}


def neural(names: str, arguments: str) -> dict[str, Call]:
    """Functions of neural networks, which NumPy has not."""
    return {
        name: Call(
            f"F.{name}({arguments})",
            {"numpy": None, "tenon": f"lib.{name}({arguments})"},
        )
        for name in names.split()
    }


def special(names: str, arguments: str) -> dict[str, Call]:
    """Functions that NumPy and JAX leave to SciPy."""
    return {
        name: Call(f"S.{name}({arguments})", {"tenon": f"lib.{name}({arguments})"})
        for name in names.split()
    }


ELEMENTWISE = {
    **same("abs negative sign square exp exp2 expm1 sin cos tan sinh cosh tanh floor ceil", "x"),
    **same(
        "round trunc isnan isinf isfinite signbit deg2rad rad2deg sinc positive nan_to_num", "x"
    ),
    **same("log log2 log10 log1p sqrt reciprocal", "p"),
    **same("asin acos atanh", "u"),
    **same("atan asinh", "x"),
    "acosh": Call("lib.acosh(p + 1)"),
    "rsqrt": Call("lib.rsqrt(p)", {"numpy": "1 / lib.sqrt(p)", "jax": "lax.rsqrt(p)"}),
    "cbrt": Call("lib.cbrt(p)"),
    "frac": Call("lib.frac(x)"),
    "logical_not": Call("lib.logical_not(b)"),
    "bitwise_not": Call("~i"),
    "sigmoid": Call("lib.sigmoid(x)", {"numpy": "S.expit(x)", "jax": "F.sigmoid(x)"}),
    "logit": Call("lib.logit(p / 4)", {"numpy": "S.logit(p / 4)", "jax": "S.logit(p / 4)"}),
    **special("erf erfc digamma i0 i0e i1 i1e", "x"),
    "lgamma": Call("lib.lgamma(p)", {"numpy": "S.gammaln(p)", "jax": "S.gammaln(p)"}),
    "erfinv": Call("lib.erfinv(u)", {"numpy": "S.erfinv(u)", "jax": "S.erfinv(u)"}),
    "ndtri": Call("S.ndtri(p / 4)", {"tenon": "lib.ndtri(p / 4)"}),
    "zeta": Call("S.zeta(p + 1, p)", {"tenon": "lib.zeta(p + 1, p)"}),
    "gammainc": Call("S.gammainc(p, y * y)", {"tenon": "lib.gammainc(p, y * y)"}),
    "xlogy": Call("lib.xlogy(x, p)", {"numpy": "S.xlogy(x, p)", "jax": "S.xlogy(x, p)"}),
    **neural("relu relu6 silu gelu elu selu celu softplus softsign mish leaky_relu", "x"),
    **neural("hardswish hardsigmoid hardtanh", "x"),
    **same("add subtract multiply divide maximum minimum fmax fmin hypot atan2 copysign", "x, y"),
    **same("nextafter logaddexp logaddexp2 remainder floor_divide fmod heaviside", "x, y"),
    "pow": Call("lib.pow(p, y)"),
    **same("logical_and logical_or logical_xor", "b, b"),
    **same("bitwise_and bitwise_or bitwise_xor gcd lcm", "i, j"),
    "integer add": Call("i + j"),
    "integer divide": Call("i // j"),
    "integer remainder": Call("i % j"),
    "where": Call("lib.where(b, x, y)"),
    "clip": Call("lib.clip(x, -1.0, 1.0)"),
    "lerp": Call("lib.lerp(x, y, 0.3)"),
    "addcmul": Call("lib.addcmul(x, y, p)"),
    "addcdiv": Call("lib.addcdiv(x, y, p)"),
    "cast to float16": Call(
        "x.to(lib.float16)", {"numpy": "x.astype('float16')", "jax": "x.astype('float16')"}
    ),
    "cast to int32": Call(
        "x.to(lib.int32)", {"numpy": "x.astype('int32')", "jax": "x.astype('int32')"}
    ),
    "clone": Call("x.clone()", {"numpy": "x.copy()", "jax": "x.copy()"}),
    "a row and a column": Call("m[:1] + m[:, :1]"),
}
# torch.equal compares whole tensors; its comparison of elements is eq.
for _name, _torch in (
    ("equal", "eq"), ("not_equal", "ne"), ("less", "lt"), ("less_equal", "le"), ("greater", "gt"), ("greater_equal", "ge"),
):  # fmt: skip
    ELEMENTWISE[_name] = Call(f"lib.{_name}(x, y)", {"torch": f"lib.{_torch}(x, y)"})
for _name, _numpy in (("relu", "lib.maximum(x, 0)"), ("softplus", "lib.logaddexp(0, x)")):
    ELEMENTWISE[_name].others["numpy"] = _numpy
for _name, _jax in (
    ("hardswish", "F.hard_swish(x)"), ("hardsigmoid", "F.hard_sigmoid(x)"), ("hardtanh", "F.hard_tanh(x)"),
    ("softsign", "F.soft_sign(x)"),
):  # fmt: skip
    ELEMENTWISE[_name].others["jax"] = _jax
ELEMENTWISE["gelu"].others["jax"] = "F.gelu(x, approximate=False)"

REDUCTIONS = {
    **same("sum mean prod nansum nanmean count_nonzero argmax argmin", "x"),
    "max": Call("lib.max(x)"),
    "min": Call("lib.min(x)"),
    "all": Call("lib.all(b)"),
    "any": Call("lib.any(~b)"),
    **{
        f"{name}, rows": Call(f"lib.{name}(m, axis=1)")
        for name in "sum mean prod argmax argmin nansum".split()
    },
    **{f"{name}, columns": Call(f"lib.{name}(m, axis=0)") for name in "sum mean argmax".split()},
    "max, rows": Call("lib.max(m, axis=1)", {"torch": "lib.amax(m, 1)"}),
    "max, columns": Call("lib.max(m, axis=0)", {"torch": "lib.amax(m, 0)"}),
    "var, rows": Call("lib.var(m, axis=1)", {"torch": "lib.var(m, 1, correction=0)"}),
    "std": Call("lib.std(x)", {"torch": "lib.std(x, correction=0)"}),
    "logsumexp, rows": Call(
        "lib.logsumexp(m, 1)", {"numpy": "S.logsumexp(m, 1)", "jax": "S.logsumexp(m, 1)"}
    ),
    "norm": Call("L.vector_norm(x)"),
    "norm, rows": Call("L.vector_norm(m, axis=1)", {"torch": "L.vector_norm(m, dim=1)"}),
    "median": Call("lib.quantile(x, 0.5)"),
    "dot": Call("lib.dot(x, y)"),
}

ORDER = {
    "cumsum": Call("lib.cumsum(x, 0)"),
    "cumsum, rows": Call("lib.cumsum(m, 1)"),
    "cumsum, columns": Call("lib.cumsum(m, 0)"),
    "cumprod": Call("lib.cumprod(u, 0)"),
    "cummax": Call(
        "lib.cummax(x, 0)[0]", {"numpy": "lib.maximum.accumulate(x)", "jax": "lax.cummax(x)"}
    ),
    "logcumsumexp": Call("lib.logcumsumexp(x, 0)", {"numpy": "lib.logaddexp.accumulate(x)", "jax": "lax.cumlogsumexp(x)"}),
    "diff": Call("lib.diff(x)"),
    "sort": Call("lib.sort(x)", {"torch": "lib.sort(x)[0]"}),
    "sort, rows": Call("lib.sort(m, axis=1)", {"torch": "lib.sort(m, 1)[0]"}),
    "argsort": Call("lib.argsort(x)", checked=False),
    "topk 10, rows": Call("lib.topk(m, min(10, m.shape[1]))[0]", {"numpy": None, "jax": "lax.top_k(m, min(10, m.shape[1]))[0]"}),
    "unique": Call("lib.unique(i)"),
    "searchsorted": Call("lib.searchsorted(ascending, x)"),
    "bincount": Call("lib.bincount(i)", {"jax": "lib.bincount(i, length=100)"}, checked=False),
    "flip": Call("lib.flip(x, [0])", {"numpy": "lib.flip(x, 0).copy()", "jax": "lib.flip(x, 0)"}),
    "roll": Call("lib.roll(x, 3)"),
}  # fmt: skip

INDEXING = {
    "take": Call("x[at]"),
    "take rows": Call("m[rows]"),
    "take_along_axis": Call(
        "lib.take_along_axis(m, along, 1)", {"torch": "lib.take_along_dim(m, along, 1)"}
    ),
    "mask": Call("x[b]"),
    "assign at positions": Call("put(x, at, y)", {"jax": "x.at[at].set(y)"}, checked=False),
    "add at positions": Call(
        "x.index_add(0, at, y)",
        {"tenon": "lib.index_add(x, at, y)", "numpy": "add_at(x, at, y)", "jax": "x.at[at].add(y)"},
    ),
    "nonzero": Call("lib.nonzero(b)", {"torch": "lib.nonzero(b, as_tuple=True)"}, checked=False),
    "one_hot": Call("F.one_hot(rows, 64 + m.shape[0])", {"numpy": None}),
    "slice with a step": Call("x[::2] + 0.0"),
}

ARRANGEMENT = {
    "concat": Call("lib.concat([x, y], 0)", {"jax": "lib.concatenate([x, y], 0)"}),
    "stack": Call("lib.stack([x, y], 0)"),
    "tile": Call("lib.tile(m, (1, 2))"),
    "repeat_interleave": Call("lib.repeat_interleave(x, 2)", {"tenon": "lib.repeat(x, 2)", "numpy": "lib.repeat(x, 2)", "jax": "lib.repeat(x, 2)"}),
    "pad": Call("F.pad(m, (1, 1))", {"numpy": "lib.pad(m, ((0, 0), (1, 1)))", "jax": "lib.pad(m, ((0, 0), (1, 1)))"}),
    "transpose and copy": Call("m.T.contiguous()", {"numpy": "lib.ascontiguousarray(m.T)", "jax": "m.T.copy()"}),
    "tril": Call("lib.tril(m)"),
    "triu": Call("lib.triu(m)"),
    "diag": Call("lib.diag(m[0])"),
    "outer": Call("lib.outer(m[0], m[:, 0])"),
    "reshape": Call("m.reshape(-1)"),
    "expand": Call("m.unsqueeze(0).expand(3, -1, -1)", {"numpy": "lib.broadcast_to(m[None], (3, *m.shape))", "jax": None}),
    "zeros": Call("lib.zeros(x.shape[0])"),
    "full": Call("lib.full((x.shape[0],), 2.0)"),
    "arange": Call("lib.arange(x.shape[0])"),
    "linspace": Call("lib.linspace(0.0, 1.0, x.shape[0])"),
    "eye": Call("lib.eye(m.shape[0])"),
    "rand": Call("lib.rand(x.shape[0])", {"numpy": "random.random(x.shape[0], 'float32')", "jax": "draw.uniform(key, x.shape)"}, checked=False),
    "randn": Call("lib.randn(x.shape[0])", {"numpy": "random.standard_normal(x.shape[0], 'float32')", "jax": "draw.normal(key, x.shape)"}, checked=False),
    "randperm": Call("lib.randperm(x.shape[0])", {"numpy": "random.permutation(x.shape[0])", "jax": "draw.permutation(key, x.shape[0])"}, checked=False),
    "bernoulli": Call("lib.bernoulli(p / 4)", {"numpy": None, "jax": "draw.bernoulli(key, p / 4)"}, checked=False),
}  # fmt: skip

NETWORKS = {
    "softmax": Call("F.softmax(m, -1)", {"numpy": "S.softmax(m, -1)"}),
    "log_softmax": Call("F.log_softmax(m, -1)", {"numpy": "S.log_softmax(m, -1)"}),
    "layer_norm": Call("F.layer_norm(m, m.shape[1:])", {"numpy": None, "jax": None}),
    "rms_norm": Call("F.rms_norm(m, eps=1e-5)", {"torch": "F.rms_norm(m, m.shape[1:], eps=1e-5)", "numpy": None, "jax": None}),
    "cross_entropy": Call("F.cross_entropy(m, classes)", {"numpy": None, "jax": None}),
    "mse_loss": Call("F.mse_loss(x, y)", {"numpy": "((x - y) ** 2).mean()", "jax": "((x - y) ** 2).mean()"}),
    "l1_loss": Call("F.l1_loss(x, y)", {"numpy": "lib.abs(x - y).mean()", "jax": "lib.abs(x - y).mean()"}),
    "smooth_l1_loss": Call("F.smooth_l1_loss(x, y)", {"numpy": None, "jax": None}),
    "binary_cross_entropy_with_logits": Call("F.binary_cross_entropy_with_logits(x, p / 4)", {"numpy": None, "jax": None}),
    "glu": Call("F.glu(lib.concat([m, m], 1))", {"numpy": None, "jax": None}),
    "embedding": Call("F.embedding(rows, m)", {"numpy": "m[rows]", "jax": "m[rows]"}),
    "cosine_similarity": Call("F.cosine_similarity(m, w)", {"numpy": None, "jax": None}),
    "normalize": Call("F.normalize(m)", {"numpy": None, "jax": None}),
    "max_pool1d": Call("F.max_pool1d(m.reshape(1, 1, -1), 2, padding=1)", {"numpy": None, "jax": None}),
    "avg_pool1d": Call("F.avg_pool1d(m.reshape(1, 1, -1), 2, padding=1)", {"numpy": None, "jax": None}),
    "conv1d": Call("F.conv1d(m.reshape(1, 1, -1), taps, padding=1)", {"numpy": None, "jax": None}),
}  # fmt: skip

ALGEBRA = {
    "matmul": Call("m @ w"),
    "matrix and vector": Call("m @ w[0]"),
    "trace": Call("lib.trace(m)"),
    "kron": Call("lib.kron(m[:2, :2], w)"),
    "det": Call("L.det(w)", checked=False),  # beyond the range of float32 in large ones
    "inv": Call("L.inv(w)"),
    "solve": Call("L.solve(w, m)"),
    "cholesky": Call("L.cholesky(spd)"),
    "qr": Call("L.qr(w)[1]", checked=False),  # up to signs
    "svdvals": Call("L.svdvals(w)", largest=10**4),
    "eigvalsh": Call("L.eigvalsh(spd)", largest=10**4),
    "fft": Call("lib.real(FFT.fft(x))"),
    "rfft": Call("lib.real(FFT.rfft(x))"),
    "irfft": Call("FFT.irfft(x, 2 * x.shape[0])"),
}

GROUPS = {
    "element by element": ELEMENTWISE,
    "reductions": REDUCTIONS,
    "scans and order": ORDER,
    "indexing": INDEXING,
    "arrangement and creation": ARRANGEMENT,
    "neural networks": NETWORKS,
    "linear algebra": ALGEBRA,
}
