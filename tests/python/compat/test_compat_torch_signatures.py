# SPDX-License-Identifier: Apache-2.0
"""tenon.compat.torch is called by PyTorch's signatures: by position, by keyword, with its defaults, and with the options
that its functions share. What it cannot do is an error."""

import collections
import inspect
import io
from typing import Any

import pytest
import tenon
from tenon.compat import torch

F: Any = torch.nn.functional  # modules whose functions are found at run time
linalg: Any = torch.linalg
special: Any = torch.special
fft: Any = torch.fft
X = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
V = torch.tensor([1.0, -2.0, 3.0])


def values(result):
    if isinstance(result, (tuple, list)):
        return [values(each) for each in result]
    return result.tolist() if isinstance(result, tenon.Tensor) else result


# -- how functions are called ------------------------------------------------------------------------

SAME = {
    "chunk": (lambda: torch.chunk(input=X, chunks=3, dim=1), lambda: torch.chunk(X, 3, 1)),
    "empty": (lambda: torch.empty(size=(2, 0)).shape, lambda: torch.empty(2, 0).shape),
    "sum by NumPy's words": (lambda: torch.sum(a=X, axis=1, keepdims=True), lambda: X.sum(1, True)),
    "addcmul": (
        lambda: torch.addcmul(input=V, tensor1=V, tensor2=V, value=2),
        lambda: V + 2 * V * V,
    ),
    "hstack": (lambda: torch.hstack(tensors=(V, V)), lambda: torch.cat([V, V])),
    "moveaxis": (lambda: torch.moveaxis(input=X, source=0, destination=1), lambda: X.T),
    "isin": (
        lambda: torch.isin(elements=V, test_elements=V[:1], assume_unique=True),
        lambda: V == 1,
    ),
    "diag": (lambda: torch.diag(V, diagonal=1)[0, 1], lambda: V[0]),
    "vander": (lambda: torch.vander(V, N=2), lambda: torch.stack([V, V**0], 1)),
    "pow": (lambda: torch.pow(input=V, exponent=2), lambda: V * V),
    "arange": (lambda: torch.arange(end=3), lambda: torch.arange(0, 3, 1)),
    "randint": (
        lambda: torch.randint(high=1, size=(2,), dtype=torch.float32),
        lambda: torch.zeros(2),
    ),
    "normal": (
        lambda: torch.normal(2.0, 0.0, (2,), dtype=torch.float64).dtype,
        lambda: torch.float64,
    ),
    "norm of a dtype": (
        lambda: torch.norm(V, 1, None, False, None, torch.float64).dtype,
        lambda: torch.float64,
    ),
    "softmax of a dtype": (lambda: torch.softmax(V, 0, torch.float64).dtype, lambda: torch.float64),
    "histogram": (lambda: torch.histogram(V).hist.shape, lambda: (100,)),
    "round": (
        lambda: special.round(V / 3, decimals=1),
        lambda: torch.round(V / 3, decimals=1),
    ),
    "svdvals": (lambda: linalg.svdvals(A=X).shape, lambda: (2,)),
    "inv": (lambda: linalg.inv(A=torch.eye(2)), lambda: torch.eye(2)),
    "matrix_norm": (
        lambda: linalg.matrix_norm(input=X, ord=1),
        lambda: linalg.norm(A=X, ord=1),
    ),
    "one_hot": (
        lambda: F.one_hot(input=torch.tensor([1]), num_classes=2),
        lambda: torch.tensor([[0, 1]]),
    ),
    "cross_entropy by position": (
        lambda: F.cross_entropy(X, torch.tensor([0, 1]), None, None, -100, None, "sum"),
        lambda: F.cross_entropy(X, torch.tensor([0, 1]), reduction="sum"),
    ),
    "size_average": (
        lambda: F.mse_loss(V, V + 1, size_average=False),
        lambda: F.mse_loss(V, V + 1, reduction="sum"),
    ),
    "reduce": (
        lambda: F.mse_loss(V, V + 1, None, False),
        lambda: F.mse_loss(V, V + 1, reduction="none"),
    ),
    "group_norm": (
        lambda: F.group_norm(input=X, num_groups=3),
        lambda: F.group_norm(X, 3),
    ),
    "hardtanh": (lambda: F.hardtanh(V, -0.5, 0.5), lambda: torch.clamp(V, -0.5, 0.5)),
    "hamming_window": (lambda: torch.hamming_window(3, True, 1.0, 0.0), lambda: torch.ones(3)),
    "var_mean": (lambda: torch.var_mean(V, None, False), lambda: torch.var_mean(V, correction=0)),
}


