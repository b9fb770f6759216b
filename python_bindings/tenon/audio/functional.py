# SPDX-License-Identifier: Apache-2.0
"""Functions of waveforms [..., time] and spectrograms [..., frequencies, frames]."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor, signal
from tenon._tensor.tensors_expected import expect_tensors as _expect_tensors
from tenon.nn import functional as F


def spectrogram(
    waveform: Tensor,
    pad: int = 0,
    window: Tensor | None = None,
    n_fft: int = 400,
    hop_length: int | None = None,
    win_length: int | None = None,
    power: float | None = 2.0,
    normalized: bool | str = False,
    center: bool = True,
    pad_mode: str = "reflect",
    onesided: bool = True,
) -> Tensor:
    """Magnitudes to the power `power` of short-time transforms, [..., n_fft / 2 + 1, frames];
    complex numbers if `power` is None.

    `pad` zeros are added at both ends, the window is a periodic Hann window of `win_length` (n_fft
    by default) unless given, and frames are `hop_length` (win_length / 2 by default) apart.
    `normalized` divides by the norm of the window (True or 'window') or by the root of n_fft
    ('frame_length').
    """
    win_length = n_fft if win_length is None else win_length
    hop_length = win_length // 2 if hop_length is None else hop_length
    if window is None:
        window = signal.hann_window(win_length, dtype=waveform.dtype, device=waveform.device)
    if pad:
        waveform = tenon.pad(waveform, [*[0, 0] * (waveform.ndim - 1), pad, pad])
    result = signal.stft(
        waveform, n_fft, hop_length, win_length, window, center, pad_mode, onesided=onesided
    )
    if normalized:
        result = result / _norm(normalized, window, n_fft)
    return result if power is None else magnitude(result, power)


def _norm(normalized: bool | str, window: Tensor, n_fft: int) -> Any:
    if normalized == "frame_length":
        return math.sqrt(n_fft)
    if normalized is True or normalized == "window":
        return tenon.sqrt(tenon.square(window).sum())
    raise ValueError(
        f"spectrogram: expected normalized True, False, 'window' or 'frame_length', got {normalized!r}"
    )


def magnitude(x: Tensor, power: float = 1.0) -> Tensor:
    """`abs(x) ** power` of complex numbers. The gradient of power 2 is finite at 0."""
    square = tenon.square(tenon.real(x)) + tenon.square(tenon.imag(x))
    if power == 2:
        return square
    return tenon.sqrt(square) if power == 1 else tenon.pow(square, power / 2)


def inverse_spectrogram(
    spectra: Tensor,
    length: int | None = None,
    window: Tensor | None = None,
    n_fft: int = 400,
    hop_length: int | None = None,
    win_length: int | None = None,
    normalized: bool | str = False,
    center: bool = True,
) -> Tensor:
    """The waveform whose spectrogram(power=None) is `spectra`."""
    win_length = n_fft if win_length is None else win_length
    hop_length = win_length // 2 if hop_length is None else hop_length
    if window is None:
        real = tenon.float64 if spectra.dtype == tenon.complex128 else tenon.float32
        window = signal.hann_window(win_length, dtype=real, device=spectra.device)
    if normalized:
        spectra = spectra * _norm(normalized, window, n_fft)
    return signal.istft(spectra, n_fft, hop_length, win_length, window, center, length=length)


def griffin_lim(
    magnitudes: Tensor,
    window: Tensor | None = None,
    n_fft: int = 400,
    hop_length: int | None = None,
    win_length: int | None = None,
    power: float = 2.0,
    n_iter: int = 32,
    momentum: float = 0.99,
    length: int | None = None,
) -> Tensor:
    """A waveform with about the spectrogram `magnitudes` of power `power` (Griffin and Lim, 1984;
    Perraudin et al., 2013). Phases begin at random."""
    if not 0 <= momentum < 1:
        raise ValueError(f"griffin_lim: expected momentum from 0 to below 1, got {momentum}")
    settings = (n_fft, hop_length, win_length)
    size = tenon.pow(magnitudes, 1 / power)
    phase = tenon.uniform_like(size, 0.0, 2 * math.pi)
    unit = tenon.cos(phase) + tenon.sin(phase) * tenon.tensor(1j, device=phase.device)
    before = unit * 0
    for _ in range(n_iter):
        waveform = inverse_spectrogram(unit * size, length, window, *settings)
        rebuilt = spectrogram(waveform, 0, window, *settings, power=None)
        moved = rebuilt - before * (momentum / (1 + momentum))
        unit = moved / (magnitude(moved) + 1e-16)
        before = rebuilt
    return inverse_spectrogram(unit * size, length, window, *settings)


# -- mel scale -------------------------------------------------------------------------------------


def hz_to_mel(frequency: float, mel_scale: str = "htk") -> float:
    """Frequencies in hertz on the mel scale: O'Shaughnessy's formula ('htk'), or Slaney's, which is
    linear below 1000 Hz ('slaney')."""
    if mel_scale == "htk":
        return 2595.0 * math.log10(1.0 + frequency / 700.0)
    if mel_scale != "slaney":
        raise ValueError(f"expected mel_scale 'htk' or 'slaney', got {mel_scale!r}")
    if frequency < 1000.0:
        return frequency * 3.0 / 200.0
    return 15.0 + 27.0 * math.log(frequency / 1000.0) / math.log(6.4)


def mel_to_hz(mel: float, mel_scale: str = "htk") -> float:
    """The inverse of hz_to_mel()."""
    if mel_scale == "htk":
        return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    if mel_scale != "slaney":
        raise ValueError(f"expected mel_scale 'htk' or 'slaney', got {mel_scale!r}")
    if mel < 15.0:
        return mel * 200.0 / 3.0
    return 1000.0 * math.exp(math.log(6.4) * (mel - 15.0) / 27.0)


def melscale_fbanks(
    n_freqs: int,
    f_min: float,
    f_max: float,
    n_mels: int,
    sample_rate: int,
    norm: str | None = None,
    mel_scale: str = "htk",
) -> Tensor:
    """Triangular filters [n_freqs, n_mels] that are evenly spaced on the mel scale from `f_min` to
    `f_max`.

    `norm='slaney'` gives all filters the same area. A filter that is narrower than the distance of
    two frequencies may be zero everywhere, which is an error: use fewer filters or a larger n_fft.
    """
    if norm not in (None, "slaney"):
        raise ValueError(f"melscale_fbanks: expected norm None or 'slaney', got {norm!r}")
    if not 0 <= f_min < f_max:
        raise ValueError(f"melscale_fbanks: expected 0 <= f_min < f_max, got {f_min} and {f_max}")
    low, high = hz_to_mel(f_min, mel_scale), hz_to_mel(f_max, mel_scale)
    points = [
        mel_to_hz(low + (high - low) * i / (n_mels + 1), mel_scale) for i in range(n_mels + 2)
    ]
    frequencies = tenon.linspace(0.0, sample_rate // 2, n_freqs, dtype=tenon.float64)
    at = tenon.tensor(points, dtype=tenon.float64)
    width = at[1:] - at[:-1]
    offset = at - frequencies.unsqueeze(-1)  # [n_freqs, n_mels + 2]
    rising, falling = -offset[:, :-2] / width[:-1], offset[:, 2:] / width[1:]
    filters = tenon.clip(tenon.minimum(rising, falling), 0.0, None)
    if norm == "slaney":
        filters = filters * (2.0 / (at[2:] - at[:-2]))
    empty = tenon.nonzero(tenon.max(filters, 0) == 0).reshape([-1]).tolist()
    if empty:
        raise ValueError(
            f"melscale_fbanks: expected filters that each cover a frequency, but {len(empty)} of "
            f"{n_mels} are empty (the first is number {empty[0]}); use fewer filters than {n_mels} or "
            f"more frequencies than {n_freqs}"
        )
    return filters.to(tenon.float32)


def create_dct(n_mfcc: int, n_mels: int, norm: str | None = "ortho") -> Tensor:
    """The matrix [n_mels, n_mfcc] of the discrete cosine transform of type 2; orthonormal for
    'ortho'."""
    if norm not in (None, "ortho"):
        raise ValueError(f"create_dct: expected norm None or 'ortho', got {norm!r}")
    n = tenon.arange(n_mels).to(tenon.float64).unsqueeze(-1)
    k = tenon.arange(n_mfcc).to(tenon.float64)
    matrix = tenon.cos(math.pi / n_mels * (n + 0.5) * k)
    if norm is None:
        return (2 * matrix).to(tenon.float32)
    scale = tenon.where(k == 0, math.sqrt(1 / n_mels), math.sqrt(2 / n_mels))
    return (matrix * scale).to(tenon.float32)


# -- levels ----------------------------------------------------------------------------------------


def amplitude_to_db(
    x: Tensor,
    multiplier: float = 10.0,
    amin: float = 1e-10,
    ref: float = 1.0,
    top_db: float | None = None,
) -> Tensor:
    """Decibels: `multiplier * log10(max(x, amin) / ref)`; the multiplier is 10 for powers and 20
    for amplitudes. `top_db` limits how far values of a spectrogram lie below its maximum, over its
    last three axes together."""
    level = multiplier * (tenon.log10(tenon.clip(x, amin, None)) - math.log10(max(amin, ref)))
    if top_db is None:
        return level
    axes = list(range(-min(x.ndim, 3), 0))
    return tenon.maximum(level, tenon.max(level, axes, keepdim=True) - top_db)


def db_to_amplitude(x: Tensor, ref: float = 1.0, power: float = 1.0) -> Tensor:
    """Powers of decibels if `power` is 1, amplitudes if it is 0.5."""
    return ref * tenon.pow(tenon.pow(10.0, 0.1 * x), power)


def mu_law_encoding(x: Tensor, quantization_channels: int = 256) -> Tensor:
    """Values from -1 to 1 as whole numbers of a logarithmic scale (ITU-T G.711), int64."""
    mu = quantization_channels - 1.0
    scaled = tenon.sign(x) * tenon.log1p(mu * tenon.abs(x)) / math.log1p(mu)
    return tenon.floor((scaled + 1) / 2 * mu + 0.5).to(tenon.int64)


def mu_law_decoding(x: Tensor, quantization_channels: int = 256) -> Tensor:
    """Values from -1 to 1 of whole numbers that mu_law_encoding() made, float32."""
    mu = quantization_channels - 1.0
    scaled = x.to(tenon.float32) / mu * 2 - 1
    return tenon.sign(scaled) * tenon.expm1(tenon.abs(scaled) * math.log1p(mu)) / mu


def preemphasis(waveform: Tensor, coeff: float = 0.97) -> Tensor:
    """Every sample less `coeff` times the one before it."""
    before = tenon.pad(waveform, [*[0, 0] * (waveform.ndim - 1), 1, -1])
    return waveform - coeff * before


def compute_deltas(x: Tensor, win_length: int = 5) -> Tensor:
    """Slopes along the last axis by least squares over `win_length` values; the ends are
    repeated."""
    if win_length < 3 or win_length % 2 == 0:
        raise ValueError(
            f"compute_deltas: expected an odd win_length of at least 3, got {win_length}"
        )
    half = win_length // 2
    padded = tenon.pad(x, [*[0, 0] * (x.ndim - 1), half, half], "edge")
    weights = tenon.arange(-half, half + 1, dtype=x.dtype, device=x.device)
    weights = weights / (half * (half + 1) * (2 * half + 1) / 3)
    return tenon.sliding_window(padded, -1, win_length) @ weights


# -- resampling ------------------------------------------------------------------------------------


def resample(
    waveform: Tensor,
    orig_freq: int,
    new_freq: int,
    lowpass_filter_width: int = 6,
    rolloff: float = 0.99,
    resampling_method: str = "sinc_interp_hann",
    beta: float = 14.769656459379492,
) -> Tensor:
    """The waveform at `new_freq` instead of `orig_freq` samples per second, [..., ceil(time new /
    orig)].

    Samples are weighted by a sinc function of `lowpass_filter_width` zero crossings on each side,
    under a Hann window, or a Kaiser window of `beta` for 'sinc_interp_kaiser'. `rolloff` is the
    highest frequency that passes, as a share of half the lower rate.
    """
    if orig_freq < 1 or new_freq < 1 or orig_freq != int(orig_freq) or new_freq != int(new_freq):
        raise ValueError(
            f"resample: expected rates that are whole and positive, got {orig_freq} and {new_freq}"
        )
    if resampling_method not in ("sinc_interp_hann", "sinc_interp_kaiser"):
        raise ValueError(
            "resample: expected resampling_method 'sinc_interp_hann' or 'sinc_interp_kaiser', got "
            f"{resampling_method!r}"
        )
    common = math.gcd(int(orig_freq), int(new_freq))
    old, new = int(orig_freq) // common, int(new_freq) // common
    if old == new:
        return waveform
    # Every `old` samples give `new`: one filter for each of these, applied with stride `old`.
    cutoff = min(old, new) * rolloff
    width = math.ceil(lowpass_filter_width * old / cutoff)
    old_times = tenon.arange(-width, width + old).to(tenon.float64) / old
    new_times = tenon.arange(new).to(tenon.float64) / new
    t = tenon.clip(
        (old_times - new_times.unsqueeze(-1)) * cutoff, -lowpass_filter_width, lowpass_filter_width
    )
    if resampling_method == "sinc_interp_hann":
        window = tenon.square(tenon.cos(t * (math.pi / 2 / lowpass_filter_width)))
    else:
        inside = tenon.clip(1 - tenon.square(t / lowpass_filter_width), 0.0, None)
        peak = tenon.i0(tenon.full([], beta, dtype=tenon.float64))
        window = tenon.i0(beta * tenon.sqrt(inside)) / peak
    filters = (tenon.sinc(t) * window * (cutoff / old)).to(waveform.dtype).to(waveform.device)
    length = waveform.shape[-1]
    x = waveform.reshape([-1, 1, length])
    x = tenon.pad(x, [0, 0, 0, 0, width, width + old])
    y = F.conv1d(x, filters.unsqueeze(1), stride=old)  # [rows, new, blocks]
    y = y.transpose(1, 2).reshape([x.shape[0], -1])[:, : math.ceil(new * length / old)]
    return y.reshape([*waveform.shape[:-1], y.shape[-1]])


_expect_tensors(globals())
