# SPDX-License-Identifier: Apache-2.0
"""Arguments for NumPy's functions: a call of each that is written down, then the same with arrays of other
dtypes, shapes and layouts, and other values for each parameter."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

V = np.array([3, 1, 2, 1])
M = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])
S = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
T = np.arange(24.0).reshape(2, 3, 4) / 8 - 1
C = np.array([1 + 2j, -0.5j, 3.0, 1 - 1j])
K = np.array([0, 1, 2, 0])
B = np.array([True, False, True, True])
N = np.array([[1.0, np.nan, 2.0], [np.nan, np.nan, -1.0]])

CALLS = """
abs(M)
all(M, axis=1, keepdims=True)
allclose(M, M + 1e-9)
amax(M, 0)
amin(M, 0)
angle(C)
any(M, axis=1)
append(M, M, 0)
arange(1, 7, 2)
arange(5)
arange(0.5, 2.0, 0.25)
argmax(M, axis=1)
argmin(M, axis=1)
argpartition([1, 2, 3], 1)
argsort(M, axis=0)
argwhere(M > 0)
around(M, 1)
array(M)
array(V, dtype=np.float32)
array_equal(M, M)
array_equiv(V, V)
array_split(V, 3)
array_split(M, [1], 1)
asanyarray(V)
asarray(V)
astype(V, np.float32)
astype(M, 'int8')
ascontiguousarray(V)
atleast_1d(V)
atleast_2d(V)
atleast_3d(V)
average(M, 1, [1.0, 2.0, 3.0])
average(M, weights=M + 3)
bartlett(5)
bincount(V, minlength=6)
bincount(V, V + 0.5)
blackman(5)
block([[M, M], [M, M]])
broadcast_arrays(V, M[:1, :1])
broadcast_to(V, (2, 4))
can_cast(np.int32, np.float32)
can_cast(np.float64, np.float32, 'same_kind')
choose([0, 1, 1, 0], [V, V + 10])
clip(M, 0.0, 2.0)
clip(V, 1, None)
column_stack((V, V))
compress([True, False, True], M, axis=1)
concat((M, M), axis=1)
concatenate((V, C))
concatenate((M, M), axis=None)
convolve(V, [1, 0.5])
copy(M)
copyto(M.copy(), 1.0)
copyto(M.copy(), M + 1, where=M > 0)
corrcoef(M)
corrcoef(M[0])
correlate(V, [1, 2], 'full')
count_nonzero(M, axis=1)
cov(M)
cov(M[0])
cov(M, M + 1, rowvar=False)
cross(S, S[::-1])
cumprod(M, axis=1)
cumsum(M, axis=1)
cumulative_prod(V)
cumulative_sum(M, axis=1)
delete(M, [0, 2], axis=1)
delete(V, 1)
diag(V)
diag(M, 1)
diag_indices(3)
diag_indices_from(S)
diagflat(M)
diagonal(T, 1, 1, 2)
diff(M, 1, 1)
diff(V, 2)
diff(B)
digitize(M, [0.0, 1.0, 2.0])
dot(M, S)
dot(T, S[:, 0][:3] if False else np.ones(4))
dsplit(T, 2)
dstack((V, V))
ediff1d(V, to_begin=-9, to_end=[8, 7])
einsum('ij,kj->ik', M, M)
einsum('ii->i', S)
empty((2, 3))
expand_dims(V, 0)
extract(M > 0, M)
eye(3, 4, 1)
fill_diagonal(S.copy(), 7.0)
fix(M)
flatnonzero(M)
flip(M, 1)
fliplr(M)
flipud(M)
full((2, 2), 1.5)
full_like(V, 2.5)
geomspace(1, 1000, 4)
gradient(M, axis=1)
gradient(V)
hamming(5)
hanning(5)
histogram(M, 4)
histogram2d(V, V, 3)
histogram_bin_edges(M, 4)
histogramdd(M.T, 3)
hsplit(M, [1])
hstack((V, V))
i0(M)
identity(3)
imag(C)
imag(M)
indices((2, 3))
inner(M, S)
insert(M, 1, 5.0, axis=1)
insert(V, [1, 3], [8, 9])
interp(M, [0.0, 1.0, 2.0], [1.0, 3.0, 2.0])
intersect1d(V, [1, 3, 7])
isclose(M, M + 1e-9)
iscomplex(C)
iscomplexobj(C)
isin(V, [1, 7])
isneginf(M)
isposinf(M)
isreal(C)
isrealobj(C)
isscalar(3.0)
ix_([0, 1], [2, 3])
kaiser(5, 8.6)
kron(M, S)
lexsort((V, K))
linspace(0, 1, 5)
linspace(V, V + 1.5, 4)
logspace(0, 2, 3)
matmul(M, S)
matmul(T, np.ones((4, 2)))
matrix_transpose(T)
matvec(M, V[:3])
max(M, axis=1)
mean(M, axis=1)
median(M, axis=1)
meshgrid(V, [1.0, 2.0])
min(M, axis=1)
moveaxis(T, 0, -1)
nan_to_num(N)
nanargmax(M, axis=1)
nanargmin(M, axis=1)
nancumprod(N, axis=1)
nancumsum(N, axis=1)
nanmax(N, axis=1)
nanmean(N, axis=1)
nanmedian(N, axis=1)
nanmin(N, axis=1)
nanpercentile(N, 30, axis=1)
nanprod(N, axis=1)
nanquantile(N, 0.3, axis=1)
nanstd(N, axis=1)
nansum(N, axis=1)
nanvar(N, axis=1)
ndim(M)
nonzero(M)
ones((2, 3))
ones_like(V)
outer(V, V)
pad(V, 2)
pad(M, ((1, 0), (0, 2)), constant_values=5)
pad(V, 2, 'reflect')
pad(M, 1, 'mean')
pad(V, (3, 5), 'symmetric')
pad(V, (3, 5), 'wrap')
pad(M, 2, 'linear_ramp', end_values=3)
pad(M, 1, 'maximum', stat_length=2)
partition([1, 2, 3], 1)
percentile(M, [10, 50], axis=1)
permute_dims(T, (2, 0, 1))
piecewise(M, [M < 0], [-1.0, 1.0])
place(M.copy(), M > 0, [7.0, 8.0])
poly(V)
polyadd([1, 2], [9, 5, 4])
polyder([1, 2, 3])
polydiv([1.0, 5.0, 6.0], [1.0, 2.0])
polyfit([0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 2.0, 4.0], 2)
polyint([1, 2, 3])
polymul([1, 2], [9, 5, 4])
polysub([1, 2], [9, 5, 4])
polyval([1, 2, 3], M)
prod(M, axis=1)
promote_types(np.int32, np.float32)
promote_types(np.uint8, np.int8)
ptp(M, 1)
put(M.copy(), [0, 2], [7.0, 8.0])
put_along_axis(M.copy(), np.array([[0], [1]]), 9.0, 1)
putmask(M.copy(), M > 0, [7.0, 8.0])
quantile(M, [0.1, 0.5], axis=1)
quantile(M, 0.3)
ravel(M)
ravel_multi_index(([1, 0], [2, 1]), (2, 3))
real(C)
real(M)
real_if_close(C)
repeat(M, 2, axis=1)
repeat(V, [1, 0, 2, 1])
reshape(M, (3, 2))
resize(V, (2, 5))
result_type(V, M)
roll(M, 1, 1)
rollaxis(T, 2)
roots([1.0, -3.0, 2.0])
rot90(T, 1, (1, 2))
round(M, 1)
searchsorted([1, 2, 3], [2, 5])
select([V > 2, V > 1], [V, V + 10], -1)
setdiff1d(V, [1])
setxor1d(V, [1, 7])
shape(M)
sinc(M)
size(M, 1)
sort(M, axis=0)
split(V, 2)
squeeze(T[:1])
stack((V, V))
std(M, axis=1)
sum(M, axis=1)
swapaxes(T, 0, 2)
take(M, [1, 0], axis=1)
take(V, 2)
take_along_axis(M, np.array([[0], [1]]), 1)
tensordot(T, T, ((1, 2), (1, 2)))
tile(M, (2, 1))
trace(T)
transpose(T)
trapezoid(M)
tri(3, 4, 1)
tril(M)
tril_indices(3)
tril_indices_from(S)
trim_zeros(np.array([0, 1, 2, 0]))
triu(M)
triu_indices(3)
triu_indices_from(S)
union1d(V, [7])
unique(V, return_index=True, return_inverse=True, return_counts=True)
unique(N)
unique_all(V)
unique_counts(V)
unique_inverse(V)
unique_values(V)
unravel_index([5, 1], (2, 3))
unstack(T)
unwrap(M * 3)
vander(V)
var(M, axis=1)
vdot(C, C)
vecdot(M, M)
vecmat(V[:2], M)
vsplit(M, 2)
vstack((V, V))
where(M > 0, M, 0.0)
where(M > 0)
zeros((2, 3))
zeros_like(V)
linalg.cholesky(S)
linalg.cond(S)
linalg.cross(S, S[::-1])
linalg.det(S)
linalg.diagonal(T)
linalg.eigvalsh(S)
linalg.inv(S)
linalg.lstsq(S[:, :2], S[:, 2])
linalg.matmul(M, S)
linalg.matrix_norm(S)
linalg.matrix_power(S, 3)
linalg.matrix_rank(S)
linalg.matrix_transpose(T)
linalg.multi_dot([M, S, S])
linalg.norm(S)
linalg.outer(V, V)
linalg.pinv(M)
linalg.slogdet(S)
linalg.solve(S, M.T)
linalg.svdvals(M)
linalg.tensordot(M, S, axes=1)
linalg.tensorinv(np.eye(6).reshape(2, 3, 6) + 0.1)
linalg.tensorsolve(np.eye(6).reshape(2, 3, 6) + 0.1, M)
linalg.trace(T)
linalg.vecdot(M, M)
linalg.vector_norm(M, axis=1)
fft.fft(M)
fft.ifft(C)
fft.rfft(M)
fft.irfft(C)
fft.hfft(C)
fft.ihfft(M)
fft.fft2(M)
fft.ifft2(M)
fft.rfft2(M)
fft.irfft2(M)
fft.fftn(T)
fft.ifftn(T)
fft.rfftn(T)
fft.irfftn(T)
fft.fftfreq(5)
fft.rfftfreq(5)
fft.fftshift(V)
fft.ifftshift(V)
""".strip().splitlines()

_VALUES: dict[str, tuple[Any, ...]] = {
    "axis": (None, 0, 1, -1, (0, 1), 5),
    "axes": (None, (0, 1), (1, 0), (0,), -1, 1),
    "axis1": (0, 1, -1),
    "axis2": (0, 1, -1),
    "axisa": (0, -1),
    "axisb": (0, -1),
    "axisc": (0, -1),
    "keepdims": (True, False),
    "dtype": (np.float32, np.int64, float, np.complex128, np.int8, bool),
    "initial": (2, 0.5, None),
    "ddof": (1, 2, 0.5),
    "correction": (1, 0),
    "mean": (np.float64(0.5),),
    "order": ("C", "F"),
    "decimals": (0, 1, 2, -1),
    "k": (0, 1, -1, 2),
    "offset": (1, -1, 5),
    "n": (0, 1, 2, 5),
    "num": (0, 1, 3),
    "endpoint": (False,),
    "retstep": (True,),
    "base": (2.0, 2),
    "mode": (
        "raise",
        "wrap",
        "clip",
        "full",
        "same",
        "valid",
        "edge",
        "reflect",
        "symmetric",
        "maximum",
    )
    + ("minimum", "median", "reduced", "r", "complete"),
    "side": ("right",),
    "copy": (True, False, None),
    "sparse": (True,),
    "indexing": ("ij", "xy"),
    "bins": (3, [0.0, 1.0, 2.0]),
    "range": ((0.0, 3.0), (-1.0, 2.0)),
    "density": (True, False),
    "method": ("lower", "higher", "nearest", "midpoint", "linear", "hazen"),
    "q": (0.5, [0.25, 0.5], 1),
    "norm": ("ortho", "forward", "backward", None),
    "s": (None, (2, 2), (4,)),
    "p": (2, 1, "fro", np.inf, -2),
    "ord": (1, 2, -1, -2, np.inf, -np.inf, "fro", "nuc", None, 0, 3),
    "UPLO": ("U", "L"),
    "rcond": (None, 0.1, -1),
    "rtol": (0.1, None),
    "tol": (0.1, 2.0),
    "shape": ((4,), (2, 2), 4),
    "reps": (1, 2, (2, 1, 2)),
    "repeats": (0, 1, 3),
    "shift": (2, (1, 2), -1),
    "wrap": (True,),
    "weights": ([1.0, 2.0, 3.0], [0.5, 0.5, 1.0, 2.0]),
    "fweights": ([1, 2, 3], [1, 2]),
    "aweights": ([1.0, 0.5, 3.0], [1.0, 2.0]),
    "y": (None,),
    "prepend": (0, 1.5),
    "append": (0, 1.5),
    "N": (2, 5, None),
    "M": (2, 5, None),
    "trim": ("f", "b"),
    "period": (1.0, 3),
    "left": (-1.0,),
    "right": (True, 9.0),
    "dx": (0.5, 2),
    "x": (),
    "edge_order": (2,),
    "minlength": (0, 9),
    "casting": ("safe", "same_kind", "unsafe", "no"),
    "nan": (1.0,),
    "posinf": (5.0,),
    "neginf": (-5.0,),
    "kind": ("stable", "quicksort", "mergesort", "introselect"),
    "to_end": (5, [1, 2]),
    "to_begin": (5, [1, 2]),
    "a_min": (0.0, 1, None),
    "a_max": (0.0, 1, None),
    "min": (0.0, 1, None),
    "max": (0.0, 1, None),
    "atol": (0.1, 1e-12),
    "ndmin": (0, 3),
    "start": (0, 1, -1),
    "stop": (5, 2.5),
    "step": (2, 0.5, -1),
    "m": (0, 2),
    "device": ("cpu", None),
    "optimize": (True, False),
    "default": (0, 1.5),
    "fill_value": (3, 2.5, True),
    "stable": (True, None),
    "subok": (False, True),
    "discont": (None, 1.0),
    "deg": (1, 0, True),
    "ind": (1,),
    "d": (0.5, 2),
    "beta": (2, 0.0),
    "invert": (True,),
}
_SWITCHES = (
    "return_index return_inverse return_counts return_indices assume_unique equal_nan rowvar bias "
    "increasing include_initial returned compute_uv full_matrices hermitian upper overwrite_input "
    "allow_pickle full cov sorted"
).split()


def alternatives(function: str, theirs: Any, name: str, arguments: dict[str, Any]) -> Iterable[Any]:
    """Other values for a parameter."""
    if name in _SWITCHES:
        return (True, False)
    if name == "deg" and function != "angle":
        return (1, 0)
    if name in ("out", "where"):
        return _like_result(theirs, name, arguments)
    return _VALUES.get(name, ())


def _like_result(theirs: Any, name: str, arguments: dict[str, Any]) -> Iterator[Any]:
    """An `out` of the result's shape, or a mask of the operand's."""
    if name == "where":
        if isinstance(theirs, np.ufunc) and "out" not in arguments:
            return  # what is left out is memory as it was
        for value in arguments.values():
            if isinstance(value, np.ndarray):
                yield np.arange(value.size).reshape(value.shape) % 2 == 0
                break
        return
    given = {key: each for key, each in arguments.items() if key != "out"}
    try:
        found = _called(theirs, given)
    except Exception:
        return
    if isinstance(found, (np.ndarray, np.generic)):
        yield np.zeros_like(np.asarray(found))
        yield np.zeros(np.shape(found) + (2,), np.asarray(found).dtype)
        yield np.zeros(np.shape(found), np.int8)


def _called(theirs: Any, arguments: dict[str, Any]) -> Any:
    operands = [
        arguments.pop(each)
        for each in ("x", "x1", "x2")
        if isinstance(theirs, np.ufunc) and each in arguments
    ]
    return theirs(*operands, **arguments)


_SPECIAL = [0, 1, -1, 2, -3, 7, 100]
_DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()


def array_of(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Numbers of both signs, halves, and where there are such, NaN and infinities now and then."""
    drawn = np.random.default_rng(seed)
    if dtype == "bool":
        return drawn.integers(0, 2, shape) > 0
    if dtype.startswith("uint"):
        return drawn.integers(0, 9, shape).astype(dtype)
    if dtype.startswith("int"):
        return drawn.integers(-5, 9, shape).astype(dtype)
    values = np.asarray(drawn.integers(-12, 13, shape) / 4)
    if dtype.startswith("complex"):
        values = values + 1j * drawn.integers(-8, 9, shape) / 4
    elif seed % 5 == 0 and values.size:
        values = values.astype(np.float64)
        values.reshape(-1)[drawn.integers(values.size)] = drawn.choice(
            [np.nan, np.inf, -np.inf, -0.0]
        )
    return np.asarray(values).astype(dtype)