@pytest.mark.parametrize("made, wanted", SAME.values(), ids=SAME)
def test_parameters_by_position_and_by_keyword(made, wanted):
    assert values(made()) == values(wanted())


def test_arguments_of_gammainc_keep_their_places():
    a, x = torch.tensor([1.0]), torch.tensor([2.0])
    wanted = 1 - 2.718281828459045**-2.0  # of order 1
    assert abs(special.gammainc(a, x).item() - wanted) < 1e-6
    assert abs(special.gammainc(input=a, other=x).item() - wanted) < 1e-6


def test_help_shows_the_signature():
    assert str(inspect.signature(torch.maximum)) == "(input, other, *, out=None)"
    assert torch.maximum.__name__ == "maximum" and "inplace" in str(inspect.signature(F.relu))


REFUSED = {
    "unknown keyword": (
        lambda: torch.abs(V, foo=1),
        TypeError,
        r"abs\(\): unknown keyword 'foo'; expected one of",
    ),
    "too many": (
        lambda: torch.maximum(V, V, V),
        TypeError,
        r"expected at most 2 positional arguments, got 3",
    ),
    "none": (lambda: torch.abs(), TypeError, r"abs\(\): expected 'input', got no value"),
    "twice": (lambda: torch.abs(V, input=V), TypeError, r"expected one value for 'input', got two"),
    "by two names": (
        lambda: torch.sum(V, dim=0, axis=0),
        TypeError,
        r"'axis' is another name of it",
    ),
    "a word for a flag": (
        lambda: torch.sum(X, 0, "yes"),
        TypeError,
        r"expected True or False for 'keepdim', got 'yes'",
    ),
    "a word for a number": (
        lambda: F.elu(V, alpha="big"),
        TypeError,
        r"expected a number for 'alpha', got 'big'",
    ),
    "scale by position": (
        lambda: F.scaled_dot_product_attention(X, X, X, None, 0.0, False, 1.0),
        TypeError,
        r"expected at most 6 positional arguments, got 7",
    ),
    "size twice": (lambda: torch.zeros(2, size=(2,)), TypeError, r"zeros\(\): expected one size"),
    "arange without an end": (lambda: torch.arange(), TypeError, r"arange\(\): expected an end"),
    "reduce": (
        lambda: F.mse_loss(V, V, reduce="sum"),
        TypeError,
        r"True, False or None for 'reduce', got 'sum'",
    ),
    "sparse gradients": (
        lambda: torch.gather(V, 0, torch.tensor([0]), sparse_grad=True),
        NotImplementedError,
        r"gather\(\): expected sparse_grad=False, got True; gradients are dense",
    ),
    "driver of svd": (
        lambda: linalg.svd(X, driver="gesvd"),
        NotImplementedError,
        r"linalg.svd\(\): expected driver=None, got 'gesvd'",
    ),
    "driver of lstsq": (
        lambda: linalg.lstsq(X.T, X.T, driver="best"),
        ValueError,
        r"expected driver among gels, gelsy, gelsd, gelss, got 'best'",
    ),
    "mean of whole numbers' dtype": (
        lambda: torch.mean(V, dtype=torch.int64),
        TypeError,
        r"mean\(\): expected a floating or complex dtype, got",
    ),
    "layout": (
        lambda: torch.zeros(2, layout="sparse"),
        NotImplementedError,
        r"zeros\(\): expected layout=strided",
    ),
    "memory_format": (
        lambda: torch.empty_like(V, memory_format="channels_last"),
        NotImplementedError,
        r"expected memory_format contiguous_format or preserve_format",
    ),
    "pin_memory": (
        lambda: torch.zeros(2, pin_memory=True),
        NotImplementedError,
        r"expected pin_memory=False",
    ),
    "x and dx": (lambda: torch.trapezoid(V, V, dx=2.0), TypeError, r"expected x or dx, got both"),
    "range beside edges": (
        lambda: torch.histogram(V, torch.tensor([0.0, 1.0]), range=(0.0, 1.0)),
        TypeError,
        r"expected no range beside edges",
    ),
    "unbiased": (
        lambda: torch.var(V, unbiased="no"),
        TypeError,
        r"expected True or False for 'unbiased', got 'no'",
    ),
    "output_size": (
        lambda: torch.repeat_interleave(V, 2, output_size=5),
        ValueError,
        r"expected output_size 6, the sum of the repeats, got 5",
    ),
    "weights of channels": (
        lambda: F.prelu(X, torch.ones(2)),
        ValueError,
        r"one for each of 3 channels",
    ),
    "bounds": (
        lambda: F.hardtanh(V, 1.0, -1.0),
        ValueError,
        r"expected min_val up to max_val, got 1.0 and -1.0",
    ),
    "a length of -1": (
        lambda: fft.fft(V, n=-1),
        ValueError,
        r"fft.fft\(\): expected n, a length of at least 1",
    ),
    "two axes": (lambda: torch.rot90(X, 1, (0,)), ValueError, r"rot90\(\): expected two axes"),
    "eps": (
        lambda: F.gumbel_softmax(X, eps=1.0),
        NotImplementedError,
        r"expected eps=1e-10, got 1.0",
    ),
    "options": (
        lambda: F.linear_cross_entropy(X, X, torch.tensor([0, 1]), options={}),
        NotImplementedError,
        r"expected options=None",
    ),
    "align_to_window": (
        lambda: torch.stft(V, 2, return_complex=True, align_to_window=True),
        NotImplementedError,
        r"stft\(\): expected align_to_window=None, got True",
    ),
    "whole window": (
        lambda: torch.hann_window(3, dtype=torch.int64),
        TypeError,
        r"expected a floating dtype",
    ),
}


