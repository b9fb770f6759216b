# SPDX-License-Identifier: Apache-2.0
"""Every operator against NumPy, whatever the dtype, the layout and the way of calling it."""

import numpy as np
import pytest
import tenon
from case import is_floating
from running import (
    TOLERANCE,
    arguments,
    assert_close,
    dtype_name,
    expected_dtype,
    has_tensors,
    reference,
    results_of,
    run,
    skip_unserved,
    to_numpy,
    to_tensor,
)
from samples import CASES

REFERENCED = [case for case in CASES if case.reference is not None]
DATA_DEPENDENT = set(
    "nonzero masked_select masked_scatter tril_indices triu_indices nms reindex_graph"
    " sequence_unpad text_lower text_upper text_take text_split sample_subgraph"
    " csr_product coo_coalesce sorted_matches filter_by_instag".split()
)
UNWRITABLE = {"expand", "sliding_window", "broadcast_tensors", "meshgrid"}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", REFERENCED, ids=str)
def test_equals_numpy(case, dtype, device):
    wanted = reference(case, dtype)
    results = run(case, device, dtype)
    assert len(results) == len(wanted)
    for got, want in zip(results, wanted, strict=True):
        want = np.asarray(want)
        assert dtype_name(got) == expected_dtype(case, want, dtype)
        assert str(got.device).split(":")[0] == device.split(":")[0]
        assert_close(case, got, want)


def on_meta(array, device, **options):
    return to_tensor(array, "cpu", **options).to("meta")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_meta_says_the_same_shapes(case):
    if case.op in DATA_DEPENDENT:
        pytest.skip("the shape depends on data")
    results = run(case, "cpu")
    args, kwargs = arguments(case, "cpu", place=on_meta)
    if "device" in kwargs:
        kwargs["device"] = "meta"
    predicted = results_of(getattr(tenon, case.op)(*args, **kwargs))
    for got, want in zip(predicted, results, strict=True):
        assert (tuple(got.shape), dtype_name(got)) == (tuple(want.shape), dtype_name(want))
        assert str(got.device).startswith("meta")


def transposed(array, device, **options):
    """Stored with its axes reversed."""
    return to_tensor(array.T, device, **options).permute()


def reversed_gaps(array, device, **options):
    """Every second element of something longer, read backwards."""
    if array.ndim == 0:
        return to_tensor(array, device, **options)
    storage = np.zeros(tuple(2 * n for n in array.shape), array.dtype)
    key = tuple(slice(None, None, 2) for _ in array.shape)
    storage[key] = np.flip(array)
    tensor = to_tensor(storage, device, **options)
    return tenon.flip(tensor[key])


def skip_without_floats(case, dtype, device):
    if dtype == "bfloat16":
        skip_unserved(device, dtype)
        if not has_floats(case):
            pytest.skip("nothing of it is floating: float64 has tested it")


def has_floats(case):
    return any(
        is_floating(each)
        for value in case.args
        for each in (value if isinstance(value, list) else [value])
    )


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
@pytest.mark.parametrize("layout", [transposed, reversed_gaps], ids=["transposed", "gaps"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layout_of_inputs_does_not_matter(case, layout, dtype, device):
    if case.op == "view":
        pytest.skip("a view needs memory that fits")
    skip_without_floats(case, dtype, device)
    if not any(has_tensors(value) for value in arguments(case, device, dtype)[0]):
        pytest.skip("no tensors")
    for got, want in zip(run(case, device, dtype, layout), run(case, device, dtype), strict=True):
        assert_close(case, got, to_numpy(want))


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
@pytest.mark.parametrize("case", REFERENCED, ids=str)
def test_writes_into_given_outputs(case, dtype, device):
    skip_without_floats(case, dtype, device)
    wanted = run(case, device, dtype)
    args, kwargs = arguments(case, device, dtype)
    function = getattr(tenon, case.op)
    if isinstance(function(*args, **kwargs), (tuple, list)) and not hasattr(
        function(*args, **kwargs), "_fields"
    ):
        if len(wanted) > 1 or case.op in {"split", "unbind", "broadcast_tensors", "meshgrid"}:
            pytest.skip("a list has no out= form")
    # Outputs that are not contiguous.
    outs = tuple(
        tenon.zeros([*reversed(want.shape)], dtype=want.dtype, device=device).permute()
        for want in wanted
    )
    function(*args, **kwargs, out=outs if len(outs) > 1 else outs[0])
    for got, want in zip(outs, wanted, strict=True):
        assert_close(case, got, to_numpy(want))


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
@pytest.mark.parametrize("case", REFERENCED, ids=str)
def test_in_place_equals_functional(case, dtype, device):
    skip_without_floats(case, dtype, device)
    function = getattr(tenon, case.op + "_", None)
    args, kwargs = arguments(case, device, dtype)
    want = run(case, device, dtype)
    if function is None or len(want) != 1 or not args or not isinstance(args[0], tenon.Tensor):
        pytest.skip("no in-place form")
    if tuple(args[0].shape) != tuple(want[0].shape) or args[0].dtype != want[0].dtype:
        pytest.skip("the result does not fit")
    result = function(*args, **kwargs)
    assert result is args[0]
    assert_close(case, args[0], to_numpy(want[0]))


HALF = [
    case
    for case in REFERENCED
    if case.grad is None
    and any(is_floating(value) for value in case.args)
    and case.op not in {"lgamma", "pow", "tan", "prod", "nextafter", "cumprod", "einsum"}
    and not any(
        isinstance(value, list) and value and isinstance(value[0], np.ndarray)
        for value in case.args
    )
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", HALF, ids=str)
def test_half_precision_is_close(case, dtype, device):
    skip_unserved(device, dtype)
    for i, (got, want) in enumerate(zip(run(case, device, dtype), reference(case), strict=True)):
        want = np.asarray(want)
        if want.dtype.kind != "f":
            continue
        # Statistics, which have no gradients, are kept in float32.
        is_result = case.smooth is None or i < case.smooth
        assert dtype_name(got) == (dtype if is_result else "float32")
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        values = to_numpy(got)
        np.testing.assert_allclose(values, want, atol=2 * TOLERANCE[dtype] * scale, rtol=0)