def of_ufunc(ufunc: np.ufunc) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Operands of all dtypes, and of Python's numbers beside them."""
    drawn = random.Random(ufunc.__name__)
    numbers = [True, 2, -3, 0, 1.5, -0.5, 2 + 1j]
    if ufunc.__name__ in "equal not_equal less less_equal greater greater_equal".split():
        numbers.remove(-3)  # beside unsigned numbers and with `where` NumPy 2.4.6 crashes
    for seed in itertools.count():
        operands: list[Any] = []
        for each in range(ufunc.nin):
            if drawn.random() < 0.2:
                operands.append(drawn.choice(numbers))
            else:
                shape = drawn.choice([(), (3,), (2, 3), (2, 1), (1, 3)])
                made = array_of(drawn.choice(_DTYPES), shape, 31 * seed + each)
                operands.append(made.tolist() if drawn.random() < 0.1 else made)
        yield tuple(operands), {}
        if seed % 3 == 0:
            try:
                shape = np.shape(ufunc(*operands)[0] if ufunc.nout > 1 else ufunc(*operands))
            except Exception:
                continue
            mask = array_of("bool", shape, seed)
            if ufunc.nout == 1:
                yield tuple(operands), {"out": np.ones(shape), "where": mask}


class _Recorder(dict[str, Any]):
    """Names of a call: the outermost function is recorded, others are called."""

    def __init__(self, function: str) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, name: str) -> Any:
        known = {"V": V, "M": M, "S": S, "T": T, "C": C, "K": K, "B": B, "N": N, "np": np}
        if name in known:
            return known[name]
        if name in ("float", "int", "bool"):
            raise KeyError(name)
        return _record if name == self._function else getattr(np, name)