@pytest.mark.parametrize("call, error, text", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    "word, value",
    [
        ("backend", "eager"),
        ("mode", "reduce-overhead"),
        ("dynamic", True),
        ("options", {}),
        ("name", "f"),
        ("dynamic_shapes", []),
        ("recompile_limit", 1),
        ("isolate_recompiles", True),
    ],
)
def test_compile_refuses_what_chooses_another_compiler(word, value):
    with pytest.raises(NotImplementedError, match=rf"compile\(\): expected no {word}, got"):
        torch.compile(lambda x: x, **{word: value})


def test_nn_functional_has_no_functions_beside_pytorchs():
    with pytest.raises(
        AttributeError, match=r"torch.nn.functional.swiglu; tenon.nn.functional has it"
    ):
        F.swiglu
    assert "swiglu" not in dir(F) and "operator" not in dir(special)
    for name in dir(F):
        assert callable(getattr(F, name)), name


# -- options ------------------------------------------------------------------------------------------


def test_out_holds_the_result_and_is_returned():
    out = torch.zeros(3, dtype=torch.float64)
    assert torch.add(V, V, alpha=2, out=out) is out and out.tolist() == [3.0, -6.0, 9.0]
    held = (torch.zeros(2), torch.zeros(2, dtype=torch.int64))
    found = torch.max(X, 1, out=held)
    assert found.values is held[0] and held[1].tolist() == [2, 1]
    same = torch.tensor([1.0, 2.0])
    torch.flip(same, (0,))
    assert torch.cumsum(same, 0, out=same).tolist() == [1.0, 3.0]
    assert torch.ones(2, out=torch.zeros(2, dtype=torch.int32)).dtype == torch.int32
    assert linalg.inv(torch.eye(2), out=torch.zeros(2, 2)).tolist() == [
        [1.0, 0.0],
        [0.0, 1.0],
    ]


