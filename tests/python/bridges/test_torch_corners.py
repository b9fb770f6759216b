# SPDX-License-Identifier: Apache-2.0
"""Corners of PyTorch's calls: numbers that are none, whole numbers beyond floats, dtypes that disagree, checks."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

import tenon  # noqa: E402
from tenon.torch import _compiled_graph  # noqa: E402

F = torch.nn.functional
Module: Any = torch.nn.Module
NAN, INF = float("nan"), float("inf")
BIG = [16777217, -16777217, 2**53 + 1, -(2**53) - 1, 7, -7]


class Function(Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def load(function, *inputs, **options):
    return tenon.torch.load(torch.export.export(Function(function), inputs, **options))


def check(function, *inputs):
    """Results are compared with PyTorch's, which tell the dtype; whole numbers and truths have to be equal."""
    got = load(function, *inputs)(*map(tenon.from_dlpack, inputs))
    expected = function(*inputs)
    pairs = zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]
    for one, other in pairs:
        torch.testing.assert_close(torch.from_dlpack(one), other, equal_nan=True)


def test_numbers_that_replace_nan():
    x = torch.tensor([NAN, INF, -INF, 1.0])
    check(torch.nan_to_num, x)
    check(lambda x: torch.nan_to_num(x, 5.0, 6.0, 7.0), x)


@pytest.mark.parametrize("mode", ["trunc", "floor"])
@pytest.mark.parametrize("divisor", [1, 2, -3])
def test_whole_quotients_are_exact(mode, divisor):
    x = torch.tensor(BIG)
    check(lambda x: torch.div(x, divisor, rounding_mode=mode), x)
    check(lambda x, y: torch.div(x, y, rounding_mode=mode), x[:2].int(), torch.tensor([divisor]))
    check(lambda x: torch.div(x, 2.5, rounding_mode=mode), x[4:])


def test_what_is_scaled_by_zero_does_not_count():
    self, a, b = torch.tensor([NAN, INF]), torch.randn(3, 4), torch.randn(4, 2)
    check(lambda x, a, b: torch.addmm(x, a, b, beta=0), self, a, b)
    check(lambda x, a, b: torch.addmm(x, a, b, beta=0, alpha=0.5), self, a, b)
    check(lambda x, a, b: torch.baddbmm(x, a, b, beta=0), self, a[None], b[None])
    check(lambda x, a, b: torch.addmv(x, a, b, beta=0), torch.full((3,), NAN), a, b[:, 0])
    check(lambda x, a, b: torch.addbmm(x, a, b, beta=0), self, a[None], b[None])


def test_the_median_of_nan_is_nan():
    x = torch.tensor([[1.0, NAN, 3.0, NAN], [4.0, 3.0, 2.0, 1.0]])
    check(lambda x: tuple(x.median(1)), x)
    check(lambda x: tuple(x.median(0, keepdim=True)), x.half())
    check(lambda x: tuple(x.median(1)), torch.tensor([[3, 1, 2]]))


