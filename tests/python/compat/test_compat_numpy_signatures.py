# SPDX-License-Identifier: Apache-2.0
"""tenon.compat.numpy is called as NumPy: its parameters, their order, their defaults; the rest is refused."""

import inspect

import numpy as np
import pytest
import tenon
import test_compat_numpy as calls
from tenon.compat import numpy as tnp
from tenon.compat._signature import LEFT_OUT
from tenon.compat.numpy import _signatures

SAID_BY = "2.4"  # the version of NumPy whose signatures the table has
TABLES = {"": _signatures.FUNCTIONS, "linalg": _signatures.LINALG, "fft": _signatures.FFT}


def parameters(signature):
    def default(value):
        return "left out" if value is LEFT_OUT or "no value" in repr(value) else repr(value)

    return [(p.name, p.kind, default(p.default)) for p in signature.parameters.values()]


@pytest.mark.parametrize("space", TABLES)
def test_signatures_are_those_of_numpy(space):
    if not np.__version__.startswith(SAID_BY):
        pytest.skip(f"the table is of NumPy {SAID_BY}, this is {np.__version__}")
    theirs = getattr(np, space) if space else np
    for name, signature in TABLES[space].items():
        assert parameters(signature) == parameters(inspect.signature(getattr(theirs, name))), name


def test_every_function_has_a_signature():
    for space, table in TABLES.items():
        place = getattr(tnp, space) if space else tnp
        for name in dir(place):
            value = getattr(place, name)
            universal = isinstance(getattr(np, name, None), np.ufunc)
            if inspect.isfunction(value) and not universal and name not in OF_TENON:
                assert name in table, f"{space} {name}"


# Functions that are Tenon's own, as they speak of its dtypes and its printing.
OF_TENON = set(
    "broadcast_shapes get_printoptions set_printoptions printoptions isdtype finfo iinfo".split()
)

M, V = calls.M, calls.V
CALLS = """
cumsum(array(V, dtype="int8"), 0, int)
sum(M, 0, "float32", None, True)
sum(M, initial=5)
sum(M, where=array(M) > 0)
sum(array(V, dtype="uint8"))
max(M, 1, None, True)
max(M, 1, initial=3, where=array(M) > 0)
mean(M, 1, None, None, True)
mean(array(V, dtype="float16"))
std(M, 1, None, None, 1)
var([1j, -1j])
nanvar([1j, -1j])
nanstd([1j, -1j, float("nan")])
median(M, 1, None, False, True)
median([[3, 1], [2, 5]], axis=(0, 1))
quantile(M, [0.25, 0.5], 1, None, False, "lower")
percentile(V, 50, method="nearest")
average(M, 1, [1.0, 2.0, 3.0], True)
argmax(M, 1, keepdims=True)
count_nonzero(M, 1, keepdims=True)
cov([1.0, 2.0, 4.0])
cov(M, rowvar=False)
cov(M, aweights=[1.0, 2.0, 3.0])
corrcoef([1.0, 2.0, 4.0])
nextafter(1.0, 2.0)
hypot(3, 4)
logaddexp(1, 2)
maximum(1, 2.5)
add([True], [True])
subtract(array([1], dtype="uint8"), 2)
add(array([1, 2], dtype="int32"), array([1.5, 2], dtype="float32"))
add(array([1], dtype="uint64"), array([1], dtype="int64"))
sin(array([1, 2], dtype="int8"))
sin(array([1, 2], dtype="int16"))
abs([True, False])
floor([True, False])
conj([True, False])
real([True, False])
power(2, 3)
float_power(2, 3)
reciprocal([2, 1, -1])
divmod(7, 2.0)
add(M, 1, dtype="float32")
equal(array([1], dtype="uint8"), 300)
ravel(M, "F")
reshape(M, (3, 2), "F")
ravel(array(M), order="C")
take([1, 2, 3], [3, -4], mode="wrap")
take([1, 2, 3], [3, -4], None, None, "clip")
take(M, [[0, 1], [2, 0]], 1)
take_along_axis(array(M), array([[0]]), 1)
pad(V, 2, "symmetric")
pad(V, (5, 6), "reflect")
pad(M, 1, "mean")
pad(M, ((1, 2), (0, 1)), "linear_ramp", end_values=(5, -4))
pad(M, 1, "maximum", stat_length=1)
pad(V, (3, 9), "wrap")
meshgrid(V, [1.0, 2.0], sparse=True)
indices((2, 3), sparse=True)
trace([[[1, 2], [3, 4]]], 0, 1, 2)
diagonal([[[1, 2], [3, 4]]], 0, 1, 2)
cross([[1, 2, 3]], [[4], [5], [6]], -1, 0)
diff(V, 2)
diff(V, prepend=0, append=[9, 9])
diff([True, False, False])
linspace(0, 1, 4, True, True)
linspace([0, 1], [2, 3], 3, axis=1)
linspace(-1, 1, 9)
linspace(0, 5, 3, dtype=int)
logspace([0, 1], 2, 3)
geomspace([1, 2], [8, 54], 4)
full_like(V, 2.5)
ones_like(V, float)
zeros_like(V, shape=(2, 2))
empty_like(V, shape=(0, 2))
unique(M, axis=0)
unique([1.0, float("nan"), float("nan")], False, False, True)
unique([1.0, float("nan"), float("nan")], equal_nan=False)
intersect1d([1, 2, 3], [3, 2, 5], return_indices=True)
setdiff1d([3, 1, 3], [1], assume_unique=True)
concatenate([array([1], dtype="int32"), array([1.5], dtype="float32")])
concatenate([V, [1.5]], dtype="float32")
stack([V, [1.5, 2, 3, 4]])
where([True, False], 1, 2.5)
searchsorted([1, 2, 3], 2.5)
unravel_index([5, 1], (2, 3), "F")
ravel_multi_index(([1, 0], [4, -1]), (2, 3), "wrap")
interp([0.5, 3.5], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0], period=3)
trim_zeros(array([[0, 0, 0], [0, 1, 2], [0, 0, 0]]))
trapezoid(M, dx=2)
unwrap([0, 2, 4], period=3)
vander(array([1.0, 2.0], dtype="float32"))
cumulative_sum(V, dtype=float)
histogram(array(M, dtype="float32"), 3)
histogram(M, 3, density=True)
array_equal([1.0, float("nan")], [1.0, float("nan")], True)
can_cast("int32", "float32")
can_cast("float64", "float32", "same_kind")
promote_types("int16", "uint16")
result_type(array([1], dtype="int8"), 1.5)
linalg.norm(M)
linalg.norm(M, 1)
linalg.norm(M, "nuc")
linalg.norm([M, M], axis=(1, 2), ord=2, keepdims=True)
linalg.inv([[1, 2], [3, 5]])
linalg.det([[1, 2], [3, 5]])
linalg.solve([[1, 2], [3, 5]], [1, 2])
linalg.svdvals(M)
linalg.matrix_rank([[1, 2], [2, 4]])
linalg.eigvalsh([[2, 1], [0, 2]], "L")
linalg.cond([[1.0, 2.0], [3.0, 5.0]], 1)
linalg.pinv(M)
linalg.lstsq([[1, 0], [1, 1], [1, 2]], [1, 2, 4])
linalg.matrix_power([[1, 1], [1, 0]], 5)
fft.fft([1, 2, 3])
fft.rfft(M, 4, 0, "ortho")
fft.irfft2(M)
fft.fftfreq(4, 0.5)
fft.fftshift(V)
""".strip().splitlines()