def test_out_that_cannot_hold_the_result():
    with pytest.raises(
        ValueError, match=r"abs\(\): expected out of shape \(3,\), got \(2,\); it is not resized"
    ):
        torch.abs(V, out=torch.zeros(2))
    with pytest.raises(
        TypeError, match=r"abs\(\): expected out of a dtype that holds float32, got int64"
    ):
        torch.abs(V, out=torch.zeros(3, dtype=torch.int64))
    with pytest.raises(TypeError, match=r"abs\(\): expected out to be a tensor, got list"):
        torch.abs(V, out=[0.0])
    with pytest.raises(TypeError, match=r"max\(\): expected out with 2 tensors"):
        torch.max(X, 1, out=torch.zeros(2))
    leaf = V.clone().requires_grad_()
    with pytest.raises(ValueError, match=r"abs\(\): expected tensors without gradients beside out"):
        torch.abs(leaf, out=torch.zeros(3))
    with torch.no_grad():
        assert torch.abs(leaf, out=torch.zeros(3)).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "name", "relu relu6 elu celu selu hardtanh leaky_relu silu mish hardswish hardsigmoid".split()
)
def test_inplace_writes_into_the_argument(name):
    function = getattr(F, name)
    wanted = function(V)
    x = V.clone()
    assert function(x, inplace=True) is x and x.tolist() == wanted.tolist()
    leaf = V.clone().requires_grad_()
    function(leaf * 1.0, inplace=True).sum().backward()
    plain = V.clone().requires_grad_()
    function(plain * 1.0).sum().backward()
    assert leaf.grad.tolist() == plain.grad.tolist()


def test_inplace_by_position_and_by_name():
    x = V.clone()
    assert F.dropout(x, 1.0, True, True) is x and x.tolist() == [0.0, 0.0, 0.0]
    y = V.clone()
    assert F.threshold_(y, 0.0, 7.0) is y and y.tolist() == [1.0, 7.0, 3.0]


def test_functions_in_place():
    x = V.clone()
    assert torch.abs_(x) is x and x.tolist() == [1.0, 2.0, 3.0]
    assert torch.clamp_(x, max=2.0).tolist() == [1.0, 2.0, 2.0]
    leaf = V.clone().requires_grad_()
    torch.sigmoid_(leaf * 1.0).sum().backward()
    plain = V.clone().requires_grad_()
    torch.sigmoid(plain).sum().backward()
    assert leaf.grad.tolist() == plain.grad.tolist()
    with pytest.raises(
        TypeError, match=r"elu_\(\): expected the parameters \(input, alpha=1.0\), got 3 positional"
    ):
        F.elu_(x, 1.0, True)
    with pytest.raises(TypeError, match=r"abs_\(\): expected the parameters \(input\), got 'out'"):
        torch.abs_(x, out=x)
    with pytest.raises(
        ValueError, match=r"sqrt_\(\): expected a result of shape \(1,\) that int64 holds"
    ):
        torch.sqrt_(torch.tensor([4]))


def test_options_of_tensors_that_are_made():
    made = torch.zeros(2, layout=torch.strided, pin_memory=False, requires_grad=True)
    assert made.requires_grad and torch.linspace(0, 1, 2, requires_grad=True).requires_grad
    assert torch.zeros_like(V, memory_format=torch.preserve_format).tolist() == [0.0, 0.0, 0.0]
    assert torch.signal.windows.hann(3, layout=torch.strided).shape == (3,)
    first, second = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    assert (
        torch.rand(size=(3,), generator=first).tolist()
        == torch.rand_like(V, generator=second).tolist()
    )
    assert torch.bernoulli(V * 0, 1.0).tolist() == [1.0, 1.0, 1.0]


# -- results that are PyTorch's -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda x: torch.flip(x, (0,)),
        torch.fliplr,
        torch.flipud,
        torch.rot90,
        lambda x: torch.rot90(x, 0),
        lambda x: torch.tile(x, (1, 1)),
        lambda x: torch.repeat_interleave(x, 1, 0),
        lambda x: torch.roll(x, 0, 0),
        lambda x: torch.diff(x, n=0),
        torch.diag,
        lambda x: F.pixel_shuffle(x.reshape(1, 1, 2, 2), 1),
    ],
)
def test_results_that_are_copies(make):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    make(x).fill_(0.0)
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_real_numbers_are_their_own_real_part_and_conjugate():
    x = torch.tensor([1.0])
    assert torch.real(x) is x and torch.conj(x) is x and torch.positive(x) is x


