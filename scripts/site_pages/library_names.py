# SPDX-License-Identifier: Apache-2.0
"""Public functions of NumPy, PyTorch and Paddle, by name: what the page on coverage asks for. Without those of
files, texts, dates, sparse and quantised tensors and of the libraries' own machinery."""

NUMPY = """abs absolute acos acosh add all allclose amax amin angle any append arange arccos arccosh arcsin
arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around array
array_equal array_equiv array_split asanyarray asarray ascontiguousarray asin asinh astype atan
atan2 atanh atleast_1d atleast_2d atleast_3d average bartlett bincount bitwise_and bitwise_count
bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman
block broadcast_arrays broadcast_shapes broadcast_to can_cast cbrt ceil choose clip column_stack
compress concat concatenate conj conjugate convolve copy copysign copyto corrcoef correlate cos
cosh count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees delete
diag diag_indices diag_indices_from diagflat diagonal diff digitize divide divmod dot dsplit
dstack ediff1d einsum empty empty_like equal exp exp2 expand_dims expm1 extract eye fabs
fill_diagonal fix flatnonzero flip fliplr flipud float_power floor floor_divide fmax fmin fmod
frexp from_dlpack frombuffer full full_like gcd geomspace get_printoptions gradient greater
greater_equal hamming hanning heaviside histogram histogram2d histogram_bin_edges histogramdd
hsplit hstack hypot i0 identity imag indices inner insert interp intersect1d invert isclose
iscomplex iscomplexobj isdtype isfinite isin isinf isnan isneginf isposinf isreal isrealobj
isscalar ix_ kaiser kron lcm ldexp left_shift less less_equal lexsort linspace load log log10
log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logspace matmul
matrix_transpose matvec max maximum mean median meshgrid min minimum mod modf moveaxis multiply
nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile
nanprod nanquantile nanstd nansum nanvar ndim negative nextafter nonzero not_equal ones ones_like
outer pad partition percentile permute_dims piecewise place poly polyadd polyder polydiv polyfit
polyint polymul polysub polyval positive pow power printoptions prod promote_types ptp put
put_along_axis putmask quantile rad2deg radians ravel ravel_multi_index real real_if_close
reciprocal remainder repeat reshape resize result_type right_shift rint roll rollaxis roots rot90
round row_stack save searchsorted select set_printoptions setdiff1d setxor1d shape sign signbit
sin sinc sinh size sort split sqrt square squeeze stack std subtract sum swapaxes take
take_along_axis tan tanh tensordot tile trace transpose trapezoid tri tril tril_indices
tril_indices_from trim_zeros triu triu_indices triu_indices_from true_divide trunc union1d unique
unique_all unique_counts unique_inverse unique_values unravel_index unstack unwrap vander var
vdot vecdot vecmat vsplit vstack where zeros zeros_like""".split()
TORCH = """abs absolute acos acosh adaptive_avg_pool1d add addbmm addcdiv addcmul addmm addmv addr adjoint
all allclose amax amin aminmax angle any arange arccos arccosh arcsin arcsinh arctan arctan2
arctanh argmax argmin argsort argwhere as_strided as_strided_scatter as_tensor asarray asin asinh
atan atan2 atanh atleast_1d atleast_2d atleast_3d avg_pool1d baddbmm bartlett_window bernoulli
bilinear bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
bitwise_xor blackman_window block_diag bmm broadcast_tensors broadcast_to bucketize can_cast
cartesian_prod cat cdist ceil chain_matmul channel_shuffle cholesky_inverse cholesky_solve chunk
clamp clip clone column_stack combinations compile complex concat concatenate cond conj
conj_physical conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d copysign
corrcoef cos cosh cosine_similarity count_nonzero cov cross cummax cummin cumprod cumsum
cumulative_trapezoid deg2rad det diag diag_embed diagflat diagonal diagonal_scatter diff digamma
dist div divide dot dsplit dstack einsum empty empty_like empty_strided eq equal erf erfc erfinv
exp exp2 expm1 eye fix flatten flip fliplr flipud float_power floor floor_divide fmax fmin fmod
frac frexp from_numpy frombuffer full full_like gather gcd ge geqrf ger get_default_dtype
get_num_threads get_rng_state gradient greater greater_equal gt hamming_window hann_window
hardshrink heaviside histc histogram histogramdd hsplit hstack hypot i0 igamma igammac imag
index_add index_reduce index_select initial_seed inner inverse is_complex is_floating_point
is_grad_enabled is_inference is_nonzero is_tensor isclose isfinite isin isinf isnan isneginf
isposinf isreal istft kaiser_window kron kthvalue lcm ldexp le lerp less less_equal lgamma
linspace load log log10 log1p log2 logaddexp logaddexp2 logcumsumexp logdet logical_and
logical_not logical_or logical_xor logit logspace logsumexp lt lu_solve lu_unpack manual_seed
masked_select matmul matrix_exp matrix_power max maximum mean median meshgrid min minimum mm mode
moveaxis movedim msort mul multinomial multiply mv mvlgamma nan_to_num nanmean nanmedian
nanquantile nansum narrow ne neg negative nextafter nonzero nonzero_static norm normal not_equal
numel ones ones_like orgqr ormqr outer pairwise_distance pdist permute pinverse pixel_shuffle
pixel_unshuffle poisson polar polygamma positive pow prelu prod promote_types rad2deg rand
rand_like randint randint_like randn randn_like randperm range ravel real reciprocal remainder
renorm repeat_interleave reshape resolve_conj resolve_neg result_type roll rot90 round row_stack
rsqrt save scatter scatter_add scatter_reduce searchsorted seed select select_scatter
set_num_threads set_printoptions set_rng_state sgn sigmoid sign signbit sin sinc sinh
slice_scatter slogdet softmax sort split sqrt square squeeze stack std std_mean stft sub subtract
sum svd swapaxes swapdims t take take_along_dim tan tanh tensor tensor_split tensordot tile topk
trace transpose trapezoid trapz triangular_solve tril tril_indices triu triu_indices true_divide
trunc unbind unflatten unique_consecutive unsqueeze vander var var_mean vdot view_as_complex
view_as_real vmap vsplit vstack where xlogy zeros zeros_like""".split()
PADDLE = """abs acos acosh add add_n addmm all allclose amax amin angle any arange argmax argmin argsort
as_complex as_real as_strided asin asinh assign atan atan2 atanh atleast_1d atleast_2d atleast_3d
baddbmm bernoulli bincount binomial bitwise_and bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor block_diag bmm broadcast_shape broadcast_tensors broadcast_to
bucketize cartesian_prod cast cat cdist ceil check_shape chunk clip clone column_stack
combinations complex concat conj copysign cos cosh count_nonzero create_parameter crop cross
cummax cummin cumprod cumsum cumulative_trapezoid deg2rad diag diag_embed diagflat diagonal
diagonal_scatter diff digamma dist divide dot dsplit dstack einsum empty empty_like equal
equal_all erf erfinv exp expand expand_as expm1 eye flatten flip floor floor_divide floor_mod
fmax fmin frac frexp full full_like gammainc gammaincc gammaln gather gather_nd gcd grad
greater_equal greater_than heaviside histogram histogram_bin_edges histogramdd hsplit hstack
hypot i0 i0e i1 i1e imag increment index_add index_fill index_put index_sample index_select inner
is_complex is_empty is_floating_point is_integer is_tensor isclose isfinite isin isinf isnan
isneginf isposinf isreal kron kthvalue lcm ldexp lerp less_equal less_than lgamma linspace load
log log10 log1p log2 log_normal logaddexp logcumsumexp logical_and logical_not logical_or
logical_xor logit logspace logsumexp masked_fill masked_scatter masked_select matmul max maximum
mean median meshgrid min minimum mm mod mode moveaxis multigammaln multinomial multiplex multiply
mv nan_to_num nanmean nanmedian nanquantile nansum neg negative nextafter nonzero norm normal
not_equal numel ones ones_like outer pdist permute poisson polar polygamma positive pow prod
put_along_axis quantile rad2deg rand randint randint_like randn randperm rank real reciprocal
reduce_as remainder renorm repeat_interleave reshape reverse roll rot90 round row_stack rsqrt
save scale scatter scatter_nd scatter_nd_add searchsorted seed select_scatter sgn shape
shard_index sign signbit sin sinc sinh slice slice_scatter sort split sqrt square squeeze stack
standard_gamma standard_normal stanh std strided_slice subtract sum summary t take
take_along_axis tan tanh tensor_split tensordot tile to_tensor tolist topk trace transpose
trapezoid tril tril_indices triu triu_indices trunc unbind unflatten unfold uniform unique
unique_consecutive unsqueeze unstack vander var vecdot view view_as vsplit vstack where zeros
zeros_like""".split()
