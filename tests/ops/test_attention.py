# SPDX-License-Identifier: Apache-2.0
"""Attention in blocks: lengths and features beyond one, masks, views, gradients; against NumPy."""

import numpy as np
import pytest
import tenon
from running import (
    INSTRUCTION_SETS,
    TOLERANCE,
    dtype_name,
    run_with_instruction_set,
    skip_unserved,
    to_tensor,
)

# batch, rows, columns, features, features of a value
SHAPES = {
    "small": ((2,), 5, 5, 4, 3),
    "ragged": ((1, 3), 50, 70, 17, 33),
    "several blocks": ((2, 2), 130, 150, 64, 64),
    "many keys": ((2,), 70, 530, 48, 40),
    "fewer keys than rows": ((), 200, 90, 32, 96),
    "many batches": ((2, 9), 17, 33, 8, 8),
    "one key": ((3,), 97, 1, 80, 5),
    "few rows": ((2,), 3, 300, 16, 16),
    "one row": ((2, 3), 1, 530, 64, 64),
    "four rows": ((2,), 4, 259, 33, 70),
    "more than few rows": ((2,), 5, 259, 33, 70),
    "no keys": ((2,), 9, 0, 8, 8),
    "no rows": ((2,), 0, 9, 8, 8),
    "no batch": ((0,), 9, 9, 8, 8),
    "no features": ((2,), 9, 7, 0, 4),
}
MASKS = ["none", "bool", "keys", "added"]


def operands(shape, seed=0):
    """query, key, value and the gradient of the result."""
    batch, rows, columns, features, values = SHAPES[shape]
    rng = np.random.default_rng(seed)
    sizes = ((rows, features), (columns, features), (columns, values), (rows, values))
    return [rng.standard_normal((*batch, *size)) for size in sizes]


def mask_of(kind, query, key):
    """`bool` and `added` leave one row with nothing to see."""
    rng = np.random.default_rng(1)
    rows, columns = query.shape[-2], key.shape[-2]
    if kind == "none":
        return None
    if kind == "keys":
        return rng.random(columns) > 0.3
    blind = (np.arange(rows) == rows - 1)[:, None]
    if kind == "bool":
        return (rng.random((*query.shape[:-2], rows, columns)) > 0.5) & ~blind
    return np.where(blind, -np.inf, rng.standard_normal((rows, columns)))


def across(x):
    return np.swapaxes(x, -1, -2)


def expected(query, key, value, grad, mask=None, causal=False):
    """The result, the gradients of query, key and value, and that of an added mask."""
    scale = 1 / np.sqrt(max(query.shape[-1], 1))
    scores = query @ across(key) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    largest = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = weights.sum(-1, keepdims=True)
    weights = weights / np.where(total > 0, total, 1)
    slopes = grad @ across(value)
    slopes = weights * (slopes - (weights * slopes).sum(-1, keepdims=True))
    return (
        weights @ value,
        slopes @ key * scale,
        across(slopes) @ query * scale,
        across(weights) @ grad,
        slopes,
    )


def tensors(arrays, device, dtype, place=to_tensor):
    return [place(array, device, dtype=dtype) for array in arrays]


def numbers(tensor):
    return tensor.detach().to("cpu").cast(tenon.float64).numpy()


def assert_near(got, want, dtype):
    slack = max(TOLERANCE[dtype], 1e-11)
    np.testing.assert_allclose(
        numbers(got), want, rtol=slack, atol=slack * max(1, np.abs(want).max(initial=0))
    )


def check(arrays, mask, causal, device, dtype, place=to_tensor):
    query, key, value, grad = tensors(arrays, device, dtype, place)
    for each in (query, key, value):
        each.requires_grad = True
    if mask is not None:
        mask = to_tensor(mask, device, dtype="bool" if mask.dtype == bool else dtype)
    out = tenon.scaled_dot_product_attention(query, key, value, mask, causal=causal)
    assert dtype_name(out) == dtype
    got = (out, *tenon.autograd.grad(out, [query, key, value], grad))
    rounded = [numbers(each) for each in (query, key, value, grad)]
    if mask is not None:
        mask = mask.to("cpu").numpy() if dtype_name(mask) == "bool" else numbers(mask)
    for each, want in zip(got, expected(*rounded, mask, causal)[:4], strict=True):
        assert_near(each, want, dtype)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_results_and_gradients(shape, kind, causal, dtype, device):
    skip_unserved(device, dtype)
    arrays = operands(shape)
    check(arrays, mask_of(kind, *arrays[:2]), causal, device, dtype)


def heads_inside(array, device, **options):
    """As layers pass it: [batch, length, heads, features] with the middle axes swapped."""
    swapped = np.ascontiguousarray(np.swapaxes(array, -3, -2))
    return to_tensor(swapped, device, **options).transpose(-3, -2)