def test_weights_of_prelu_are_of_channels():
    x = torch.full((1, 2, 2), -1.0)  # as many channels as elements of the last axis
    assert F.prelu(x, torch.tensor([2.0, 3.0])).tolist() == [[[-2.0, -2.0], [-3.0, -3.0]]]
    assert torch.prelu(torch.tensor([-1.0, 1.0]), torch.tensor([0.5])).tolist() == [-0.5, 1.0]


def test_small_cases_of_pytorchs():
    nan = float("nan")
    assert torch.sign(torch.tensor([nan, -2.0])).tolist() == [0.0, -1.0]
    assert [each.shape for each in torch.chunk(torch.zeros(0, 2), 3)] == [(0, 2)] * 3
    weights = torch.ones(2, dtype=torch.float16)
    assert torch.bincount(torch.tensor([0, 0]), weights).dtype == torch.float64
    assert torch.combinations(V, 0).shape == (0,)
    assert torch.unique(torch.tensor([[2, 1], [2, 1], [0, 3]]), dim=0).tolist() == [[0, 3], [2, 1]]
    assert torch.aminmax(V)._fields == ("min", "max")
    assert torch.can_cast(torch.int64, torch.float32) and not torch.can_cast(
        torch.float32, torch.int64
    )
    assert torch.nan_to_num(torch.tensor([nan]), None).tolist() == [0.0]
    assert torch.norm(V, 1, dim=()).tolist() == 6.0
    assert torch.median(torch.tensor(2.0), 0).values.tolist() == 2.0
    with pytest.raises(IndexError, match=r"expected dim in \[-1, 1\) for a 0-d tensor, got 1"):
        torch.median(torch.tensor(2.0), 1)
    assert torch.slice_scatter(V, V[:1], end=1).tolist() == V.tolist()
    assert F.relu6(torch.tensor([-1, 7])).tolist() == [0, 6]
    assert F.relu6(torch.tensor([7])).dtype == torch.int64


@pytest.mark.parametrize(
    "name", "sum mean prod amax amin nansum nanmean all any count_nonzero".split()
)
def test_no_axis_is_every_axis(name):
    function = getattr(torch, name)
    assert function(X, dim=()).tolist() == function(X).tolist()


def test_sizes_and_factors_exclude_each_other():
    image = torch.zeros(1, 1, 2, 2)
    with pytest.raises(
        ValueError, match=r"interpolate\(\): expected one of size and scale_factor, got 2 and 2"
    ):
        F.interpolate(image, 2, 2)
    with pytest.raises(
        ValueError, match=r"expected recompute_scale_factor beside scale_factor alone"
    ):
        F.interpolate(image, 2, recompute_scale_factor=True)


def test_rows_are_searched_in_their_own_sequences():
    rows = torch.tensor([[1, 3, 5], [2, 4, 6]])
    found = torch.tensor([[3, 6], [3, 6]])
    assert torch.searchsorted(rows, found).tolist() == [[1, 3], [1, 2]]
    assert torch.searchsorted(rows, found, right=True).tolist() == [[2, 3], [1, 3]]
    with pytest.raises(ValueError, match=r"expected right=False beside side='left'"):
        torch.searchsorted(rows, found, right=True, side="left")


def test_qr_without_q_is_a_pair():
    q, r = linalg.qr(torch.eye(2).expand(2, 2, 2), mode="r")
    assert q.shape == (0,) and r.shape == (2, 2, 2)


def test_drivers_of_least_squares():
    a, b = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), torch.tensor([[1.0], [2.0], [3.0]])
    shapes = {
        driver: [tuple(each.shape) for each in linalg.lstsq(a, b, driver=driver)]
        for driver in (None, "gels", "gelsd")
    }
    assert shapes[None] == [(2, 1), (0,), (), (0,)]
    assert shapes["gels"] == [(2, 1), (1,), (0,), (0,)]
    assert shapes["gelsd"] == [(2, 1), (1,), (), (2,)]
    assert abs(linalg.lstsq(a, b, driver="gels").residuals.item() - 9.0) < 1e-5


def test_margins_reflect_what_they_crop():
    x = torch.tensor([[1.0, 2.0, 3.0]])
    assert F.pad(x, (-1, 2), "reflect").tolist() == [[2.0, 3.0, 2.0, 1.0]]
    assert F.pad(x, (1, -2), "reflect").tolist() == [[2.0, 1.0]]
    with pytest.raises(ValueError, match=r"expected margins below 3, the length of axis 1"):
        F.pad(x, (-1, 3), "reflect")