@pytest.mark.parametrize("call", CALLS)
def test_call(call):
    # Sums in another order, and single precision where the result is: eps of each dtype, times ten.
    got = flat(calls.evaluate(call, tnp))
    want = flat(calls.evaluate(call, np))
    assert len(got) == len(want)
    for ours, theirs in zip(got, want):
        if isinstance(ours, tenon.Tensor):
            theirs = np.asarray(theirs)
            assert ours.dtype.name == theirs.dtype.name and tuple(ours.shape) == theirs.shape
            eps = np.finfo(theirs.dtype).eps if theirs.dtype.kind in "fc" else 0
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=40 * eps, atol=40 * eps)
        else:
            assert str(ours) == str(theirs)


def flat(value):
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in flat(part)]
    return [value]


def test_out_is_written_and_returned():
    out = tenon.zeros([2], dtype="float64")
    assert tnp.add([1.0, 2.0], [3.0, 4.0], out) is out and out.tolist() == [4.0, 6.0]
    assert tnp.sum([[1.0, 2.0], [3.0, 4.0]], 0, None, out) is out and out.tolist() == [4.0, 6.0]
    tnp.sqrt([4.0, 9.0], out, where=[True, False])
    assert out.tolist() == [2.0, 6.0]
    with pytest.raises(ValueError, match=r"sum\(\): expected `out` of shape \(\), got \(2,\)"):
        tnp.sum([1.0, 2.0], out=out)
    with pytest.raises(TypeError, match="expected `out` of a dtype that holds float64, got int64"):
        tnp.sum([1.0, 2.0], out=tenon.zeros([], dtype="int64"))


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: tnp.sum([1.0], keepdims="yes"), "expected keepdims True or False, got 'yes'"),
        (lambda: tnp.sum([1.0], nonsense=1), "unknown keyword 'nonsense'"),
        (lambda: tnp.sin(1.0, casting="no"), "expected casting='same_kind', got 'no'"),
        (lambda: tnp.sin(1.0, where=[True]), "expected `out` beside `where`"),
        (lambda: tnp.max([1.0], where=[True]), "expected `initial` beside `where`"),
        (lambda: tnp.quantile([1.0], 0.5, method="hazen"), "expected a method of linear"),
        (lambda: tnp.median([1j]), "expected real numbers, whose order has a meaning"),
        (lambda: tnp.median(np.complex128(1j)), "expected real numbers"),
        (lambda: tnp.subtract([True], [True]), "expected numbers, got bool"),
        (lambda: tnp.add(np.int8(1), 300), "expected a number that int8 holds, got 300"),
        (lambda: tnp.power([2], -1), "expected powers of whole numbers to be at least 0"),
        (lambda: tnp.ravel([1], "A"), "expected order 'C' or 'F', got 'A'"),
        (lambda: tnp.take([1, 2], [5]), "expected indices within an axis of size 2"),
        (lambda: tnp.pad([1], 1, "edge", constant_values=3), "got \\['constant_values'\\]"),
        (lambda: tnp.pad([1], 1, lambda *a: None), "expected the name of a mode, got a function"),
        (lambda: tnp.var([1], dtype=int), "expected a dtype of floats"),
        (lambda: tnp.arange(0.5, 2, dtype=int), "expected whole numbers for a result of int64"),
        (lambda: tnp.linalg.norm([[[1.0]]], 2), "expected an axis beside `ord` for 3 axes"),
        (lambda: tnp.linalg.det([1.0]), "expected at least two axes, got 1"),
        (lambda: tnp.fft.rfft([1j]), "expected real numbers, got complex128"),
        (lambda: tnp.fft.fft([1.0], norm="nonsense"), "nonsense"),
    ],
)
def test_what_is_refused(call, text):
    with pytest.raises(
        (TypeError, ValueError, IndexError, OverflowError, NotImplementedError), match=text
    ):
        call()