def _record(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


def _written(function: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    found = []
    for call in CALLS:
        name, _, inside = call.partition("(")
        if name == function:
            found.append(eval(f"_({inside}", {}, _Recorder("_")))
    return found


def of_function(function: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The calls that are written down, then the same of other arrays."""
    written = _written(function)
    yield from written
    if not written:
        return
    drawn = random.Random(function)
    for seed in itertools.count():
        args, kwargs = drawn.choice(written)
        change = _changes(drawn, seed)
        yield tuple(change(each) for each in args), {k: change(v) for k, v in kwargs.items()}


def _changes(drawn: random.Random, seed: int) -> Callable[[Any], Any]:
    """Each array for one of another dtype, or of the same values in another layout, or a list."""
    counter = itertools.count(7 * seed)

    def change(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            kind = drawn.choice("dtype values layout list same empty".split())
            if kind == "dtype":
                with np.errstate(all="ignore"):
                    return np.nan_to_num(value).real.astype(drawn.choice(_DTYPES))
            if kind == "values":
                return array_of(drawn.choice(_DTYPES), value.shape, next(counter))
            if kind == "layout":
                return np.asfortranarray(value) if value.ndim > 1 else np.repeat(value, 2)[::2]
            if kind == "list":
                return value.tolist()
            if kind == "empty" and drawn.random() < 0.3 and value.ndim:
                return value[:0]
            return value
        if isinstance(value, (tuple, list)):
            return type(value)(change(each) for each in value)
        return value

    return change
