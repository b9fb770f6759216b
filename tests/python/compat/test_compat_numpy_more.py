# SPDX-License-Identifier: Apache-2.0
"""tenon.compat.numpy beyond the everyday functions, beside NumPy: shapes, indices, statistics, sets, polynomials."""

import numpy as np
import pytest
import tenon
from tenon.compat import numpy as tnp
from test_compat_numpy import M, V, evaluate, parts

N = [[1.0, np.nan, 3.0], [np.nan, -2.0, 0.5]]
K = [[0, 1, 2], [2, 0, 1]]
C = [1 + 2j, 3 - 1j]
CALLS = """
append(V, [7, 8])
append(M, [[1.0, 2.0, 3.0]], axis=0)
asanyarray(V)
atleast_1d(3.0)
atleast_1d(3.0, [1, 2])
atleast_2d(V)
atleast_3d(M)
block([[array(M), ones((2, 1))], [zeros((1, 4))]])
block([1, 2, 3])
block([array(V), 9])
column_stack(([1, 2], [3, 4]))
delete(V, 1)
delete(V, [0, -1])
delete(M, 1, axis=1)
delete(M, slice(0, 2), axis=1)
delete(V, [True, False, False, True])
dsplit(array([[[1, 2], [3, 4]]]), 2)
dstack(([1, 2], [3, 4]))
ediff1d(V)
ediff1d(V, to_begin=-9, to_end=[8, 7])
fliplr(M)
flipud(M)
hsplit(array(V), 2)
hsplit(array(M), [1])
vsplit(array(M), 2)
insert(V, 1, 9)
insert(V, [1, 3], [8, 9])
insert(V, 1, [8, 9])
insert(V, -1, 5)
insert(M, 1, 5.0, axis=1)
insert(M, 1, [7.0, 8.0], axis=1)
insert(M, [0, 2], [[7.0], [8.0]], axis=1)
insert(M, 0, [1.0, 2.0, 3.0], axis=0)
iscomplex(C)
iscomplex(V)
iscomplexobj(C)
isrealobj(C)
isscalar(3.0)
isscalar([3.0])
ndim(M)
shape(M)
size(M)
size(M, 1)
real_if_close(array([1 + 1e-20j, 2.0]))
real_if_close(C)
resize(V, (2, 5))
resize(V, 3)
rollaxis(array([M]), 2)
rollaxis(array([M]), 0, 3)
row_stack(([1, 2], [3, 4]))
trim_zeros(array([0, 0, 1, 2, 0, 3, 0]))
trim_zeros(array([0, 1, 0]), "f")
tri(3)
tri(2, 4, 1, dtype=int)
matrix_transpose(M)
argwhere(K)
flatnonzero(K)
extract(array(M) > 0, M)
compress([True, False, True], M, axis=1)
compress([0, 1], V)
choose([0, 1, 1, 0], [V, [10, 20, 30, 40]])
choose(K, [1, 2, 3])
diag_indices(3)
diag_indices_from(array([[1, 2], [3, 4]]))
indices((2, 3))
ix_([0, 1], [2, 3, 4])
ix_([True, False, True], [1])
lexsort(([1, 2, 1, 0], [3, 3, 1, 1]))
lexsort((K,))
partition([1, 2, 3], 1)
argpartition([1, 2, 3], 1)
piecewise(array([-1.0, 0.5, 2.0]), [array([True, False, False]), array([False, False, True])], [lambda x: -x, 7.0, 1.0])
piecewise(array([-1.0, 0.5]), [array([True, False])], [5.0])
ravel_multi_index(([1, 0], [2, 1]), (2, 3))
unravel_index([5, 1], (2, 3))
unravel_index(5, (2, 3))
select([array(V) > 2, array(V) > 1], [V, [10, 20, 30, 40]], -1)
select([[True, False]], [[1.5, 2.5]])
tril_indices(3)
tril_indices(2, 1, 4)
triu_indices(3, 1)
tril_indices_from(array([[1, 2], [3, 4]]))
triu_indices_from(array([[1, 2], [3, 4]]), 1)
digitize([0.5, 1.0, 2.5, 9.0], [1.0, 2.0, 3.0])
digitize([0.5, 1.0, 2.5, 9.0], [1.0, 2.0, 3.0], right=True)
digitize([0.5, 1.0, 2.5, 9.0], [3.0, 2.0, 1.0])
digitize([0.5, 1.0, 2.5, 9.0], [3.0, 2.0, 1.0], right=True)
array_equiv(V, [V, V])
array_equiv(V, [1, 2])
bartlett(5)
bartlett(1)
hanning(6)
hamming(6)
blackman(7)
blackman(0)
kaiser(6, 8.6)
bincount([0, 1, 1, 3])
bincount([0, 1, 1], weights=[0.5, 1.0, 2.0], minlength=5)
bitwise_count([0, 1, 255, -3])
bitwise_count(array([7, 200], dtype="uint8"))
bitwise_invert([0, 5])
convolve([1, 2, 3], [0, 1, 0.5])
convolve([1, 2, 3], [0, 1, 0.5], "same")
convolve([1, 2, 3], [0, 1], "valid")
convolve([1, 2], [1, 2, 3, 4], "same")
correlate([1, 2, 3], [0, 1, 0.5])
correlate([1, 2, 3], [0, 1, 0.5], "full")
correlate([1, 2, 3, 4], [0, 1], "same")
correlate([1, 2], [1, 2, 3, 4], "full")
correlate([1, 2], [1, 2, 3, 4], "same")
correlate([1, 2, 3], [1, 2, 3, 4], "same")
correlate([1, 2], [1, 2, 3, 4], "valid")
convolve(C, [1j, 2.0, 1.0])
correlate(C, [1j, 2.0, 1.0], "full")
cumulative_sum(V)
cumulative_sum(M, axis=1, include_initial=True)
cumulative_prod(V)
divmod([7, -7], 3)
divmod(-7.5, 2.0)
fabs([-1, 2])
geomspace(1, 1000, 4)
geomspace(-1.0, -8.0, num=4)
gradient([1.0, 2.0, 4.0, 7.0])
gradient([1.0, 2.0, 4.0, 7.0], 2.0)
gradient([1.0, 2.0, 4.0, 7.0], [0.0, 1.0, 3.0, 4.0])
gradient(M)
gradient(M, axis=1)
gradient([M, M, M], 1.0, 2.0, 3.0)
histogram(V)
histogram(M, bins=4, range=(-1.0, 3.0))
histogram([1.0, 2.0, 2.5], [1.0, 2.0, 3.0])
histogram(V, bins=3, weights=[1.0, 2.0, 3.0, 4.0])
histogram(M, 5, density=True)
histogram([2.0, 2.0], 2)
histogram_bin_edges(M, 3)
histogramdd([[0.0, 1.0], [1.0, 2.0], [0.5, 1.5]], bins=2)
histogramdd(array([[0.0, 1.0], [1.0, 2.0], [0.5, 1.5]]), bins=2)
histogramdd(array([[0.0, 1.0], [1.0, 2.0], [0.5, 1.5]]), bins=(2, 3), density=True)
histogram2d([0.0, 1.0, 0.5], [1.0, 2.0, 1.5], bins=2)
histogram2d([0.0, 1.0, 0.5], [1.0, 2.0, 1.5], bins=[2, 3], weights=[1.0, 2.0, 3.0])
interp([0.0, 1.5, 9.0], [1.0, 2.0, 3.0], [10.0, 20.0, 40.0])
interp(2.5, [1.0, 2.0, 3.0], [10.0, 20.0, 40.0], left=-1.0, right=-2.0)
interp([[0.0, 1.5], [2.0, 9.0]], [1.0, 2.0, 3.0], [10, 20, 40], left=-1, right=-2)
intersect1d([1, 3, 4, 3], [3, 1, 2, 1])
setdiff1d([1, 2, 3, 2], [3, 4])
setxor1d([1, 2, 3], [3, 4])
union1d([1, 2], [2, 5])
unique_all([3, 1, 3])
unique_counts([3, 1, 3])
unique_inverse([3, 1, 3])
unique_values([3, 1, 3])
matvec(M, [1.0, 2.0, 3.0])
vecmat([1.0, 2.0], M)
vecmat(C, [[1.0, 2.0], [3.0, 4.0]])
vdot(C, C)
vdot(M, M)
modf([1.5, -2.25, 0.0])
nanargmax(N)
nanargmin(N, axis=1)
nancumprod(N)
nancumsum(N, axis=1)
nanmax(N)
nanmax(N, axis=0)
nanmin(N, axis=1, keepdims=True)
nanmax(V)
nanprod(N)
nanprod(N, axis=1)
nanstd(N)
nanvar(N, axis=1, ddof=1)
nanvar(V)
percentile(M, 30)
percentile(M, [25, 75], axis=1)
nanpercentile(N, 40)
unwrap([0.0, 3.0, 6.5, 9.9, 3.0])
unwrap([[0.0, 4.0], [3.5, -3.5]], axis=0)
unwrap([0, 1, 2, -1, 0], period=4)
poly([1.0, 2.0, 3.0])
poly([[1.0, 2.0], [3.0, 4.0]])
poly([1 + 1j, 1 - 1j, 2.0])
polyadd([1, 2], [9, 5, 4])
polysub([1, 2], [9, 5, 4])
polymul([1, 2], [9, 5, 4])
polydiv([3.0, 5.0, 2.0], [2.0, 1.0])
polydiv([1.0, 2.0], [1.0, 2.0, 3.0])
polyder([3, 2, 1])
polyder([4, 3, 2, 1], 2)
polyint([3, 2, 1])
polyint([6.0, 2.0], 2, k=[1.0, 2.0])
polyval([3, 0, 1], 5)
polyval([3.0, 0.0, 1.0], M)
""".strip().splitlines()


