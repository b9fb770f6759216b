# SPDX-License-Identifier: Apache-2.0
"""tenon.fft against numpy.fft; gradients against differences; what is refused."""

import numpy as np
import pytest
import tenon
import vendor_libraries

DEVICE = "cpu"


@pytest.fixture(autouse=True)
def on_device(device):
    global DEVICE
    DEVICE = device
    with tenon.fallback(vendor_libraries.POLICY):
        yield


def T(x, **options):
    return tenon.tensor(x, **{"device": DEVICE, **options})


PRECISION = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12}
WIDE = {
    "float32": "complex64",
    "float64": "complex128",
    "complex64": "complex64",
    "complex128": "complex128",
}
REAL = {"float32": "float32", "float64": "float64", "complex64": "float32", "complex128": "float64"}
SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 30, 64, 97, 100, 101, 128, 210, 243, 509, 1000, 1024]


def random(*shape, dtype="float64", seed=0):
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def close(got, want, dtype, kinds=WIDE):
    got = got.cpu().numpy()
    assert got.shape == want.shape
    assert got.dtype == kinds[dtype]
    scale = max(1.0, np.abs(want).max()) if want.size else 1.0
    np.testing.assert_allclose(got, want, rtol=0, atol=PRECISION[dtype] * scale)


# -- one axis ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "ihfft", "irfft", "hfft"])
def test_any_size_equals_numpy(name, n, dtype):
    if dtype.startswith("complex") and name in ("rfft", "ihfft"):
        return
    x = random(n, dtype=dtype)
    function, oracle = getattr(tenon.fft, name), getattr(np.fft, name)
    kinds = REAL if name in ("irfft", "hfft") else WIDE
    if n > 1 or kinds is WIDE:
        close(function(T(x)), oracle(x), dtype, kinds)
    lengths = [1, n // 2, n + 1, 2 * n + 3] if n < 200 else [n + 1]
    for length in lengths:
        if length > 0:
            close(function(T(x), length), oracle(x, length), dtype, kinds)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward", None])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "ihfft", "irfft", "hfft"])
def test_norms_equal_numpy(name, norm):
    x = random(3, 10)
    kinds = REAL if name in ("irfft", "hfft") else WIDE
    got = getattr(tenon.fft, name)(T(x), norm=norm)
    close(got, getattr(np.fft, name)(x, norm=norm), "float64", kinds)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "ihfft", "irfft", "hfft"])
def test_axes_equal_numpy(name, axis):
    x = random(6, 4, 10, dtype="float64" if name in ("rfft", "ihfft") else "complex128")
    kinds = REAL if name in ("irfft", "hfft") else WIDE
    got = getattr(tenon.fft, name)(T(x), axis=axis)
    close(got, getattr(np.fft, name)(x, axis=axis), str(x.dtype), kinds)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_layouts(dtype):
    storage = random(12, 10, 14, dtype=dtype)
    base = T(storage)
    for part in (
        lambda a: a[::2, 1:8, ::-2],
        lambda a: a.transpose(2, 0, 1) if isinstance(a, np.ndarray) else a.permute([2, 0, 1]),
        lambda a: a[3:4, :, ::3],
    ):
        x, view = part(storage), part(base)
        for axis in (0, 1, 2):
            close(tenon.fft.fft(view, axis=axis), np.fft.fft(x, axis=axis), dtype)
        close(tenon.fft.fftn(view), np.fft.fftn(x), dtype)
        if dtype == "float32":
            close(tenon.fft.rfftn(view), np.fft.rfftn(x), dtype)
        else:
            close(tenon.fft.irfftn(view), np.fft.irfftn(x), dtype, REAL)
    expanded = tenon.expand(T(storage[:1, :, :1]), [3, 10, 5])
    close(
        tenon.fft.fft(expanded), np.fft.fft(np.broadcast_to(storage[:1, :, :1], (3, 10, 5))), dtype
    )


# -- several axes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize(
    "s, axes",
    [(None, None), (None, (0, 2)), (None, (2, 0)), ((3, 8), (1, 0)), ((5, 6, 7), (0, 1, 2))],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_several_axes_equal_numpy(dtype, s, axes, norm):
    x = random(4, 6, 5, dtype=dtype)
    names = ["fftn", "ifftn", "irfftn"] + (["rfftn"] if dtype == "float64" else [])
    for name in names:
        want = getattr(np.fft, name)(x, s=s, axes=axes, norm=norm)
        got = getattr(tenon.fft, name)(T(x), s=s, axes=axes, norm=norm)
        close(got, want, dtype, REAL if name == "irfftn" else WIDE)
    if axes == (0, 2):
        for name in names:
            name = name.removesuffix("n") + "2"
            want = getattr(np.fft, name)(x, axes=axes, norm=norm)
            got = getattr(tenon.fft, name)(T(x), axes=axes, norm=norm)
            close(got, want, dtype, REAL if name == "irfft2" else WIDE)


