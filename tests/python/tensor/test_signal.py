# SPDX-License-Identifier: Apache-2.0
"""tenon.signal against SciPy's windows and sums written out with NumPy."""

import numpy as np
import pytest
import scipy.signal
import tenon

T = tenon.tensor


def random(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett"])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 16])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows_equal_scipy(name, length, periodic):
    got = getattr(tenon.signal, f"{name}_window")(length, periodic, dtype="float64")
    want = getattr(scipy.signal.windows, name)(length, sym=not periodic)
    np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=1e-15)
    assert getattr(tenon.signal, f"{name}_window")(length).dtype == tenon.float32


@pytest.mark.parametrize("beta", [0.0, 2.0, 12.0, 60.0])
@pytest.mark.parametrize("periodic", [True, False])
def test_kaiser_window_equals_scipy(beta, periodic):
    for length in (1, 8, 33):
        got = tenon.signal.kaiser_window(length, periodic, beta, dtype="float64")
        want = scipy.signal.windows.kaiser(length, beta, sym=not periodic)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-13, atol=1e-13)


def test_frames_and_their_adjoint():
    x = random(2, 11)
    frames = tenon.signal.frame(T(x), 4, 3)
    want = np.stack([x[:, i : i + 4] for i in (0, 3, 6)], -1)
    np.testing.assert_array_equal(frames.numpy(), want)
    total = tenon.signal.overlap_add(frames, 3).numpy()
    np.testing.assert_allclose(total[:, :3], x[:, :3])
    np.testing.assert_allclose(total[:, 3], 2 * x[:, 3])
    assert total.shape == (2, 10)
    with pytest.raises(ValueError, match=r"\[overlap_add\] expected at least one frame"):
        tenon.signal.overlap_add(T(x), 0)


def reference_stft(x, n_fft, hop, window):
    starts = range(0, x.shape[-1] - n_fft + 1, hop)
    frames = np.stack([x[..., s : s + n_fft] * window for s in starts], -1)
    return np.fft.rfft(frames, axis=-2)


@pytest.mark.parametrize("n_fft, hop", [(8, 2), (9, 3), (16, 5)])
@pytest.mark.parametrize("center", [True, False])
def test_stft(n_fft, hop, center):
    x, window = random(2, 50), abs(random(n_fft)) + 0.1
    got = tenon.signal.stft(T(x), n_fft, hop, window=T(window), center=center)
    if center:
        x = np.pad(x, [(0, 0), (n_fft // 2, n_fft // 2)], mode="reflect")
    np.testing.assert_allclose(got.numpy(), reference_stft(x, n_fft, hop, window), atol=1e-12)


def test_parameters_of_stft():
    x, window = T(random(40)), T(abs(random(6)) + 0.1)
    short = tenon.signal.stft(x, 8, 2, 6, window)
    padded = tenon.signal.stft(x, 8, 2, window=tenon.pad(window, [1, 1]))
    np.testing.assert_array_equal(short.numpy(), padded.numpy())
    normalized = tenon.signal.stft(x, 8, 2, 6, window, normalized=True)
    np.testing.assert_allclose(normalized.numpy(), short.numpy() / np.sqrt(8))
    both = tenon.signal.stft(x, 8, 2, 6, window, onesided=False)
    assert both.shape == (8, 21)
    np.testing.assert_allclose(both.numpy()[:5], short.numpy(), atol=1e-12)
    np.testing.assert_allclose(both.numpy()[5:], short.numpy()[3:0:-1].conj(), atol=1e-12)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("kind", ["onesided", "twosided", "complex"])
def test_istft_gives_the_signal_back(kind, normalized, center):
    x = random(3, 64) + (1j * random(3, 64, seed=1) if kind == "complex" else 0)
    window = tenon.signal.hamming_window(16, dtype="float64")
    options = dict(window=window, center=center, normalized=normalized)
    onesided = kind == "onesided"
    spectra = tenon.signal.stft(T(x), 16, 4, onesided=onesided, **options)
    back = tenon.signal.istft(
        spectra, 16, 4, onesided=onesided, return_complex=kind == "complex", **options
    )
    np.testing.assert_allclose(back.numpy(), x[:, : back.shape[-1]], atol=1e-12)
    assert back.shape[-1] == 64
    for length in (50, 70):
        back = tenon.signal.istft(
            spectra,
            16,
            4,
            onesided=onesided,
            length=length,
            return_complex=kind == "complex",
            **options,
        ).numpy()
        assert back.shape == (3, length)
        np.testing.assert_allclose(back[:, :50], x[:, :50], atol=1e-12)
        assert not back[:, 64 + (8 if center else 0) :].any()


def test_gradients_pass_through_both():
    x = T(random(40), requires_grad=True)
    weights = T(random(5, 21))

    def loss(x):
        spectra = tenon.signal.stft(x, 8, 2, window=tenon.signal.hann_window(8, dtype="float64"))
        return (tenon.abs(spectra) ** 2 * weights).sum()

    (gradient,) = tenon.grad(loss(x), x)
    d = random(40, seed=1)
    at = x.detach().numpy()
    want = (loss(T(at + 1e-6 * d)).item() - loss(T(at - 1e-6 * d)).item()) / 2e-6
    assert abs(np.sum(gradient.numpy() * d) - want) < 1e-5 * abs(want)

    window = tenon.signal.hamming_window(8, dtype="float64")
    spectra = tenon.signal.stft(x, 8, 2, window=window)
    back = tenon.signal.istft(spectra, 8, 2, window=window)
    (gradient,) = tenon.grad((back * T(random(40, seed=2))).sum(), x)
    np.testing.assert_allclose(gradient.numpy(), random(40, seed=2), atol=1e-10)


def test_what_does_not_fit_is_refused():
    x = tenon.zeros([20])
    for call, text in [
        (lambda: tenon.signal.stft(x, 32, center=False), "at least n_fft = 32 elements, got 20"),
        (lambda: tenon.signal.stft(x, 8, 0), "n_fft and hop_length of at least 1"),
        (lambda: tenon.signal.stft(x, 8, 2, 9), "expected win_length from 1 to n_fft = 8, got 9"),
        (lambda: tenon.signal.stft(x, 8, window=tenon.ones([5])), r"window of shape \(8,\)"),
        (
            lambda: tenon.signal.stft(x.to("complex64"), 8, onesided=True),
            "expected a real signal and window",
        ),
        (lambda: tenon.signal.istft(x, 8), r"complex numbers of shape \(..., 5, frames\)"),
        (
            lambda: tenon.signal.istft(
                tenon.zeros([5, 4], dtype="complex64"), 8, 8, window=tenon.signal.hann_window(8)
            ),
            "windows that overlap without gaps",
        ),
        (lambda: tenon.signal.hann_window(-1), "a length of at least 0, got -1"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()