# Both compute in float64, but sum up in another order and have other functions of angles and powers.
def compare(call, rtol=1e-10):
    names = {"N": N, "K": K, "C": C, "slice": slice}

    class With:
        def __init__(self, library):
            self.library = library

        def __getattr__(self, name):
            return names[name] if name in names else getattr(self.library, name)

    got, want = parts(evaluate(call, With(tnp))), parts(evaluate(call, With(np)))
    assert len(got) == len(want)
    for ours, theirs in zip(got, want):
        if isinstance(ours, (tuple, list)):
            pairs = zip(ours, theirs, strict=True)
        else:
            pairs = [(ours, theirs)]
        for a, b in pairs:
            if isinstance(a, tenon.Tensor):
                b = np.asarray(b)
                np.testing.assert_allclose(a.numpy(), b, rtol=rtol, atol=1e-12)
                assert a.dtype.name == b.dtype.name and tuple(a.shape) == b.shape
            else:
                assert a == b and type(a) is type(b)


@pytest.mark.parametrize("call", CALLS)
def test_call(call):
    compare(call)


@pytest.mark.parametrize(
    "coefficients", [[1.0, -6.0, 11.0, -6.0], [0.0, 2.0, 0.0, 2.0, 0.0], [3.0], [1.0, 0.0]]
)
def test_roots(coefficients):
    order = lambda values: sorted(
        np.asarray(values).tolist(), key=lambda z: (round(np.real(z), 6), np.imag(z))
    )
    # Eigenvalues of a companion matrix, as NumPy's; double roots have half the digits.
    np.testing.assert_allclose(
        order(tnp.roots(coefficients).numpy()), order(np.roots(coefficients)), rtol=1e-8, atol=1e-9
    )


