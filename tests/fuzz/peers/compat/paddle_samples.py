# SPDX-License-Identifier: Apache-2.0
"""Arguments for Paddle's functions: calls that are written down, then the same with other values, dtypes and
layouts, and other values for each parameter."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import paddle

_drawn = np.random.default_rng(11)


def _t(*shape: int, dtype: str = "float32") -> paddle.Tensor:
    return paddle.to_tensor((_drawn.integers(-12, 13, shape) / 4).astype(dtype))


def _i(high: int, *shape: int) -> paddle.Tensor:
    return paddle.to_tensor(_drawn.integers(0, high, shape))


V, M, T = _t(4), _t(2, 3), _t(2, 3, 4)
W, H = _t(3, 3), paddle.to_tensor(np.array([3, 1, 2, 1]))
S = paddle.to_tensor(np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], "float32"))
C = paddle.to_tensor(np.array([1 + 2j, -0.5j, 3.0, 1 - 1j], "complex64"))
B = paddle.to_tensor(np.array([[True, False, True], [False, True, True]]))
P = paddle.to_tensor(np.array([0.2, 0.7, 0.5, 0.9], "float32"))
N = paddle.to_tensor(np.array([[1.0, np.nan, 2.0], [np.nan, 3.0, -1.0]], "float32"))
J = paddle.to_tensor(np.array([[12, 7, 60], [255, 0, 9]]))
U = paddle.to_tensor(np.array([0.5, 1.5, 2.5, 3.0], "float32"))
A3, A4, A5 = _t(2, 4, 7), _t(2, 4, 6, 5), _t(1, 2, 4, 4, 4)
K3, K4, K5 = _t(6, 4, 3), _t(6, 4, 3, 2), _t(3, 2, 2, 2, 2)
Q3, Q4, Q5 = _t(4, 3, 3), _t(4, 3, 3, 2), _t(2, 3, 2, 2, 2)
L, L2 = _i(4, 5), _i(4, 5, 1)
X5 = _t(5, 4)
Y5 = paddle.nn.functional.softmax(_t(5, 4))


def distance(a: Any, b: Any) -> Any:
    """The sum of distances of elements, of either library."""
    return (a - b).abs().sum(-1)


CALLS = """
abs(M)
acos(P)
acosh(U + 1)
add(M, M)
add_n([M, M])
as_tensor(M)
as_tensor([1, 2])
as_tensor([1.5, 2], "float64")
asarray(M)
asarray([[1.5, 2]])
from_numpy(np.arange(3.0))
msort(T)
msort(V)
narrow(T, 1, 1, 2)
nn.functional.hsigmoid_loss(X5, L2, 4, _t(3, 4), _t(3, 1))
nn.functional.hsigmoid_loss(X5, L2, 4, _t(3, 4))
nn.functional.hsigmoid_loss(X5, L2, 5, _t(4, 4))
nn.functional.npair_loss(X5, X5 + 1, L)
nn.functional.rrelu(M, training=False)
nn.functional.rrelu(M, 0.2, 0.2)
narrow(V, 0, -3, 2)
rand_like(M)
randn_like(M)
ravel(T)
scatter_add(M, 1, _i(3, 2, 2), _t(2, 2))
scatter_add_(_t(3, 4), 0, _i(3, 2, 4), _t(2, 4))
true_divide(M, M + 10)
true_divide(M, 2)
where_(B, M, M + 1)
addmm(W, W, W)
all(B, 1)
allclose(M, M)
amax(M, 1)
amin(M, 1)
angle(C)
any(B, 1)
arange(1, 7, 2)
arange(5)
arange(0.5, 2.0, 0.25)
argmax(M, 1)
argmin(M, 1)
argsort(V)
as_complex(_t(3, 2))
as_real(C)
as_strided(T, [2, 2], [1, 3])
asin(P)
asinh(M)
assign(M)
assign([1.5, 2.0])
atan(M)
atan2(M, M + 1)
atanh(P)
atleast_1d(V)
atleast_2d(V)
atleast_3d(V)
baddbmm(_t(2, 3, 3), _t(2, 3, 4), _t(2, 4, 3))
bernoulli(P)
bincount(H)
bitwise_and(J, J + 1)
bitwise_left_shift(J, H[:3])
bitwise_not(J)
bitwise_or(J, J + 1)
bitwise_right_shift(J - 20, H[:3])
bitwise_xor(J, J + 1)
block_diag([M, W])
bmm(_t(2, 3, 4), _t(2, 4, 3))
broadcast_shape([2, 1], [3])
broadcast_tensors([M, W[:1]])
broadcast_to(W[:1], [2, 3])
bucketize(M, paddle.to_tensor([-1.0, 0.0, 1.0]))
cartesian_prod([V, H.astype('float32')])
cast(M, 'int64')
cat([M, M])
cdist(M, W)
ceil(M)
chunk(T, 2, 2)
clip(M, -1.0, 1.0)
clone(M)
column_stack([V, V])
combinations(V)
complex(M, M)
concat([M, M], 1)
conj(C)
copysign(M, M + 1)
cos(M)
cosh(M)
count_nonzero(M, 1)
crop(T, [2, 2, 2], [0, 1, 1])
cross(W, W + 1)
cross(W, W + 1, 0)
cummax(M, 1)
cummax(M)
cummin(M, 0)
cummin(M)
cumprod(M, 1)
cumsum(M, 1)
cumsum(M)
cumulative_trapezoid(M)
deg2rad(M)
diag(V)
diag(W, 1)
diag_embed(M)
diagflat(M)
diagonal(T, 1, 1, 2)
diagonal(T)
diagonal_scatter(W, _t(3))
diff(M)
digamma(U)
dist(M, M + 1)
divide(M, M + 7)
dot(V, V)
dsplit(T, 2)
dstack([V, V])
einsum('ij,kj->ik', M, W)
empty([2, 3])
empty_like(M)
equal(M, M)
equal_all(M, M)
erf(M)
erfinv(P)
exp(M)
expand(W[:1], [2, 3])
expand_as(W[:1], W)
expm1(M)
eye(3, 4)
flatten(T, 1)
flip(T, [0, 2])
floor(M)
floor_divide(J, H[:3])
floor_mod(J, H[:3])
fmax(M, N)
fmin(M, N)
frac(M)
frexp(M)
full([2, 3], 1.5)
full([2, 3], 2)
full_like(M, 2)
gammainc(U, U + 1)
gammaincc(U, U + 1)
gammaln(U)
gather(T, H[1:3] - 1, 1)
gather_nd(T, paddle.to_tensor([[0, 1], [1, 2]]))
gcd(J, J + 6)
greater_equal(M, M + 1)
greater_than(M, M + 1)
heaviside(M, M + 1)
histogram(M, 4)
histogram_bin_edges(M, 4)
histogramdd(_t(6, 2), [3, 2])
hsplit(T, [1])
hstack([V, V])
hypot(M, M)
i0(M)
i0e(M)
i1(M)
i1e(M)
imag(C)
increment(paddle.to_tensor([1.5]))
index_add(M, H[1:3] - 1, 1, _t(2, 2))
index_fill(M, H[1:3] - 1, 1, 5.0)
index_put(M, [H[1:2] - 1, H[2:3]], _t(1))
index_sample(M, paddle.to_tensor([[0, 2], [1, 1]]))
index_select(M, H[1:3] - 1, 1)
inner(M, W)
is_complex(M)
is_empty(M)
is_floating_point(M)
is_integer(M)
is_tensor(M)
isclose(M, M)
isfinite(N)
isin(J, H)
isinf(N)
isnan(N)
isneginf(N)
isposinf(N)
isreal(C)
kron(M, W)
kthvalue(M, 2)
lcm(J + 1, J + 6)
ldexp(M, paddle.to_tensor([1, 2, 3]))
lerp(M, M + 1, 0.25)
less_equal(M, M + 1)
less_than(M, M + 1)
lgamma(U)
linspace(0, 1, 5)
log(U)
log10(U)
log1p(U)
log2(U)
log_normal(1.0, 2.0, [3])
logaddexp(M, M)
logcumsumexp(M, 1)
logcumsumexp(M)
logical_and(B, B)
logical_not(B)
logical_or(B, B)
logical_xor(B, B)
logit(P)
logspace(0, 2, 3)
logsumexp(M, 1)
masked_fill(M, B, 5.0)
masked_scatter(M, B, _t(6))
masked_select(M, B)
matmul(M, W)
max(M, 1)
maximum(M, M + 1)
mean(M, 1)
median(M, 1)
meshgrid(V, V)
min(M, 1)
minimum(M, M + 1)
mm(M, W)
mod(J, H[:3])
mode(J, 1)
moveaxis(T, 0, 2)
multigammaln(U + 3, 2)
multinomial(P, 2)
multiplex([M, M + 1], paddle.to_tensor([[0], [1]]))
multiply(M, M)
mv(M, W[0])
nan_to_num(N)
nanmean(N, 1)
nanmedian(N, 1)
nanquantile(N, 0.5, 1)
nansum(N, 1)
neg(M)
negative(M)
nextafter(M, M + 1)
nonzero(M)
norm(M)
norm(M, 1, [0, 1])
norm(M, 2, 1)
normal(0.0, 1.0, [3])
not_equal(M, M)
numel(M)
ones([2, 3])
ones_like(M)
outer(V, V)
pdist(W)
permute(T, [2, 0, 1])
poisson(U)
polar(U, U)
polygamma(U, 1)
positive(M)
pow(U, 2)
prod(M, 1)
put_along_axis(M, paddle.to_tensor([[0], [1]]), 9.0, 1)
put_along_axis(W, paddle.to_tensor([[0]]), 1.0, 0)
quantile(M, 0.3, 1)
quantile(M, [0.25, 0.5], 1)
rad2deg(M)
rand([2, 3])
randint(0, 5, [3])
randint_like(J, 0, 5)
randn([2, 3])
randperm(5)
rank(T)
real(C)
reciprocal(U)
reduce_as(M, M[:1])
remainder(J, H[:3])
renorm(T, 2.0, 1, 1.0)
repeat_interleave(M, 2, 1)
reshape(T, [0, -1])
reshape(T, [4, 6])
reverse(T, 1)
roll(M, 1, 1)
rot90(T, 1, [1, 2])
round(M)
row_stack([V, V])
rsqrt(U)
scale(M, 2.0, 1.0)
scatter(W, paddle.to_tensor([2, 0]), _t(2, 3))
scatter_nd(paddle.to_tensor([[1], [3]]), _t(2), [5])
scatter_nd_add(V, paddle.to_tensor([[1], [3]]), _t(2))
searchsorted(paddle.to_tensor([-1.0, 0.0, 1.0]), M)
select_scatter(M, _t(3), 0, 1)
sgn(C)
shape(T)
shard_index(paddle.to_tensor([[1], [6], [12], [19]]), 20, 2, 0)
sign(M)
signbit(M)
sin(M)
sinc(M)
sinh(M)
slice(T, [1, 2], [0, 1], [2, 4])
slice_scatter(T, _t(2, 2, 4), [1], [0], [2], [1])
sort(M, 1)
split(T, 2, 2)
split(T, [1, -1], 2)
sqrt(U)
square(M)
squeeze(T[:1], 0)
stack([V, V])
standard_gamma(U)
standard_normal([2, 3])
stanh(M)
std(M, 1)
strided_slice(T, [1, 2], [0, 3], [3, 0], [2, -1])
subtract(M, M + 1)
sum(M, 1)
t(M)
take(T, paddle.to_tensor([[0, 5], [7, 23]]))
take_along_axis(M, paddle.to_tensor([[0], [1]]), 1)
tan(M)
tanh(M)
tensor_split(T, 3, 2)
tensordot(M, W, 1)
tile(M, [2, 1])
to_tensor([1.5, 2.0])
tolist(M)
topk(M, 2, 1)
trace(T)
transpose(T, [2, 0, 1])
trapezoid(M)
tril(T)
tril_indices(3, 4)
triu(T)
triu_indices(3, 4)
trunc(M)
unbind(T, 1)
unflatten(T, 2, [2, 2])
unfold(T, 2, 2, 1)
uniform([2, 3])
unique(J, True, True, True)
unique(H, True, True, True, 0)
unique_consecutive(paddle.to_tensor([1, 1, 2, 1]), True, True)
unsqueeze(M, [0, 2])
unstack(T, 1)
vander(V, 3)
var(M, 1)
vecdot(M, M)
view(T, [4, 6])
view_as(T, _t(4, 6))
vsplit(T, 2)
vstack([V, V])
where(B, M, M + 1)
where(B)
zeros([2, 3])
zeros_like(M)
create_parameter([2, 3], 'float32')
linalg.cholesky(S)
linalg.cholesky_inverse(paddle.linalg.cholesky(S))
linalg.cholesky_solve(W, paddle.linalg.cholesky(S))
linalg.cond(S)
linalg.corrcoef(T[0])
linalg.cov(T[0])
linalg.cross(W, W + 1)
linalg.det(S)
linalg.diagonal(T, 0, 1, 2)
linalg.eigvalsh(S)
linalg.inv(S)
linalg.lstsq(S[:, :2], S[:, 2:])
linalg.lu(S)
linalg.matmul(M, W)
linalg.matrix_exp(W / 4)
linalg.matrix_norm(S)
linalg.matrix_power(S, 3)
linalg.matrix_rank(S)
linalg.matrix_transpose(T)
linalg.multi_dot([M, W, S])
linalg.norm(S)
linalg.norm(T, 2, [1, 2])
linalg.pinv(M)
linalg.slogdet(S)
linalg.solve(S, W)
linalg.svdvals(M)
linalg.triangular_solve(S, W)
linalg.vecdot(M, M)
linalg.vector_norm(M, 2, 1)
fft.fft(M)
fft.fft2(M)
fft.fftfreq(5)
fft.fftn(T)
fft.fftshift(V)
fft.hfft(C)
fft.ifft(C)
fft.ifft2(M)
fft.ifftn(T)
fft.ifftshift(V)
fft.ihfft(M)
fft.irfft(C)
fft.irfft2(M.astype('complex64'))
fft.irfftn(T.astype('complex64'))
fft.rfft(M)
fft.rfft2(M)
fft.rfftfreq(5)
fft.rfftn(T)
signal.stft(_t(1, 40), 8)
signal.istft(paddle.signal.stft(_t(1, 40), 8), 8)
nn.functional.adaptive_avg_pool1d(A3, 3)
nn.functional.adaptive_avg_pool2d(A4, [3, 2])
nn.functional.adaptive_avg_pool3d(A5, 2)
nn.functional.adaptive_max_pool1d(A3, 3)
nn.functional.adaptive_max_pool2d(A4, [3, 2])
nn.functional.adaptive_max_pool3d(A5, 2)
nn.functional.affine_grid(_t(2, 2, 3), [2, 3, 4, 5])
nn.functional.alpha_dropout(M)
nn.functional.avg_pool1d(A3, 3, 2, 1)
nn.functional.avg_pool2d(A4, 3, 2, 1)
nn.functional.avg_pool2d(A4, [3, 2], 2, [1, 0, 1, 1])
nn.functional.avg_pool3d(A5, 2, 2, 1)
nn.functional.batch_norm(A4, _t(4), _t(4) * 0 + 2, _t(4), _t(4))
nn.functional.batch_norm(A4, _t(4), _t(4) * 0 + 2, _t(4), _t(4), True)
nn.functional.bilinear(_t(5, 3), _t(5, 4), _t(2, 3, 4), _t(1, 2))
nn.functional.binary_cross_entropy(P, P)
nn.functional.binary_cross_entropy_with_logits(V, P)
nn.functional.celu(M)
nn.functional.channel_shuffle(A4, 2)
nn.functional.conv1d(A3, K3, _t(6), 1, 1)
nn.functional.conv1d_transpose(A3, Q3, _t(3), 2, 1)
nn.functional.conv2d(A4, K4, _t(6), 2, 1)
nn.functional.conv2d(A4, K4, _t(6), 2, [1, 0, 1, 1])
nn.functional.conv2d_transpose(A4, Q4, _t(3), 2, 1)
nn.functional.conv3d(A5, K5, _t(3), 1, 1)
nn.functional.conv3d_transpose(A5, Q5, _t(3), 2, 1)
nn.functional.cosine_embedding_loss(_t(3, 4), _t(3, 4), paddle.to_tensor([1, -1, 1]))
nn.functional.cosine_similarity(M, M + 1)
nn.functional.cross_entropy(X5, L)
nn.functional.cross_entropy(X5, L2)
nn.functional.cross_entropy(X5, Y5, soft_label=True)
nn.functional.cross_entropy(X5, L, _t(4).abs() + 1)
nn.functional.cross_entropy(A4, _i(4, 2, 6, 5), axis=1)
nn.functional.ctc_loss(_t(6, 2, 4), paddle.to_tensor([[1, 2], [3, 1]], dtype='int32'), paddle.to_tensor([6, 5]), paddle.to_tensor([2, 1]))
nn.functional.dice_loss(Y5, L2)
nn.functional.dropout(M, 0.5)
nn.functional.dropout(M, 0.25, training=False, mode='downscale_in_infer')
nn.functional.dropout1d(A3)
nn.functional.dropout2d(A4)
nn.functional.dropout3d(A5)
nn.functional.elu(M)
nn.functional.elu_(M.clone())
nn.functional.embedding(L, X5)
nn.functional.feature_alpha_dropout(A4)
nn.functional.fold(_t(2, 12, 12), [4, 5], [2, 2])
nn.functional.gather_tree(_i(5, 3, 2, 2), _i(2, 3, 2, 2))
nn.functional.gaussian_nll_loss(M, M + 1, M.abs() + 1)
nn.functional.gelu(M)
nn.functional.glu(T)
nn.functional.grid_sample(A4, _t(2, 3, 3, 2) / 3)
nn.functional.group_norm(A4, 2, 1e-5, _t(4), _t(4))
nn.functional.gumbel_softmax(M)
nn.functional.hardshrink(M)
nn.functional.hardsigmoid(M)
nn.functional.hardswish(M)
nn.functional.hardtanh(M)
nn.functional.hardtanh_(M.clone())
nn.functional.hinge_embedding_loss(M, B.astype('float32') * 2 - 1)
nn.functional.instance_norm(A4)
nn.functional.interpolate(A4, [4, 4])
nn.functional.interpolate(A4, [4, 7], mode='bilinear')
nn.functional.interpolate(A4, scale_factor=2, mode='bicubic')
nn.functional.kl_div(paddle.log(Y5), Y5)
nn.functional.l1_loss(M, M + 1)
nn.functional.label_smooth(Y5)
nn.functional.layer_norm(T, 4)
nn.functional.layer_norm(T, [3, 4], _t(12), _t(12))
nn.functional.leaky_relu(M)
nn.functional.leaky_relu_(M.clone())
nn.functional.linear(M, _t(3, 5), _t(5))
nn.functional.linear(W, W)
nn.functional.local_response_norm(A4, 3)
nn.functional.log_loss(P.reshape([4, 1]), P.reshape([4, 1]))
nn.functional.log_sigmoid(M)
nn.functional.log_softmax(M)
nn.functional.logsigmoid(M)
nn.functional.margin_ranking_loss(M, M + 1, B.astype('float32') * 2 - 1)
nn.functional.max_pool1d(A3, 3, 2, 1)
nn.functional.max_pool2d(A4, 3, 2, 1)
nn.functional.max_pool2d(A4, [3, 2], 2, [1, 0, 1, 1])
nn.functional.max_pool3d(A5, 2, 2, 1)
nn.functional.max_unpool1d(*paddle.nn.functional.max_pool1d(A3, 2, return_mask=True), 2)
nn.functional.max_unpool2d(*paddle.nn.functional.max_pool2d(A4, 2, return_mask=True), 2)
nn.functional.max_unpool3d(*paddle.nn.functional.max_pool3d(A5, 2, return_mask=True), 2)
nn.functional.maxout(A4, 2)
nn.functional.mish(M)
nn.functional.mse_loss(M, M + 1)
nn.functional.multi_label_margin_loss(X5, _i(4, 5, 4))
nn.functional.multi_label_soft_margin_loss(X5, (Y5 > 0.2).astype('float32'))
nn.functional.multi_margin_loss(X5, L)
nn.functional.nll_loss(paddle.log(Y5), L)
nn.functional.normalize(M)
nn.functional.one_hot(L, 4)
nn.functional.pad(A4, [1, 2, 0, 1])
nn.functional.pad(A4, [1, 2, 0, 1], 'reflect')
nn.functional.pad(M, [1, 2, 0, 1])
nn.functional.pairwise_distance(M, M + 1)
nn.functional.pixel_shuffle(A4, 2)
nn.functional.pixel_unshuffle(_t(2, 3, 4, 6), 2)
nn.functional.poisson_nll_loss(M, M.abs())
nn.functional.prelu(A4, _t(4))
nn.functional.prelu(_t(2, 3, 3), _t(3))
nn.functional.relu(M)
nn.functional.relu6(M)
nn.functional.relu_(M.clone())
nn.functional.rms_norm(T, 4, _t(4))
nn.functional.scaled_dot_product_attention(_t(2, 5, 2, 4), _t(2, 6, 2, 4), _t(2, 6, 2, 4))
nn.functional.selu(M)
nn.functional.sequence_mask(paddle.to_tensor([1, 3, 2]))
nn.functional.sigmoid(M)
nn.functional.sigmoid_focal_loss(M, B.astype('float32'))
nn.functional.silu(M)
nn.functional.smooth_l1_loss(M, M * 2)
nn.functional.soft_margin_loss(M, B.astype('float32') * 2 - 1)
nn.functional.softmax(M)
nn.functional.softmax_(M.clone())
nn.functional.softmax_with_cross_entropy(X5, L2)
nn.functional.softplus(M * 9)
nn.functional.softshrink(M)
nn.functional.softsign(M)
nn.functional.square_error_cost(M, M + 1)
nn.functional.swiglu(M, M)
nn.functional.swish(M)
nn.functional.tanh(M)
nn.functional.tanh_(M.clone())
nn.functional.tanhshrink(M)
nn.functional.temporal_shift(_t(4, 4, 2, 2), 2)
nn.functional.thresholded_relu(M)
nn.functional.thresholded_relu_(M.clone())
nn.functional.triplet_margin_loss(M, M + 1, M - 1)
nn.functional.triplet_margin_with_distance_loss(M, M + 1, M - 1)
nn.functional.triplet_margin_with_distance_loss(M, M + 1, M - 1, distance)
nn.functional.unfold(A4, 2)
nn.functional.upsample(A4, [4, 4])
nn.functional.zeropad2d(A4, [1, 2, 0, 1])
""".strip().splitlines()

_VALUES: dict[str, tuple[Any, ...]] = {
    "axis": (None, 0, 1, -1, [0, 1], 5),
    "axes": ([0, 1], (1, 0), None, 1),
    "axis1": (0, 1),
    "axis2": (1, -1),
    "dim": (0, -1),
    "keepdim": (True,),
    "dtype": ("float64", "int32", "int64"),
    "p": (1, 2.0, float("inf"), "fro", "nuc", 0, -1),
    "n": (1, 2, 5, None),
    "norm": ("ortho", "forward", "backward"),
    "s": ([2, 2], [4, 4]),
    "offset": (1, -1),
    "padding_value": (5,),
    "mode": (
        "avg",
        "min",
        "raise",
        "wrap",
        "clip",
        "reduced",
        "r",
        "nearest",
        "bilinear",
        "bicubic",
    )
    + (
        "reflect",
        "replicate",
        "circular",
        "constant",
        "upscale_in_train",
        "downscale_in_infer",
        "area",
    ),
    "reduction": ("none", "sum", "mean", "batchmean"),
    "reduce": ("add", "mul", "multiply", "mean", "amin", "amax"),
    "ignore_index": (0, 2),
    "label_smoothing": (0.1,),
    "padding": (
        0,
        1,
        "SAME",
        "VALID",
        "valid",
        [1, 1],
        [0, 1, 1, 0],
        [[0, 0], [0, 0], [1, 1], [0, 1]],
    ),
    "stride": (1, 2, [2, 1], None),
    "dilation": (1, 2),
    "groups": (2,),
    "output_padding": (0, 1),
    "output_size": (None, [5, 5]),
    "data_format": ("NCHW", "NHWC", "NCL", "NLC", "NCDHW", "NDHWC"),
    "divisor_override": (2, 5.0),
    "kernel_size": (2, 3),
    "momentum": (0.5, 1.0),
    "epsilon": (1e-3,),
    "eps": (1e-3, None),
    "delta": (0.5, 2.0),
    "alpha": (0.5, 2, 0),
    "beta": (0.5, 2),
    "gamma": (1.0,),
    "threshold": (0.25, 1.0, 5),
    "value": (2.0, 0.5),
    "negative_slope": (0.5,),
    "slope": (0.25,),
    "scale_factor": (2, [2.0, 1.5]),
    "size": ([3, 4], 5),
    "align_mode": (0, 1),
    "padding_mode": ("zeros", "border", "reflection"),
    "margin": (0.5, 2.0),
    "padding_idx": (0, -1, 1),
    "num_classes": (5, -1),
    "maxlen": (5,),
    "blank": (1,),
    "k": (2, 3),
    "decimals": (1, -1),
    "rounding_mode": ("trunc", "floor"),
    "interpolation": ("lower", "higher", "nearest", "midpoint", "linear"),
    "q": ([0.1, 0.9], 1.0),
    "unbiased": (True, False),
    "correction": (0, 2),
    "num": (3,),
    "base": (2.0,),
    "min": (-0.5, 0, None),
    "max": (0.5, 1, None),
    "bins": (3,),
    "weight": (),
    "side": ("left", "right"),
    "UPLO": ("U",),
    "rcond": (1e-3,),
    "tol": (0.1,),
    "atol": (0.1,),
    "rtol": (0.1,),
    "driver": ("gels", "gelsy", "gelsd"),
    "compute_mode": ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"),
    "minlength": (9,),
    "d": (0.5,),
    "nan": (1.0,),
    "posinf": (2.0,),
    "neginf": (2.0,),
    "ignore_value": (-2,),
    "shift_ratio": (0.125,),
    "normalized_shape": (4, [4]),
    "dx": (0.5,),
    "r": (3,),
    "length": (20,),
    "hop_length": (2, 4),
    "win_length": (6,),
    "pad_mode": ("constant", "reflect"),
    "name": ("label", None),
    "bias_after_scale": (False,),
    "scale": (2.0, 3),
    "bias": (1.0,),
    "start": (0, 1),
    "step": (2,),
    "prior_dist": (),
    "temperature": (0.5,),
    "scale_a": (0.5,),
    "scale_b": (2.0,),
    "lower": (),
    "dim1": (0,),
    "dim2": (1,),
}
_SWITCHES = (
    "keepdim training exclusive ceil_mode return_mask soft_label use_softmax align_corners approximate full "
    "log_input log_target is_huber swap descending stable largest sorted return_index return_inverse "
    "return_counts right out_int32 as_tuple accumulate overwrite unbiased rowvar ddof hermitian upper "
    "transpose_x transpose_y transpose unitriangular full_matrices center normalized onesided density "
    "include_self broadcast equal_nan invert assume_unique increasing is_arithmetic with_replacement left "
    "pad_from_left_axis is_causal enable_gqa get_infos pivot use_global_stats zero_infinity norm_by_times "
    "return_softmax numeric_stable_mode inplace hard replacement is_bias return_complex"
).split()


def alternatives(function: str, name: str) -> Iterable[Any]:
    """Other values for a parameter."""
    if name in _SWITCHES:
        return (True, False)
    return _VALUES.get(name, ())


class _Recorder(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return globals()[name]


def _record(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


# Functions that are called as others are; those in place are called as what they write.
_CALLED_AS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less_than",
    "less": "less_than",
    "le": "less_equal",
    "gt": "greater_than",
    "greater": "greater_than",
    "ge": "greater_equal",
    "mul": "multiply",
    "ger": "outer",
    "bitwise_invert": "bitwise_not",
    "sub": "subtract",
    "sub_": "subtract",
    "div": "divide",
    "div_": "divide",
    "clamp": "clip",
    "concatenate": "concat",
    "take_along_dim": "take_along_axis",
    "argwhere": "nonzero",
    "view_as_complex": "as_complex",
    "view_as_real": "as_real",
    "matrix_transpose": "linalg.matrix_transpose",
    **{
        name: f"nn.functional.{name}"
        for name in "conv1d conv2d conv3d group_norm layer_norm adaptive_avg_pool1d softmax".split()
    },
}


def _written(function: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    found = []
    for call in CALLS:
        name, _, inside = call.partition("(")
        if name in (function, _CALLED_AS.get(function, function.rstrip("_"))):
            found.append(eval(f"_record({inside}", {}, _Recorder()))
    return found


_DTYPES = ("float32", "float64", "int64", "int32", "bool")


def of_function(function: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The calls that are written down, then the same with other values."""
    written = _written(function)
    yield from written
    if not written:
        return
    drawn = random.Random(function)
    for seed in itertools.count():
        args, kwargs = drawn.choice(written)
        numbers = np.random.default_rng(seed)
        dtype = drawn.choice(_DTYPES)

        def change(value: Any, numbers: Any = numbers, dtype: str = dtype) -> Any:
            if isinstance(value, paddle.Tensor) and value.dtype == paddle.float32:
                made = numbers.integers(-12, 13, value.shape) / 4
                if float(value.min() if value.size else 0) >= 0:
                    made = np.abs(made) + 0.25
                    made = made / (made.max() + 1) if float(value.max()) <= 1 else made
                return paddle.to_tensor(made.astype(dtype))
            if isinstance(value, (tuple, list)):
                return type(value)(change(each) for each in value)
            return value

        yield tuple(change(each) for each in args), {k: change(v) for k, v in kwargs.items()}