def test_views_and_copies():
    x = tenon.tensor([[1.0, 2.0], [3.0, 4.0]])
    tnp.ravel(x)[0] = 9.0
    tnp.flip(x, 0)[0, 0] = 8.0
    tnp.diagonal(x)[1] = 7.0
    assert x.tolist() == [[9.0, 2.0], [8.0, 7.0]]
    tnp.tile(x, (1, 1))[0, 0] = 0.0
    tnp.repeat(x, 1, 0)[0, 0] = 0.0
    tnp.ravel(x, "F")[0] = 0.0
    assert x.tolist() == [[9.0, 2.0], [8.0, 7.0]]
    z = tenon.tensor([1 + 2j])
    tnp.real(z)[0] = 5.0
    assert z.tolist() == [5 + 2j]


def test_factors():
    # Signs of vectors are open: products are compared, in double precision.
    a = np.array([[4.0, 1.0], [1.0, 3.0], [0.5, 2.0]])
    u, s, vh = tnp.linalg.svd(a, False)
    np.testing.assert_allclose((u * s @ vh).numpy(), a, rtol=1e-12)
    assert tuple(tnp.linalg.svd(a)[0].shape) == (3, 3)
    assert tuple(tnp.linalg.svd(a, compute_uv=False).shape) == (2,)
    q, r = tnp.linalg.qr(a.tolist())
    np.testing.assert_allclose((q @ r).numpy(), a, rtol=1e-12)
    np.testing.assert_allclose(abs(tnp.linalg.qr(a, "r").numpy()), abs(np.linalg.qr(a, "r")))
    for one in (tnp.linalg.eigh, tnp.linalg.eig):
        values, vectors = one(a[:2])
        np.testing.assert_allclose(
            (vectors * values @ tnp.linalg.inv(vectors)).numpy(), a[:2], rtol=1e-12
        )


def test_buffers():
    data = np.arange(4.0)
    assert tnp.frombuffer(data.tobytes(), count=2, offset=8).tolist() == [1.0, 2.0]
    assert tnp.frombuffer(b"ab", dtype="uint8").tolist() == [97, 98]
    assert tnp.from_dlpack(data).tolist() == data.tolist()


def test_writing_functions():
    x = tenon.tensor([[1.0, 2.0], [3.0, 4.0]])
    tnp.put_along_axis(x, [[0], [1]], 9.0, 1)
    tnp.put(x, [1, 5], [7.0, 8.0], "wrap")
    assert x.tolist() == [[9.0, 8.0], [3.0, 9.0]]
    tnp.fill_diagonal(x, 0.0)
    assert x.tolist() == [[0.0, 8.0], [3.0, 0.0]]
    with pytest.raises(TypeError, match="expected values that float32 holds by casting='no'"):
        tnp.copyto(x, np.zeros(2), casting="no")