def every_other(array, device, **options):
    """Strides other than 1 along the features, and negative ones along the length."""
    repeated = np.repeat(array[..., ::-1, :], 2, -1)
    return to_tensor(repeated, device, **options)[..., ::2].flip([-2])


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
@pytest.mark.parametrize("place", [heads_inside, every_other])
def test_views(place, dtype, device):
    skip_unserved(device, dtype)
    check(operands("several blocks"), None, True, device, dtype, place)


def test_batches_broadcast(device):
    query, key, value, _ = operands("ragged")
    query = np.concatenate([query, 2 * query])
    key, value = key[0, 0], value[:, :1]
    grad = np.ones((*query.shape[:-1], value.shape[-1]))
    leaves = [to_tensor(each, device) for each in (query, key, value)]
    for each in leaves:
        each.requires_grad = True
    out = tenon.scaled_dot_product_attention(*leaves)
    want = expected(query, key, value, grad)
    assert_near(out, want[0], "float64")
    got = tenon.autograd.grad(out, leaves, to_tensor(grad, device))
    assert_near(got[1], want[2].sum((0, 1)), "float64")
    assert_near(got[2], want[3].sum((0, 1))[None, None], "float64")


@pytest.mark.parametrize("shape", [(70,), (50, 70), (3, 1, 70), (1, 3, 50, 70)], ids=str)
def test_gradient_of_an_added_mask(shape, device):
    query, key, value, grad = operands("ragged")
    mask = np.random.default_rng(2).standard_normal(shape)
    leaf = to_tensor(mask, device)
    leaf.requires_grad = True
    others = [to_tensor(each, device) for each in (query, key, value)]
    out = tenon.scaled_dot_product_attention(*others, leaf)
    (got,) = tenon.autograd.grad(out, [leaf], to_tensor(grad, device))
    want = expected(query, key, value, grad, mask)[4]
    extra = want.ndim - len(shape)
    want = want.sum(tuple(range(extra)))
    want = want.sum(tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)
    assert_near(got, want, "float64")


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
@pytest.mark.parametrize("shape", ["several blocks", "many keys"])
def test_scores_beyond_the_range_of_exp(shape, dtype, device):
    if dtype == "bfloat16" and device != "cpu":
        pytest.skip(
            "made of other operators, which round scores: by more than 1, such as these are"
        )
    arrays = operands(shape)
    check([300 * arrays[0], *arrays[1:]], None, False, device, dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("shape", ["small", "many keys"])
def test_nan_stays_in_its_row(shape, dtype, device):
    arrays = operands(shape)[:3]
    arrays[0][0, 2] = np.nan
    out = tenon.scaled_dot_product_attention(*(to_tensor(x, device, dtype=dtype) for x in arrays))
    out = numbers(out).reshape(-1, out.shape[-1])
    assert np.isnan(out[2]).all()
    assert np.isfinite(np.delete(out, 2, 0)).all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("rows", [1, 70])
def test_scales_that_are_not_positive(rows, dtype, device):
    query, key, value = (to_tensor(x, device, dtype=dtype) for x in operands("many keys")[:3])
    query = query[:, :rows]
    attend = tenon.scaled_dot_product_attention
    got, want = attend(query, key, value, scale=-0.5), attend(-query, key, value, scale=0.5)
    np.testing.assert_allclose(numbers(got), numbers(want), rtol=2e-2, atol=1e-2)
    mean = numbers(value).mean(-2, keepdims=True).repeat(rows, -2)
    got = numbers(attend(query, key, value, scale=0.0))
    np.testing.assert_allclose(got, mean, rtol=2e-2, atol=1e-3)


@pytest.mark.parametrize("kind", MASKS)
def test_second_derivative(kind, device):
    """That of a sum of squares, against differences of the first along a direction."""
    arrays = operands("ragged")
    mask = mask_of(kind, *arrays[:2])
    mask = None if mask is None else to_tensor(mask, device)
    direction = [to_tensor(x, device) for x in operands("ragged", 3)[:3]]

    def slope(step):
        leaves = [
            to_tensor(x, device) + d * step for x, d in zip(arrays[:3], direction, strict=True)
        ]
        leaves = [leaf.detach() for leaf in leaves]
        for leaf in leaves:
            leaf.requires_grad = True
        out = tenon.scaled_dot_product_attention(*leaves, mask, causal=True)
        first = tenon.autograd.grad((out * out).sum(), leaves, create_graph=True)
        return leaves, sum((g * d).sum() for g, d in zip(first, direction, strict=True))

    leaves, along = slope(0.0)
    second = tenon.autograd.grad(along, leaves)
    got = sum(float((g * d).sum().item()) for g, d in zip(second, direction, strict=True))
    step = 1e-5
    want = (float(slope(step)[1].item()) - float(slope(-step)[1].item())) / (2 * step)
    assert got == pytest.approx(want, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("shape", ["fewer keys than rows", "several blocks"])
def test_threads_change_nothing(shape):
    query, key, value, grad = tensors(operands(shape), "cpu", "float32")
    for each in (query, key, value):
        each.requires_grad = True

    def results():
        out = tenon.scaled_dot_product_attention(query, key, value, causal=True)
        return [numbers(x) for x in (out, *tenon.autograd.grad(out, [query, key, value], grad))]

    threads = tenon.get_num_threads()
    several = results()
    try:
        tenon.set_num_threads(1)
        alone = results()
    finally:
        tenon.set_num_threads(threads)
    for one, other in zip(alone, several, strict=True):
        assert np.array_equal(one, other)


def test_dropout_keeps_the_mean(device):
    tenon.manual_seed(0)
    query, key, value, _ = (to_tensor(x, device) for x in operands("several blocks"))
    plain = tenon.scaled_dot_product_attention(query, key, value)
    dropped = tenon.scaled_dot_product_attention(query, key, value, None, 0.5)
    assert abs(float((plain - dropped).mean().item())) < 0.01
    assert float((plain - dropped).abs().max().item()) > 0.01


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
def test_every_instruction_set(isa):
    run_with_instruction_set(isa, __file__, "results_and_gradients")


HUGE = {"float16": -6e4, "bfloat16": -9.4e29, "float32": -1e30, "float64": -1e300}


@pytest.mark.parametrize("dtype", HUGE)
@pytest.mark.parametrize("rows, keys", [(1, 1), (3, 1), (3, 70), (60, 70), (70, 300)])
@pytest.mark.parametrize("kind", ["huge", "smallest"])
def test_masks_that_add_huge_numbers(kind, rows, keys, dtype, device):
    """Where all keys of a row have the mask they count alike, or by their scores if these still show;
    where some have none, these count alone. Factors that are rounded one by one leave NaN."""
    skip_unserved(device, dtype)
    finfo = {"float16": -65504.0, "bfloat16": -3.3895313892515355e38}
    smallest = finfo.get(dtype) or float(np.finfo(dtype).min)
    fill = HUGE[dtype] if kind == "huge" else smallest
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal((2, n, 10)) for n in (rows, keys, keys)]
    query, key, value = tensors(arrays, device, dtype)
    mask = np.where(rng.random((rows, keys)) > 0.5, fill, 0.0)
    mask[0] = fill
    added = tensors([mask], device, dtype)[0]
    got = numbers(tenon.scaled_dot_product_attention(query, key, value, added))
    wide = np.float64 if dtype == "float64" else np.float32
    scores = numbers(query) @ across(numbers(key)) / np.sqrt(10)
    scores = (scores.astype(wide) + numbers(added).astype(wide)).astype(np.float64)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ numbers(value)
    slack = {"float64": 1e-9, "float32": 1e-4, "float16": 5e-3, "bfloat16": 3e-2}[dtype]
    np.testing.assert_allclose(got, want, rtol=slack, atol=slack)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("keys", [1, 40])
def test_huge_scores(keys, dtype, device):
    """Equal scores of any size count alike, although the scale is no power of two."""
    skip_unserved(device, dtype)
    query = tenon.full((3, 10), 1e14, dtype=dtype, device=device)
    key = tenon.full((keys, 10), 1e14, dtype=dtype, device=device)
    value = tenon.full((keys, 4), 3.0, dtype=dtype, device=device)
    assert (
        numbers(tenon.scaled_dot_product_attention(query, key, value)).tolist() == [[3.0] * 4] * 3
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("keys", [3, 200])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("number", [-3e38, -1e9])
def test_gradient_where_a_mask_is_huge_for_every_key(number, causal, keys, dtype, device):
    """A row hidden by finite numbers has equal weights 1 / n. The logarithm of their sum is lost beside
    the number, so that the gradient must not take the weights from the sum of the two."""
    skip_unserved(device, dtype)
    rng = np.random.default_rng(3)
    rows, features = 130, 8
    query, key = np.zeros((1, rows, features)), rng.standard_normal((1, keys, features))
    value = rng.standard_normal((1, keys, 4))
    mask = np.full((1, rows, keys), number)
    tensors = [to_tensor(x, device, dtype=dtype).requires_grad_() for x in (query, key, value)]
    added = to_tensor(mask, device, dtype=dtype)
    out = tenon.scaled_dot_product_attention(*tensors, added, causal=causal)
    _, _, dvalue = tenon.grad(out.sum(), tensors)
    seen = np.tri(rows, keys) if causal else np.ones((rows, keys))
    weights = (seen / seen.sum(-1, keepdims=True)).sum(0)
    want = np.broadcast_to(weights[:, None], (keys, 4))
    got = dvalue.to("cpu").to("float64").numpy()[0]
    np.testing.assert_allclose(got, want, rtol=2e-2 if dtype == "bfloat16" else 1e-5)
