# SPDX-License-Identifier: Apache-2.0
"""Functions of sound beside SciPy.

    python -m tests.fuzz.peers.audio [--minutes 5] [--seed 0]

Random waveforms in float64, and in float32 with wider bounds. What SciPy has no function for is asked of a
formula in NumPy. SciPy comes from an environment outside the repository.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.fft
import scipy.signal
import tenon
from tenon import signal
from tenon.audio import functional as F

from .beside import Comparison, main, pick

KNOWN: dict[str, str] = {}

_WINDOWS = {
    "hann": signal.hann_window,
    "hamming": signal.hamming_window,
    "blackman": signal.blackman_window,
    "bartlett": signal.bartlett_window,
}


def _frames(x: np.ndarray, window: np.ndarray, n_fft: int, hop: int, mode: Any) -> np.ndarray:
    """The short-time transform of centred frames, [..., frequencies, frames]."""
    left = (n_fft - window.size) // 2
    window = np.pad(window, (left, n_fft - window.size - left))
    x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], mode)
    pieces = np.lib.stride_tricks.sliding_window_view(x, n_fft, -1)[..., ::hop, :]
    return np.moveaxis(scipy.fft.rfft(pieces * window), -1, -2)


def _mel(f: np.ndarray, scale: str) -> np.ndarray:
    if scale == "htk":
        return 2595 * np.log10(1 + f / 700)
    return np.where(f < 1000, f * 3 / 200, 15 + 27 * np.log(np.maximum(f, 1) / 1000) / np.log(6.4))


def _triangles(n_freqs: int, low: float, high: float, count: int, rate: int, scale: str):
    """Filters by interpolation between their corners, which are found by bisection."""
    grid = np.linspace(0, high * 1.01 + 1, 2_000_001)
    first, last = _mel(np.array([low, high]), scale)
    marks = np.linspace(first, last, count + 2)
    corners = np.interp(marks, _mel(grid, scale), grid)
    at = np.linspace(0, rate // 2, n_freqs)
    return np.stack(
        [np.interp(at, corners[i : i + 3], [0, 1, 0], 0, 0) for i in range(count)], axis=-1
    )


def draw(rng: np.random.Generator) -> Iterator[Comparison]:
    """One comparison of each kind."""
    dtype = pick(rng, ["float64", "float32"])
    rtol, atol = (1e-7, 1e-9) if dtype == "float64" else (2e-4, 2e-4)
    length = int(rng.integers(40, 400))
    lead = ((), (2,), (1, 3))[rng.integers(3)]
    wave = rng.standard_normal((*lead, length)).astype(dtype)
    x, about = tenon.tensor(wave), f"{dtype} {(*lead, length)}"

    name = str(pick(rng, list(_WINDOWS)))
    count, periodic = int(rng.integers(1, 60)), bool(rng.random() < 0.5)
    yield Comparison(
        f"window {name}",
        f"{count} {periodic}",
        lambda: _WINDOWS[name](count, periodic, dtype="float64").numpy(),
        lambda: scipy.signal.get_window(name, count, periodic),
        1e-9,
        1e-12,
    )
    beta = float(rng.uniform(0, 20))
    yield Comparison(
        "window kaiser",
        f"{count} {periodic} {beta}",
        lambda: signal.kaiser_window(count, periodic, beta, dtype="float64").numpy(),
        lambda: scipy.signal.get_window(("kaiser", beta), count, periodic),
        1e-9,
        1e-12,
    )

    n_fft = int(rng.integers(8, 40))
    win = int(rng.integers(4, n_fft + 1))
    hop = int(rng.integers(1, win + 1))
    window = scipy.signal.get_window("hann", win)
    mode = str(pick(rng, ["reflect", "constant"]))
    power = pick(rng, [None, 1.0, 2.0, 0.5])
    scaled = pick(rng, [False, True, "window", "frame_length"])

    def spectra() -> np.ndarray:
        result = _frames(wave.astype(np.float64), window, n_fft, hop, mode)
        if scaled:
            norm = n_fft if scaled == "frame_length" else (window**2).sum()
            result = result / np.sqrt(norm)
        return result if power is None else np.abs(result) ** power

    settings = (0, None, n_fft, hop, win, power, scaled, True, mode)
    yield Comparison(
        "spectrogram",
        f"{about} {settings}",
        lambda: F.spectrogram(x, *settings).numpy(),
        spectra,
        rtol,
        atol * 10,
    )
    overlap = max(win // 2, 1)
    yield Comparison(
        "inverse_spectrogram",
        f"{about} {n_fft} {overlap} {win}",
        lambda: F.inverse_spectrogram(
            F.spectrogram(x, 0, None, n_fft, overlap, win, None), length, None, n_fft, overlap, win
        ).numpy()[..., n_fft : -n_fft or None],
        lambda: wave[..., n_fft : -n_fft or None],
        rtol,
        atol * 10,
    )

    n_mels = int(rng.integers(2, 60))
    n_mfcc = int(rng.integers(1, n_mels + 1))
    norm = pick(rng, [None, "ortho"])
    # SciPy's matrix is that of a DCT of the unit vectors.
    yield Comparison(
        "create_dct",
        f"{n_mfcc} {n_mels} {norm}",
        lambda: F.create_dct(n_mfcc, n_mels, norm).numpy(),
        lambda: scipy.fft.dct(np.eye(n_mels), axis=-1, norm=norm)[:, :n_mfcc],
        1e-5,
        1e-6,
    )
    rate = int(pick(rng, [8000, 16000, 22050, 44100]))
    low = float(rng.uniform(0, 200))
    high = float(rng.uniform(rate / 4, rate / 2))
    scale, filters = str(pick(rng, ["htk", "slaney"])), int(rng.integers(2, 14))
    n_freqs = int(rng.integers(200, 600))
    yield Comparison(
        "melscale_fbanks",
        f"{n_freqs} {low} {high} {filters} {rate} {scale}",
        lambda: F.melscale_fbanks(n_freqs, low, high, filters, rate, None, scale).numpy(),
        lambda: _triangles(n_freqs, low, high, filters, rate, scale),
        1e-3,
        2e-4,
    )

    yield Comparison(
        "preemphasis",
        about,
        lambda: F.preemphasis(x, 0.9).numpy(),
        lambda: scipy.signal.lfilter([1, -0.9], [1], wave),
        rtol,
        atol,
    )
    width = 2 * int(rng.integers(1, 8)) + 1
    yield Comparison(
        "compute_deltas",
        f"{about} {width}",
        lambda: F.compute_deltas(x, width).numpy(),
        # Slopes of lines; the ends are repeated values.
        lambda: scipy.signal.savgol_filter(wave, width, 1, deriv=1, mode="nearest"),
        rtol,
        atol,
    )
    channels = int(rng.integers(2, 1000))
    inside = np.clip(wave, -1, 1)

    def law() -> np.ndarray:
        mu = channels - 1.0
        y = np.sign(inside) * np.log1p(mu * np.abs(inside.astype(np.float64))) / np.log1p(mu)
        return np.floor((y + 1) / 2 * mu + 0.5)

    yield Comparison(
        "mu_law_encoding",
        f"{about} {channels}",
        lambda: F.mu_law_encoding(tenon.tensor(inside), channels).numpy(),
        law,
        0.0,
        0.0 if dtype == "float64" else 1.0,
    )
    yield Comparison(
        "amplitude_to_db",
        about,
        lambda: F.amplitude_to_db(x.square(), top_db=30.0).numpy(),
        lambda: np.maximum(
            level := 10 * np.log10(np.maximum(wave.astype(np.float64) ** 2, 1e-10)),
            level.max() - 30,
        ),
        rtol,
        max(atol, 1e-6) * 10,
    )
    old, new = (int(each) for each in rng.integers(1, 30, size=2))
    slow = np.sin(np.arange(length) * 0.2 * min(old, new) / old + 1.0).astype(dtype)
    # Where the filter reaches beyond neither end.
    margin = int(26 * max(old / new, 1))
    inner = slice(margin * new // old + 1, (length - margin) * new // old)
    yield Comparison(
        "resample",
        f"{dtype} {length} {old} {new}",
        # A slow wave is what it is at any rate; the filter's ripple bounds how exactly.
        lambda: F.resample(tenon.tensor(slow), old, new, 24).numpy()[inner],
        lambda: np.sin(np.arange(-(-length * new // old)) * 0.2 * min(old, new) / new + 1.0)[inner],
        0.0,
        1e-2,
    )


if __name__ == "__main__":
    main(draw, KNOWN)
