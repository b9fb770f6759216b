# SPDX-License-Identifier: Apache-2.0
"""Operators made of others compute float16 and bfloat16 in float32 inside and round once, whether
gradients are recorded or not. So they are as near to float64 as one rounding lets them be, and what
they are made of agrees with a kernel for the whole, whatever the magnitude of the numbers."""

import re
from pathlib import Path

import numpy as np
import pytest
import tenon
from case import is_floating, map_arrays, results_of
from running import named, named_keywords
from samples import CASES

OPDEFS = Path(__file__).parents[2] / "opdefs"
T = tenon.tensor

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895e38, "float32": 3.4028e38}
SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149}
MAGNITUDES = [1e-6, 1e-3, 1.0, 300.0, 2e4]


def entries():
    for path in sorted(OPDEFS.glob("*.yaml")):
        for entry in ("\n" + path.read_text()).split("\n- op: ")[1:]:
            yield entry.split("\n")[0], entry


COMPOSITES = {name for name, entry in entries() if "\n  kind: composite" in entry}
INTERIORS = {name for name, entry in entries() if "interior: float32" in entry}

# Composites whose floating results are not compared at several magnitudes, and why.
NOT_SCALED = {
    "binary_cross_entropy": "its argument is a probability",
    "kl_div": "its target is a distribution",
    "dropout": "random",
    "randperm": "random",
    "bernoulli": "random",
    "multinomial": "random",
    "uniform_like": "random",
    "normal_like": "random",
    "empty": "unspecified contents",
    "empty_like": "unspecified contents",
    "allclose": "a matter of tolerance, not of rounding",
    "nextafter": "its result belongs to a dtype; test_nextafter",
    "one_hot": "no floats",
    "nan_to_num": "limits belong to a dtype",
    "embedding_dequantized": "its table is bytes, two bounds aside, and is float32",
    "triplet_margin_loss": "distances that are large beside their difference cancel",
}


# Those that round once more on the way, in proportion to the largest of their results.
ROUND_TWICE = {
    "conv_transpose2d": "kernels of its products add no bias",
    **dict.fromkeys(
        "scaled_dot_product_attention varlen_attention cached_attention".split(),
        "kernels keep the weights of smaller floats in their dtype",
    ),
}


def scaled_cases():
    for case in CASES:
        chosen = case.op in COMPOSITES or case.op in INTERIORS
        if not chosen or case.op in NOT_SCALED or case.op.endswith("_update"):
            continue
        if any(is_floating(a) or isinstance(a, list) for a in case.args):
            yield case


def call(case, dtype, magnitude, recording):
    """Results for the first argument scaled, rounded to `dtype`, in that dtype and in float64."""
    rounded = "float64" if dtype is None else dtype

    def place(array, scale):
        if array.dtype.kind != "f":
            return T(np.ascontiguousarray(array).reshape(array.shape)), None
        low = T(np.asarray(array * scale)).to(rounded)
        wide = low.to("float64")
        return low.detach().requires_grad_(True) if recording else low, wide

    lows, wides = [], []
    for i, value in enumerate(case.args):
        scale = magnitude if i == 0 else 1.0
        if isinstance(value, np.ndarray):
            low, wide = place(value, scale)
        elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            pairs = [place(item, scale) for item in value]
            low = [pair[0] for pair in pairs]
            wide = [pair[0] if pair[1] is None else pair[1] for pair in pairs]
        else:
            low, wide = named(value, "cpu"), None
        lows.append(low)
        wides.append(low if wide is None else wide)
    kwargs = {
        k: map_arrays(lambda a: T(np.ascontiguousarray(a)), v) for k, v in case.kwargs.items()
    }
    kwargs = named_keywords(kwargs, "cpu")
    function = getattr(tenon, case.op)
    return results_of(function(*lows, **kwargs)), results_of(function(*wides, **kwargs))