def test_hermitian_transforms_of_several_axes():
    x = random(4, 6, 5, dtype="complex128")
    want = np.fft.hfft(np.fft.fft(np.fft.fft(x, axis=0), axis=1))
    close(tenon.fft.hfftn(T(x)), want, "complex128", REAL)
    close(tenon.fft.hfft2(T(x)), np.fft.hfft(np.fft.fft(x, axis=1)), "complex128", REAL)
    close(tenon.fft.ihfftn(tenon.fft.hfftn(T(x))), np.fft.ifftn(want)[..., :5], "complex128")
    y = random(4, 6, 5)
    close(tenon.fft.ihfft2(T(y)), np.fft.ifft(np.fft.ihfft(y), axis=1), "float64")


def test_large_batches_run_in_parallel_and_give_the_same():
    x = random(64, 33, 128, dtype="complex64")
    threads = tenon.get_num_threads()
    try:
        results = []
        for count in (1, 4):
            tenon.set_num_threads(count)
            results.append(
                [
                    each.cpu().numpy()
                    for each in (
                        tenon.fft.fft(T(x)),
                        tenon.fft.fftn(T(x)),
                        tenon.fft.irfftn(T(x)),
                        tenon.fft.rfft(T(x.real.copy()), axis=0),
                        tenon.fft.fft(T(x.real.copy()), axis=1),
                    )
                ]
            )
        for one, four in zip(*results, strict=True):
            np.testing.assert_array_equal(one, four)
    finally:
        tenon.set_num_threads(threads)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [256, 511, 512, 513])
def test_lines_that_share_a_set_of_the_cache(n, dtype):
    """Lines about a multiple of 4096 bytes apart are copied to where they are further apart."""
    x = random(3, 21, n, dtype=dtype)
    close(tenon.fft.fft(T(x)), np.fft.fft(x), dtype)
    close(tenon.fft.irfft(T(x)), np.fft.irfft(x), dtype, REAL)
    close(tenon.fft.rfft(T(x.real.copy())), np.fft.rfft(x.real.copy()), str(x.real.dtype))
    flipped = T(x).flip([0, 1])
    close(tenon.fft.fft(flipped), np.fft.fft(x[::-1, ::-1]), dtype)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0, 4)], ids=str)
def test_empty_batches(shape):
    assert tenon.fft.fft(tenon.zeros(shape)).shape == shape
    assert tenon.fft.rfft(tenon.zeros(shape)).shape == (*shape[:-1], 3)
    assert tenon.fft.irfft(tenon.zeros(shape)).shape == (*shape[:-1], 6)


def test_other_dtypes():
    assert tenon.fft.fft(T([1, 2, 3])).dtype == tenon.complex64
    assert tenon.fft.rfft(T([True, False])).cpu().numpy().tolist() == [1, 1]
    assert tenon.fft.irfft(T([1, 2, 3])).dtype == tenon.float32
    with pytest.raises(TypeError, match="expected one of float32, float64, got float16"):
        tenon.fft.fft(tenon.zeros([4], dtype="float16"))
    with pytest.raises(TypeError, match=r"rfft\(\): expected real numbers, got .*complex64"):
        tenon.fft.rfft(tenon.zeros([4], dtype="complex64"))


def test_meta_says_the_same_shapes():
    x = random(3, 10, dtype="complex64")
    for name in ("fft", "irfft", "fftn", "irfft2"):
        function = getattr(tenon.fft, name)
        got, want = function(T(x).to("meta")), function(T(x))
        assert (got.shape, got.dtype) == (want.shape, want.dtype)


