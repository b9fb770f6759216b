# SPDX-License-Identifier: Apache-2.0
"""tenon.compat.numpy: the same calls of both give the same values, shapes and dtypes."""

import numpy as np
import pytest
import tenon
from tenon.compat import numpy as tnp

M = [[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]]
V = [3, 1, 2, 1]
CALLS = """
array(M)
array([1, 2], dtype=float)
array([1.5, 2], dtype="float32")
array(M, ndmin=3)
asarray([True, False])
zeros((2, 3))
ones(3, dtype=int)
full((2,), 7)
full((2, 2), 1.5)
zeros_like(V)
ones_like(M)
full_like(M, 2)
arange(5)
arange(0.0, 1.0, 0.25)
arange(2, 9, 3)
linspace(0, 1, 5)
linspace(0, 1, num=4, endpoint=False)
logspace(0, 2, 3)
eye(3, k=1)
eye(2, 3)
identity(2)
meshgrid(V, [1.0, 2.0])
meshgrid(V, [1.0, 2.0], indexing="ij")
sin(M)
sqrt(V)
exp(V)
arctan2([1.0], [2.0])
power(V, 2)
divide(V, 2)
true_divide([1, 2], [4, 4])
absolute([-1, 2])
floor_divide(V, 2)
mod(V, 2)
maximum(V, 2)
add(M, 1)
round([1.25, 2.5], 1)
around([0.5, 1.5])
where(array(M) > 0, M, 0.0)
where(V)
clip(M, 0, 2)
isnan([np.nan, 1.0])
allclose(M, M)
array_equal(V, V)
sum(M)
sum(M, axis=1, keepdims=True)
sum(V, dtype=float)
sum([True, True])
prod(V)
mean(V)
mean(M, axis=(0, 1))
std(M, ddof=1)
var(M, axis=0)
max(M, axis=1)
amin(M, 0)
ptp(M, 1)
any([0, 1])
all(M)
argmax(M)
argmin(M, axis=1)
average(M, weights=M)
nansum([1.0, np.nan])
cumsum(M)
cumsum(M, axis=1)
cumprod(V)
diff(V, n=2)
reshape(M, (3, 2))
reshape(M, -1)
ravel(M)
transpose(M)
transpose([M], (2, 0, 1))
swapaxes(M, 0, 1)
moveaxis([M], 0, -1)
expand_dims(M, 0)
squeeze([M])
broadcast_to(V, (2, 4))
broadcast_arrays(V, 1.0)
concatenate([M, M], axis=1)
concatenate([M, M], axis=None)
stack([V, V])
vstack([V, V])
hstack([V, V])
split(array(V), 2)
split(array(V), [1, 3])
array_split(V, 3)
tile(V, 2)
tile(M, (2, 1))
repeat(V, 2)
repeat(M, [1, 2], axis=0)
roll(V, 1)
flip(M)
pad(V, 1)
pad(M, ((1, 0), (0, 2)), constant_values=5)
pad(M, (1, 2), mode="edge")
nonzero(M)
argwhere(V)
sort(M, axis=None)
sort(M)
argsort(V)
searchsorted([1, 2, 3], [2, 5], side="right")
take(M, [0, 5])
take(M, [1, 0], axis=1)
unique(V)
unique(V, return_index=True, return_inverse=True, return_counts=True)
isin(V, [1, 7])
dot(V, V)
dot(M, [1.0, 2.0, 3.0])
dot(2, V)
matmul(M, transpose(M))
tensordot(M, M, axes=((0, 1), (0, 1)))
einsum("ij,kj->ik", M, M)
outer(V, V)
inner(V, V)
cross([1, 0, 0], [0, 1, 0])
trace(M)
diag(V)
diag(M, 1)
cov(M)
corrcoef(M)
tril(M)
triu(M, 1)
rot90(M)
linalg.norm(array(M))
isclose(M, M)
logical_and([True], [False])
float32
pi
""".strip().splitlines()


def evaluate(call, namespace):
    return eval(call, {"np": np, "M": M, "V": V}, Names(namespace))


class Names(dict):
    def __init__(self, namespace):
        super().__init__()
        self.namespace = namespace

    def __missing__(self, name):
        if name in ("float", "int", "M", "V", "np", "True", "False"):
            raise KeyError(name)
        return getattr(self.namespace, name)


def parts(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("call", CALLS)
def test_call(call):
    got, want = parts(evaluate(call, tnp)), parts(evaluate(call, np))
    assert len(got) == len(want)
    for ours, theirs in zip(got, want):
        if isinstance(ours, tenon.Tensor):
            theirs = np.asarray(theirs)
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12)
            assert ours.dtype.name == theirs.dtype.name and tuple(ours.shape) == theirs.shape
        elif isinstance(ours, tenon.dtype):
            assert ours.name == np.dtype(theirs).name
        else:
            assert ours == theirs and type(ours) is type(theirs)


def test_random():
    tnp.random.seed(3)
    first = tnp.random.rand(2, 3)
    tnp.random.seed(3)
    assert tnp.random.random((2, 3)).tolist() == first.tolist() and first.dtype == tenon.float64
    assert tnp.random.randn(3).shape == tnp.random.normal(0.0, 1.0, 3).shape == (3,)
    assert tnp.random.uniform().shape == () and set(tnp.random.randint(2, size=50).tolist()) == {
        0,
        1,
    }
    assert sorted(tnp.random.permutation(5).tolist()) == list(range(5))
    x = tnp.arange(5)
    tnp.random.shuffle(x)
    assert sorted(x.tolist()) == list(range(5))
    assert sorted(tnp.random.choice(4, 4, replace=False).tolist()) == list(range(4))
    assert tnp.random.choice([5, 6], (2, 2)).shape == (2, 2)
    with pytest.raises(ValueError, match="at most 4 elements without replacement, got 5"):
        tnp.random.choice(4, 5, replace=False)
    assert tnp.random.poisson(3.0, 4).dtype == tnp.random.binomial(9, 0.5, 4).dtype == tenon.int64
    for sample in (
        tnp.random.exponential(2.0, 4),
        tnp.random.gamma(2.0, 3.0, 4),
        tnp.random.beta(1.0, 2.0, 4),
    ):
        assert sample.dtype == tenon.float64 and sample.shape == (4,)


def test_what_is_not_covered():
    with pytest.raises(
        AttributeError, match="tenon.compat.numpy does not cover numpy.busday_count"
    ):
        tnp.busday_count
    with pytest.raises(ValueError, match=r"parts of one length, got 3 of 4; use array_split\(\)"):
        tnp.split(V, 3)
    assert "sin" in dir(tnp) and "random" in dir(tnp)
    for name in dir(tnp):
        assert hasattr(tnp, name), name