def assert_near(got, want, dtype, ulps=2.0, of_largest=1e-2):
    """Within a few units of `dtype`, and infinite where its range ends."""
    got = got.detach().to("float64").numpy()
    want = want.detach().to("float64").numpy()
    inside = np.abs(want) < LARGEST[dtype] * (1 - 2 * EPSILON[dtype])
    close = np.abs(got - want) <= ulps * (EPSILON[dtype] * np.abs(want) + SMALLEST[dtype])
    # What cancels in float32 leaves its own rounding, far below that of the dtype.
    scale = np.max(np.abs(want[np.isfinite(want)]), initial=0.0)
    close |= np.abs(got - want) <= EPSILON[dtype] * of_largest * scale
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    outside = ~inside & (np.abs(got) >= LARGEST[dtype] * (1 - 3 * EPSILON[dtype]))
    bad = ~(same | (inside & close) | outside)
    assert not bad.any(), f"got {got[bad][:4]}, want {want[bad][:4]}"


@pytest.mark.parametrize("recording", [False, True], ids=["plain", "recording"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", scaled_cases(), ids=str)
def test_composites_round_once(case, dtype, recording):
    for magnitude in MAGNITUDES:
        got, want = call(case, dtype, magnitude, recording)
        for low, wide in zip(got, want, strict=True):
            if str(low.dtype) == dtype:
                assert_near(low, wide, dtype, of_largest=1 if case.op in ROUND_TWICE else 1e-2)


def test_the_table_of_exceptions_is_short_and_true():
    assert set(NOT_SCALED) <= COMPOSITES, set(NOT_SCALED) - COMPOSITES
    assert len({case.op for case in scaled_cases()}) > 60


# ---- kernels against what they stand for ---------------------------------------------------------

_rng = np.random.default_rng(77)


def normal(*shape):
    return _rng.standard_normal(shape)


def positive(*shape):
    return _rng.uniform(0.1, 1, shape)


_x, _w, _b = normal(3, 4, 5), normal(5), normal(5)
_image = normal(2, 3, 5, 4)
_rows = normal(4, 6)
_targets = np.array([0, 5, -100, 1])
_codes = _rng.integers(-128, 128, (5, 32), dtype=np.int8)
_weights = _rng.normal(size=(5, 32))
_ragged = 0.7, T([0, 3, 5]), 2, 1.5  # scale, offsets, window, softcap


def cross_entropy(reduction):
    return lambda x: tenon.cross_entropy(x, T(_targets), reduction=reduction)


# Every composite that the CPU has a kernel for: how to call it, and arguments of which the first is
# scaled. Gradients are called by differentiating: once, where the kernel runs, and so that they can be
# differentiated again, where the parts do.
WHOLE = {
    "rms_norm": [(tenon.rms_norm, _x, _w), (tenon.rms_norm, _x)],
    "batch_norm_inference": [
        (tenon.batch_norm_inference, _image, normal(3), positive(3), normal(3), normal(3))
    ],
    "max_pool2d": [(lambda x: tenon.max_pool2d(x, 2), _image)],
    "rotary_embedding": [
        (lambda *a: tenon.rotary_embedding(*a), normal(2, 3, 8), normal(3, 4), normal(3, 4)),
        (lambda *a: tenon.rotary_embedding(*a, True), normal(3, 8), normal(1, 4), normal(1, 4)),
    ],
    "weight_only_linear": [
        (
            lambda x, s, b: tenon.weight_only_linear(x, T(_codes), s, b),
            normal(3, 32),
            positive(5),
            normal(5),
        ),
        (
            lambda x, s: tenon.weight_only_linear(x, T(_codes), s, None, 4, 16),
            normal(64),
            positive(5, 4),
        ),
    ],
    "linear_fp8": [
        (
            lambda x, s, b: tenon.linear_fp8(x, T(_weights).to("float8_e4m3"), s, b),
            normal(3, 32),
            positive(5),
            normal(5),
        )
    ],
    "paged_attention": [
        (
            lambda *a: tenon.paged_attention(*a, T([[4, 1], [2, 3]]), T([4, 3]), *_ragged),
            normal(5, 4, 3),
            normal(5, 2, 2, 3),
            normal(5, 2, 2, 4),
        )
    ],
    "sort": [(tenon.sort, _rows)],
    "argsort": [(tenon.argsort, _rows)],
    "layer_norm_grad": [
        (tenon.layer_norm, _x, _w, _b),
        (lambda x: tenon.layer_norm(x, None, None, 2), _x),
    ],
    "batch_norm_grad": [
        (lambda *a: tenon.batch_norm(*a)[0], _image, normal(3), normal(3)),
        (lambda x: tenon.batch_norm(x)[0], _image),
    ],
    "softmax_grad": [(tenon.softmax, _rows)],
    "log_softmax_grad": [(tenon.log_softmax, _rows)],
    "ctc_loss_grad": [
        (
            lambda x: tenon.ctc_loss(
                tenon.log_softmax(x),
                tenon.tensor([[1, 2], [2, 2]]),
                tenon.tensor([6, 5]),
                tenon.tensor([2, 1]),
            ),
            normal(6, 2, 4),
        )
    ],
    "softmax_cross_entropy_grad": [
        (cross_entropy("mean"), _rows),
        (cross_entropy("sum"), _rows),
        (cross_entropy("none"), _rows),
    ],
    "lstm_recurrence_grad": [
        (
            lambda *a: tenon.lstm_recurrence(*a)[0],
            normal(3, 2, 8),
            normal(8, 2) * 0.1,
            normal(2, 2),
            normal(2, 2),
        )
    ],
    "gru_recurrence_grad": [
        (
            lambda *a: tenon.gru_recurrence(*a)[0],
            normal(3, 2, 6),
            normal(6, 2) * 0.1,
            normal(6),
            normal(2, 2),
        )
    ],
    "attention_grad": [
        (tenon.scaled_dot_product_attention, normal(2, 6, 4), normal(2, 5, 4), normal(2, 5, 3))
    ],
    "csr_softmax_grad": [
        (lambda x: tenon.csr_softmax(tenon.tensor([0, 2, 2, 5]), x), normal(5)),
        (lambda x: tenon.csr_softmax(tenon.tensor([0, 1, 5]), x, True), normal(5, 3)),
    ],
}
# Weights of attention are rounded to the dtype between the two products, by the kernel alone.
ROUGHER = {"attention_grad": 4.0}


def has_kernel(name):
    return tenon.explain(f"tenon::{name}", "cpu", "float32")["route"] == "native"


def test_every_composite_with_a_kernel_is_compared():
    assert {name for name in COMPOSITES if has_kernel(name)} == set(WHOLE)


def whole_cases():
    return [
        pytest.param(name, *call, id=f"{name}-{i}")
        for name, calls in WHOLE.items()
        for i, call in enumerate([(c[0], c[1:]) for c in calls])
    ]


def both_ways(name, function, arrays, dtype):
    """Results of the kernel, and of what stands for it."""
    plain = [T(array).to(dtype) for array in arrays]
    recorded = [x.detach().requires_grad_(True) for x in plain]
    if not name.endswith("_grad"):
        return results_of(function(*plain)), results_of(function(*recorded))
    out = function(*recorded)
    weights = T(np.cos(np.arange(out.numel())).reshape(tuple(out.shape))).to(dtype)
    return (
        tenon.grad(out, recorded, weights, retain_graph=True),
        tenon.grad(out, recorded, weights, create_graph=True),
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name, function, arrays", whole_cases())
def test_kernels_agree_with_their_parts(name, function, arrays, dtype):
    slack = {"float64": 1e-11, "float32": 2e-5}.get(dtype) or 2 * EPSILON[dtype]
    # Weights of attention saturate at large scores, and gates at large sums: what cancels is all that gradients are then.
    saturates = name in ("attention_grad", "gru_recurrence_grad", "paged_attention")
    magnitudes = MAGNITUDES[:3] if saturates else MAGNITUDES
    for magnitude in magnitudes:
        scaled = [arrays[0] * magnitude, *arrays[1:]]
        whole, parts = both_ways(name, function, scaled, dtype)
        for one, other in zip(whole, parts, strict=True):
            assert one.dtype == other.dtype
            a, b = (t.detach().to("float64").numpy() for t in (one, other))
            rough = ROUGHER.get(name, 0.05) * slack * np.max(np.abs(b), initial=0.0)
            smallest = 2 * SMALLEST.get(dtype, 0.0)
            np.testing.assert_allclose(a, b, slack, rough + smallest, err_msg=f"at {magnitude}")


# ---- the reports that led here -------------------------------------------------------------------


def test_rms_norm_while_recording():
    layer = tenon.nn.RMSNorm(4, dtype=tenon.float16)
    x = T([[300.0, -300.0, 150.0, 100.0]]).to("float16").requires_grad_(True)
    recorded = layer(x)
    with tenon.no_grad():
        plain = layer(x)
    np.testing.assert_allclose(recorded.detach().numpy(), plain.numpy(), 1e-3)
    np.testing.assert_allclose(plain.numpy(), [[1.302, -1.302, 0.651, 0.434]], 2e-3)
    recorded[0, 0].backward()
    assert 1e-4 < abs(x.grad.to("float32").numpy()[0, 1]) < 1


def test_std_of_float16():
    assert abs(T([1000.0, 2000.0, 4000.0]).to("float16").std().item() - 1247.2) < 1
    assert T([300.0, -300.0]).to("float16").std().item() == 300


@pytest.mark.parametrize("p", [0.5, 3.0, 4.5, -1.0, -2.0, 1.0, 2.0, float("inf"), float("-inf")])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_norms_stay_in_range(p, dtype):
    largest = {"float16": 3e4, "bfloat16": 1e18, "float32": 1e18}.get(dtype, 1e150)
    if p != 2.0 and dtype in ("bfloat16", "float32", "float64"):
        largest *= 1e15  # powers are taken of quotients; squares of float32 are not
    if p == 0.5:
        largest /= 20
    array = np.array([0.25, -0.5, 1.0])
    for scale in (1.0, largest, 1 / largest):
        x = T(array * scale).to(dtype)
        exact = x.to("float64").numpy()
        if p == 2.0 and scale < 1 and dtype != "float64" and dtype != "float16":
            continue  # squares underflow, as in NumPy
        top = np.max(np.abs(exact))
        want = top * np.linalg.norm(exact / top, p)
        got = tenon.norm(x, p).item()
        slack = {"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 3e-6)
        np.testing.assert_allclose(got, want, slack, SMALLEST.get(dtype, 0.0))


def test_norms_of_special_values():
    nan, inf = float("nan"), float("inf")
    for p in (3.0, 0.5, -1.0):
        assert tenon.norm(T([0.0, 0.0]), p).item() == 0
        assert np.isnan(tenon.norm(T([1.0, nan]), p).item())
    assert tenon.norm(T([1.0, inf]), 3.0).item() == inf
    assert tenon.norm(T([inf, inf]), -1.0).item() == inf
    assert tenon.norm(T([0.0, 2.0]), -1.0).item() == 0
    assert tenon.norm(tenon.zeros((0,)), 3.0).item() == 0
    assert tenon.norm(tenon.zeros((0, 2)), 3.0, [0]).tolist() == [0, 0]
    assert tenon.norm(tenon.ones((2, 3)), 3.0, [1], keepdim=True).shape == (2, 1)


def test_norm_of_float16_and_its_quotient():
    assert tenon.norm(T([-127.5]).to("float16"), 3.0).item() == 127.5
    got = tenon.normalize(T([[50.0, 60.0]]).to("float16"), 3.0, 1).tolist()
    np.testing.assert_allclose(got, [[0.7154, 0.8585]], 1e-3)
    got = tenon.normalize(T([[6e4, 6e4]]).to("float16"), 2.0, 1).tolist()
    np.testing.assert_allclose(got, [[0.7071, 0.7071]], 1e-3)


def test_gradients_of_norms_do_not_see_the_scale():
    x = T([3.0, -4.0, 1.0], dtype="float64", requires_grad=True)
    for p in (3.0, 1.5, -2.0):
        (grad,) = tenon.grad(tenon.norm(x, p), [x])
        values = x.detach().numpy()
        norm = np.linalg.norm(values, p)
        want = np.sign(values) * np.abs(values) ** (p - 1) * norm ** (1 - p)
        np.testing.assert_allclose(grad.numpy(), want, 1e-12)
        assert tenon.autograd.gradcheck(lambda v, p=p: tenon.norm(v, p), [x])


def test_celu_at_the_ends():
    assert tenon.celu(T([1e38]), 0.01).item() == np.float32(1e38)
    assert tenon.celu(T([600.0]).to("float16"), 0.005).item() == 600
    x = np.array([-3.0, -0.5, 0.0, 2.0])
    want = np.maximum(x, 0) + np.minimum(0.7 * np.expm1(x / 0.7), 0)
    np.testing.assert_allclose(tenon.celu(T(x), 0.7).numpy(), want, 1e-14)


def test_losses_of_many_small_floats():
    """A sum in float16 ends at 65504."""
    logs = tenon.full((20_000, 2), -6.0, dtype="float16")
    classes = tenon.zeros((20_000,), dtype="int64")
    assert tenon.nll_loss(logs, classes).item() == 6
    weight = tenon.ones((2,), dtype="float16")
    loss = tenon.cross_entropy(tenon.zeros((20_000, 2), dtype="float16"), classes, weight)
    assert abs(loss.item() - np.log(2)) < 1e-3
    assert tenon.nll_loss(logs, classes).dtype == tenon.float16


def test_hardswish_ends_at_its_limit():
    """x * relu6(x + 3) / 6 is 0 below -3 however far; other frameworks give NaN for -inf."""
    assert tenon.hardswish(T([float("-inf")])).item() == 0


# ---- neighbours of small floats ------------------------------------------------------------------


def all_numbers(dtype):
    bits = np.arange(2**16, dtype=np.uint16)
    if dtype == "float16":
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << 16).view(np.float32)


def after(dtype, bits, up):
    """The bits of the neighbour, from sign and magnitude."""
    ordered = np.where(bits & 0x8000, -(bits & 0x7FFF).astype(np.int64), bits.astype(np.int64))
    moved = ordered + (1 if up else -1)
    negative = (moved < 0) | ((moved == 0) & (ordered < 0))
    return (np.abs(moved) | np.where(negative, 0x8000, 0)).astype(np.uint16)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("up", [True, False])
def test_nextafter_of_every_small_float(dtype, up):
    numbers = all_numbers(dtype)
    infinity = np.float32(np.inf if up else -np.inf)
    moves = ~np.isnan(numbers) & (numbers != infinity)
    x = T(numbers).to(dtype)
    assert (x.to("float32").numpy()[moves] == numbers[moves]).all()
    got = tenon.nextafter(x, float(infinity)).to("float32").numpy()
    bits = np.arange(2**16, dtype=np.uint16)
    neighbours = after(dtype, bits, up)
    want = all_numbers(dtype)[neighbours]
    np.testing.assert_array_equal(got[moves], want[moves])
    np.testing.assert_array_equal(np.signbit(got[moves]), np.signbit(want[moves]))
    assert np.isnan(got[np.isnan(numbers)]).all()
    assert got[numbers == infinity].tolist() == [infinity]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_nextafter_towards_others(dtype):
    x = T([1.0, 1.0, 1.0, 0.0, np.nan, 1.0]).to(dtype)
    y = T([2.0, 0.0, 1.0, -1.0, 1.0, np.nan]).to(dtype)
    got = tenon.nextafter(x, y)
    assert got.dtype == x.dtype
    step = EPSILON[dtype]
    np.testing.assert_array_equal(
        got.to("float64").numpy(),
        [1 + step, 1 - step / 2, 1, -SMALLEST[dtype], np.nan, np.nan],
    )
    with pytest.raises(
        TypeError, match=re.escape("[nextafter] expected floating numbers, got int64")
    ):
        tenon.nextafter(T([1]), T([2]))


# ---- both parts of complex numbers ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_nan_to_num_of_complex_numbers(dtype):
    nan, inf = np.nan, np.inf
    array = np.array(
        [complex(nan, inf), complex(-inf, nan), complex(1, -2), complex(inf, -inf)], dtype
    )
    np.testing.assert_array_equal(tenon.nan_to_num(T(array)).numpy(), np.nan_to_num(array))
    got = tenon.nan_to_num(T(array), 7.0, 8.0, -8.0).numpy()
    np.testing.assert_array_equal(got, np.nan_to_num(array, nan=7.0, posinf=8.0, neginf=-8.0))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "log_ndtr", "moe_gate"])
def test_integers_do_not_wrap_around_in_the_steps(name, dtype, device):
    numbers = np.array([[100, -100, 3, 90], [-128, 127, 0, 7]]).astype(dtype)
    arguments = (2,) if name == "moe_gate" else ()
    function = getattr(tenon, name)
    got = function(tenon.tensor(numbers).to(device), *arguments)
    want = function(tenon.tensor(numbers.astype("float32")), *arguments)
    for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, want)), strict=True):
        np.testing.assert_allclose(a.cpu().numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