def test_pools_without_a_batch_and_their_positions():
    x = torch.arange(1, 5, dtype=torch.float32).reshape(1, 4)
    assert F.lp_pool1d(x, 1.0, 2).tolist() == [[3.0, 7.0]]
    found, where = F.max_pool1d_with_indices(x, 2)
    assert found.tolist() == [[2.0, 4.0]] and where.tolist() == [[1, 3]]
    image = torch.tensor([[5.0, 1.0, 2.0], [0.0, 9.0, 3.0], [7.0, 4.0, 8.0]]).reshape(1, 3, 3)
    samples = torch.full((1, 1, 2), 0.5)
    found, where = F.fractional_max_pool2d(image, 2, 2, None, True, samples)
    assert found.shape == (1, 2, 2)
    assert image.reshape(-1)[where.reshape(-1)].tolist() == found.reshape(-1).tolist()


def test_weights_of_losses():
    x, target, weight = V, torch.zeros(3), torch.tensor([1.0, 2.0, 5.0])
    assert F.mse_loss(x, target, weight=weight).item() == 54 / 8
    assert F.l1_loss(x, target, weight=weight).item() == 20 / 8
    assert abs(F.huber_loss(x, target, weight=weight).item() - (0.5 + 3 + 12.5) / 3) < 1e-6
    with pytest.raises(
        ValueError, match=r"mse_loss\(\): expected weight of shape \(3,\), got \(1,\)"
    ):
        F.mse_loss(x, target, weight=torch.ones(1))


def test_bags_of_embeddings():
    weight = torch.tensor([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]])
    bags = F.embedding_bag(torch.tensor([[1, 2]]), weight, mode="sum", padding_idx=-1)
    assert bags.tolist() == [[1.0, 0.0]]
    F.embedding_bag(torch.tensor([[0]]), weight, max_norm=1.0)
    assert abs(tenon.norm(weight[0]).item() - 1.0) < 1e-5
    offsets = torch.tensor([0, 1, 2])
    ends = F.embedding_bag(
        torch.tensor([1, 1, 2]), weight, offsets, mode="sum", include_last_offset=True
    )
    assert ends.tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_files_by_pytorchs_parameters(tmp_path):
    path = tmp_path / "state.tenon"
    torch.save(obj={"weight": V}, f=path)
    assert (
        torch.load(f=path, map_location="cpu", weights_only=True)["weight"].tolist() == V.tolist()
    )
    with pytest.raises(
        NotImplementedError,
        match=r"load\(\): expected map_location to be a device or None, got dict",
    ):
        torch.load(path, {"cuda:0": "cpu"})
    with pytest.raises(TypeError, match=r"save\(\): expected f, the path of a file, got BytesIO"):
        torch.save({"weight": V}, io.BytesIO())
    with pytest.raises(
        NotImplementedError, match=r"save\(\): expected pickle_protocol=None, got 2"
    ):
        torch.save({"weight": V}, path, None, 2)


def test_memory_from_elsewhere():
    numbers = bytearray([1, 2, 3, 4])
    assert torch.frombuffer(numbers, dtype=torch.uint8, count=2, offset=1).tolist() == [2, 3]
    assert torch.from_dlpack(ext_tensor=V).tolist() == V.tolist()
    assert torch.tensor(collections.deque([1, 2])).tolist() == [1, 2]
    assert torch.asarray(V, copy=True).tolist() == V.tolist() and torch.asarray(V) is V
    with pytest.raises(
        ValueError, match=r"asarray\(\): expected copy=True or None for another dtype"
    ):
        torch.asarray(V, dtype=torch.float64, copy=False)


def test_randomness_of_vmap():
    assert torch.vmap(func=lambda x: x * 2, randomness="different")(V).tolist() == [2.0, -4.0, 6.0]
    with pytest.raises(
        NotImplementedError,
        match=r"vmap\(\): expected randomness 'different' or 'error', got 'same'",
    ):
        torch.vmap(lambda x: x, randomness="same")


def test_default_rank_of_low_rank_factors():
    assert torch.svd_lowrank(torch.eye(3)).S.shape == (3,)