@pytest.mark.parametrize(
    "function", [torch.eq, torch.ne, torch.lt, torch.ge, torch.remainder, torch.floor_divide]
)
def test_tensors_without_axes_count_by_their_kind(function):
    number = torch.tensor(0.1, dtype=torch.float64)
    check(function, torch.tensor([0.1, 0.3, 0.6]), number)
    check(function, number, torch.tensor([0.1, 0.3, 0.6]))
    check(function, torch.tensor([1, 5, 7], dtype=torch.int32), torch.tensor(2**33 + 5))
    check(function, torch.tensor([1, 5, 7]), torch.tensor(2.5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rms_norm_without_eps(dtype):
    check(lambda x: F.rms_norm(x, (4,)), (torch.randn(3, 4) * 0.01).to(dtype))


def test_rms_norm_of_halves_without_eps_is_refused():
    with pytest.raises(NotImplementedError, match="with eps=None in float16; give eps"):
        load(lambda x: F.rms_norm(x, (4,)), torch.ones(3, 4).half())


def test_instance_norm():
    check(F.instance_norm, torch.randn(2, 3, 5))
    weight = torch.rand(3)
    check(lambda x: F.instance_norm(x, weight=weight), torch.randn(2, 3, 5, 5))


def test_results_that_are_none_keep_their_names():
    program = load(lambda x: {"a": x + 1, "b": None}, torch.ones(2))
    result = program(tenon.ones([2]))
    assert list(result) == ["a", "b"] and result["b"] is None


def test_checks_of_sizes_that_calls_choose_are_refused():
    def function(x):
        torch._check(x.shape[0] % 2 == 0)
        return x * 2

    size = torch.export.Dim("n", min=2, max=64)
    options = {
        "dynamic_shapes": (({0: size},),),
        "prefer_deferred_runtime_asserts_over_guards": True,
    }
    with pytest.raises(NotImplementedError, match="_assert_scalar: it checks sizes that each call"):
        load(function, torch.ones(6, 2), **options)
    check(function, torch.ones(6, 2))


def test_checks_of_data_are_refused():
    def function(x):
        torch._assert_async(x.sum() > 0)
        return x * 2

    with pytest.raises(NotImplementedError, match="_assert_async"):
        load(function, torch.ones(2))


def test_derived_dimensions_are_refused_by_name():
    half = torch.export.Dim("h", min=1, max=20)
    with pytest.raises(NotImplementedError, match="axis 0 of input .* is the derived dimension 2"):
        load(lambda x: x.reshape(-1, 2), torch.ones(6, 2), dynamic_shapes=(({0: 2 * half},),))


def test_dtypes_that_programs_do_not_have_are_refused():
    with pytest.raises(NotImplementedError, match="dtype float8_e4m3fn is none of"):
        load(lambda x: x.float(), torch.ones(2).to(torch.float8_e4m3fn))


def test_weights_that_are_conjugates_are_copied_and_counted():
    weight = torch.complex(torch.ones(2), torch.full((2,), 2.0))
    conjugate, negative = weight.conj(), weight.conj().imag

    class Net(Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("conjugate", conjugate)
            self.register_buffer("negative", negative)

        def forward(self, x):
            return self.conjugate * x, self.negative + x

    program = tenon.torch.load(torch.export.export(Net(), (torch.ones(2),)))
    for one, other in zip(program(tenon.ones([2])), Net()(torch.ones(2)), strict=True):
        torch.testing.assert_close(torch.from_dlpack(one), other.resolve_neg())
    report = tenon.torch.report()[-1]
    assert report.copied_bytes == 24 and "24 bytes were copied" in str(report)


def compiled(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, backend=tenon.torch.backend, **options)


def test_what_cannot_be_told_at_dynamic_sizes_stays_with_pytorch():
    def function(x):
        return torch.linalg.qr(x.sin().exp())[0].abs() * x.shape[0] + 1

    step = compiled(function, dynamic=True)
    for size in (3, 4, 3):
        x = torch.randn(size, size)
        torch.testing.assert_close(step(x), function(x))
    report = tenon.torch.report()[-1]
    assert "linalg_qr" in report.refused and report.programs == 2
    denying = compiled(function, dynamic=True, options={"fallback": "deny"})
    with pytest.raises(NotImplementedError, match="linalg_qr: there is no line for it"):
        denying(torch.randn(3, 3))


def test_programs_of_the_sizes_used_last_are_kept(monkeypatch):
    monkeypatch.setattr(_compiled_graph, "MOST_PROGRAMS", 2)
    step = compiled(lambda x: x.sin() * x.shape[0], dynamic=True)
    for size in (3, 4, 5, 4, 3):
        x = torch.randn(size)
        torch.testing.assert_close(step(x), x.sin() * size)


def test_dimensions_that_are_multiples():
    def function(x, y):
        return x.reshape(-1, 2) + y[:, None], x.shape[0] // 2

    step = compiled(function, dynamic=True)
    for size in (3, 5, 4):
        x, y = torch.randn(2 * size), torch.randn(size)
        torch.testing.assert_close(step(x, y), function(x, y))


def test_caches_that_are_written_one_after_the_other():
    """Keys and values of two layers; each is written and read in the same call."""

    def function(caches, x, place):
        for cache in caches:
            cache.index_copy_(0, place, x)
            x = cache.sum(0, keepdim=True)
        return x

    caches = [torch.zeros(4, 3), torch.ones(4, 3)]
    expected = [cache.clone() for cache in caches]
    step = compiled(function)
    for place in (torch.tensor([0]), torch.tensor([2])):
        x = torch.randn(1, 3)
        torch.testing.assert_close(step(caches, x, place), function(expected, x, place))
        torch.testing.assert_close(caches, expected)


def test_dtypes_that_programs_do_not_have_stay_with_pytorch():
    x = torch.ones(2).to(torch.float8_e4m3fn)
    assert compiled(lambda x: x.float() + 1)(x).tolist() == [2, 2]
    assert "float8" in str(tenon.torch.report()[-1])


def test_inputs_that_are_lazily_negated():
    x = torch.complex(torch.ones(2), torch.full((2,), 2.0)).conj().imag
    assert x.is_neg()
    assert compiled(lambda x: x * 2)(x).tolist() == [-4, -4]
    assert compiled(lambda x: x * 2)(torch._neg_view(torch.ones(2))).tolist() == [-2, -2]


def test_float8_between_calls_stays_with_pytorch():
    def function(x):
        return (x * 2).sin().to(torch.float8_e4m3fn).float().cos() + 1

    x = torch.randn(5)
    torch.testing.assert_close(compiled(function)(x), function(x))
    report = tenon.torch.report()[-1]
    assert "float8_e4m3fn" in str(report) and report.programs == 2


def test_calls_with_random_numbers_follow_the_seed_of_pytorch():
    def function(x):
        return F.dropout(x.sin() * 3, 0.5) + torch.rand_like(x).exp().sin()

    x = torch.ones(100)
    torch.manual_seed(3)
    expected = function(x)
    torch.manual_seed(3)
    torch.testing.assert_close(compiled(function)(x), expected)
    assert "it draws random numbers" in tenon.torch.report()[-1].refused["native_dropout"]
    with pytest.raises(Exception, match="native_dropout: it draws random numbers"):
        compiled(function, options={"fallback": "deny"})(x)