def test_what_does_not_fit_is_refused():
    x = tenon.zeros([3, 4])
    for call, error, text in [
        (
            lambda: tenon.fft.fft(x, 0),
            ValueError,
            r"fft\(\): expected lengths of at least 1, got 0",
        ),
        (lambda: tenon.fft.fft(x, axis=2), IndexError, r"fft\(\): expected an axis from -2 to 1"),
        (lambda: tenon.fft.fft(x, norm="x"), ValueError, "expected norm 'backward', 'ortho' or"),
        (lambda: tenon.fft.fft(T(1.0)), ValueError, "expected at least one axis, got a 0-d tensor"),
        (lambda: tenon.fft.fft([1.0]), TypeError, r"expected a tensor, got list; convert it with"),
        (lambda: tenon.fft.fftn(x, axes=(0, 0)), ValueError, r"expected different axes"),
        (lambda: tenon.fft.fftn(x, (2,), (0, 1)), ValueError, "expected a length for each axis"),
        (lambda: tenon.fft.irfft(tenon.zeros([1])), ValueError, "result of at least 1 element"),
        (
            lambda: tenon.fft.fft(tenon.zeros([2, 0])),
            ValueError,
            "at least one element along axis 1",
        ),
        (lambda: tenon.fft.rfftn(x, axes=()), ValueError, "expected at least one axis, got none"),
    ]:
        with pytest.raises(error, match=text):
            call()


# -- helpers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_frequencies_and_shifts(n):
    for d in (1.0, 0.1):
        for name in ("fftfreq", "rfftfreq"):
            got = getattr(tenon.fft, name)(n, d=d, dtype="float64")
            np.testing.assert_array_equal(got.cpu().numpy(), getattr(np.fft, name)(n, d))
    assert tenon.fft.fftfreq(n).dtype == tenon.float32
    x = random(n, 3)
    for axes in (None, 0, (1,), (0, 1)):
        for name in ("fftshift", "ifftshift"):
            got = getattr(tenon.fft, name)(T(x), axes=axes)
            np.testing.assert_array_equal(got.cpu().numpy(), getattr(np.fft, name)(x, axes))
    with pytest.raises(ValueError, match=r"fftfreq\(\): expected n of at least 1, got 0"):
        tenon.fft.fftfreq(0)


# -- gradients ---------------------------------------------------------------------------------------


def loss(result, seed):
    weights = T(random(*result.shape, dtype="complex128", seed=seed))
    return tenon.real(result * weights).sum() + tenon.real(result * result * weights).sum() / 3


FUNCTIONS = [
    lambda x: tenon.fft.fft(x),
    lambda x: tenon.fft.ifft(x, 7, 0, "ortho"),
    lambda x: tenon.fft.fftn(x, (3, 5)),
    lambda x: tenon.fft.irfft(x),
    lambda x: tenon.fft.irfft(x, 7),
    lambda x: tenon.fft.irfftn(x, norm="forward"),
    lambda x: tenon.fft.hfft(x, 5, 0),
    lambda x: tenon.fft.hfftn(x, (4, 9)),
]
OF_REAL = [
    lambda x: tenon.fft.rfft(x),
    lambda x: tenon.fft.rfft(x, 5, 0),
    lambda x: tenon.fft.rfftn(x, (4, 7)),
    lambda x: tenon.fft.rfft2(x, norm="ortho"),
    lambda x: tenon.fft.ihfftn(x),
]


@pytest.mark.parametrize(
    "index, dtype",
    [(i, d) for i in range(len(FUNCTIONS)) for d in ("float64", "complex128")]
    + [(i + len(FUNCTIONS), "float64") for i in range(len(OF_REAL))],
)
def test_first_and_second_derivatives(index, dtype):
    function = (FUNCTIONS + OF_REAL)[index]
    x, d = random(4, 6, dtype=dtype), random(4, 6, dtype=dtype, seed=1)
    weights = T(random(4, 6, dtype=dtype, seed=2))

    def first(x, create_graph=False):
        leaf = T(x, requires_grad=True)
        return leaf, tenon.grad(loss(function(leaf), 3), leaf, create_graph=create_graph)[0]

    def slope(value):
        return (value(x + 1e-5 * d) - value(x - 1e-5 * d)) / 2e-5

    leaf, gradient = first(x, create_graph=True)
    want = slope(lambda x: loss(function(T(x)), 3).item())
    assert abs(np.sum(np.conj(gradient.detach().cpu().numpy()) * d).real - want) <= 1e-6 * max(
        1, abs(want)
    )
    (second,) = tenon.grad(tenon.real(gradient * weights).sum(), leaf)
    want = slope(lambda x: tenon.real(first(x)[1] * weights).sum().item())
    assert abs(np.sum(np.conj(second.detach().cpu().numpy()) * d).real - want) <= 1e-6 * max(
        1, abs(want)
    )