def test_polyfit():
    # Least squares by another routine of LAPACK: half the digits of the condition number are lost.
    x = np.linspace(-1, 2, 12)
    y = 3 * x**2 - x + 0.5 + np.sin(5 * x) / 10
    weights = np.linspace(1, 2, 12)
    for degree, w in ((2, None), (3, weights), (0, None)):
        np.testing.assert_allclose(
            tnp.polyfit(x, y, degree, w=w).numpy(), np.polyfit(x, y, degree, w=w), rtol=1e-8
        )
    both = np.stack([y, 2 * y], 1)
    np.testing.assert_allclose(tnp.polyfit(x, both, 2).numpy(), np.polyfit(x, both, 2), rtol=1e-8)


def written(name, *args):
    """What a function that writes leaves in its first argument, here and in NumPy."""
    ours, theirs = tnp.arange(6.0).reshape((2, 3)), np.arange(6.0).reshape((2, 3))
    getattr(tnp, name)(ours, *args)
    getattr(np, name)(theirs, *args)
    np.testing.assert_array_equal(ours.numpy(), theirs)


def test_functions_that_write():
    mask = np.array([[True, False, True], [False, True, True]])
    written("place", mask, [10.0, 20.0, 30.0])
    written("place", np.zeros((2, 3), dtype=bool), [1.0])
    written("putmask", mask, [10.0, 20.0, 30.0, 40.0])
    written("putmask", mask, 7.0)
    written("copyto", [7.0, 8.0, 9.0])
    ours, theirs = tnp.zeros((2, 3)), np.zeros((2, 3))
    tnp.copyto(ours, 5, where=mask)
    np.copyto(theirs, 5, where=mask)
    np.testing.assert_array_equal(ours.numpy(), theirs)


def test_errors():
    with pytest.raises(ValueError, match=r"within an array of shape \(2, 3\)"):
        tnp.unravel_index(6, (2, 3))
    with pytest.raises(ValueError, match="within an axis of size 3"):
        tnp.ravel_multi_index(([0], [3]), (2, 3))
    with pytest.raises(ValueError, match="one of 2 choices"):
        tnp.choose([2], [1, 2])
    with pytest.raises(ValueError, match="as many choices as conditions, got 1 and 2"):
        tnp.select([[True], [False]], [[1]])
    with pytest.raises(IndexError, match="within axis of size 4, got 5"):
        tnp.delete(V, 5)
    with pytest.raises(ValueError, match="mode 'full', 'same' or 'valid', got 'other'"):
        tnp.convolve([1.0], [1.0], "other")
    with pytest.raises(ValueError, match="a number in each slice, got one of NaN alone"):
        tnp.nanargmax([[np.nan, np.nan]], axis=1)
    with pytest.raises(ValueError, match="edge_order 1 or 2, got 3"):
        tnp.gradient(V, edge_order=3)
    with pytest.raises(
        ValueError, match="at least 3 elements along axis 0 for edge_order=2, got 2"
    ):
        tnp.gradient(V[:2], edge_order=2)
    with pytest.raises(ValueError, match=r"two axes of one length, got shape \(2, 3\)"):
        tnp.diag_indices_from(tnp.array(M))
    with pytest.raises(ValueError, match="cumulative_sum.*expected an axis for an array of 2 axes"):
        tnp.cumulative_sum(M)
    assert tnp.isnan(tnp.nanmax([np.nan, np.nan])).item()
