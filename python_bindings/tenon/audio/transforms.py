# SPDX-License-Identifier: Apache-2.0
"""Functions of waveforms as modules, which keep windows and filters as buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import Tensor, nn, signal

from . import functional as F

Window = Callable[..., Tensor]


class Spectrogram(nn.Module):
    """Waveforms [..., time] to magnitudes [..., n_fft / 2 + 1, frames] to the power `power`."""

    def __init__(
        self,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window_fn: Window = signal.hann_window,
        power: float | None = 2.0,
        normalized: bool | str = False,
        wkwargs: dict[str, Any] | None = None,
        center: bool = True,
        pad_mode: str = "reflect",
        onesided: bool = True,
    ) -> None:
        self.n_fft, self.win_length = n_fft, n_fft if win_length is None else win_length
        self.hop_length = self.win_length // 2 if hop_length is None else hop_length
        self.window = nn.Buffer(window_fn(self.win_length, **(wkwargs or {})))
        self.pad, self.power, self.normalized = pad, power, normalized
        self.center, self.pad_mode, self.onesided = center, pad_mode, onesided

    def forward(self, waveform: Tensor) -> Tensor:
        return F.spectrogram(
            waveform,
            self.pad,
            self.window,
            self.n_fft,
            self.hop_length,
            self.win_length,
            self.power,
            self.normalized,
            self.center,
            self.pad_mode,
            self.onesided,
        )


class MelScale(nn.Module):
    """Spectrograms [..., n_stft, frames] to [..., n_mels, frames]."""

    def __init__(
        self,
        n_mels: int = 128,
        sample_rate: int = 16000,
        f_min: float = 0.0,
        f_max: float | None = None,
        n_stft: int = 201,
        norm: str | None = None,
        mel_scale: str = "htk",
    ) -> None:
        f_max = float(sample_rate // 2) if f_max is None else f_max
        self.fb = nn.Buffer(
            F.melscale_fbanks(n_stft, f_min, f_max, n_mels, sample_rate, norm, mel_scale)
        )

    def forward(self, spectrogram: Tensor) -> Tensor:
        if spectrogram.ndim < 2 or spectrogram.shape[-2] != self.fb.shape[0]:
            raise ValueError(
                f"MelScale: expected {self.fb.shape[0]} frequencies in the last axis but one, got shape "
                f"{tuple(spectrogram.shape)}; set n_stft to n_fft / 2 + 1"
            )
        return self.fb.mT @ spectrogram


class MelSpectrogram(nn.Module):
    """Waveforms [..., time] to mel spectrograms [..., n_mels, frames]."""

    def __init__(
        self,
        sample_rate: int = 16000,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        f_min: float = 0.0,
        f_max: float | None = None,
        pad: int = 0,
        n_mels: int = 128,
        window_fn: Window = signal.hann_window,
        power: float = 2.0,
        normalized: bool | str = False,
        wkwargs: dict[str, Any] | None = None,
        center: bool = True,
        pad_mode: str = "reflect",
        norm: str | None = None,
        mel_scale: str = "htk",
    ) -> None:
        self.spectrogram = Spectrogram(
            n_fft,
            win_length,
            hop_length,
            pad,
            window_fn,
            power,
            normalized,
            wkwargs,
            center,
            pad_mode,
        )
        self.mel_scale = MelScale(
            n_mels, sample_rate, f_min, f_max, n_fft // 2 + 1, norm, mel_scale
        )

    def forward(self, waveform: Tensor) -> Tensor:
        return self.mel_scale(self.spectrogram(waveform))


class AmplitudeToDB(nn.Module):
    """Powers (`stype` 'power') or amplitudes ('magnitude') to decibels."""

    def __init__(self, stype: str = "power", top_db: float | None = None) -> None:
        if stype not in ("power", "magnitude"):
            raise ValueError(f"AmplitudeToDB: expected stype 'power' or 'magnitude', got {stype!r}")
        if top_db is not None and top_db < 0:
            raise ValueError(f"AmplitudeToDB: expected top_db of at least 0, got {top_db}")
        self.multiplier, self.top_db = 10.0 if stype == "power" else 20.0, top_db

    def forward(self, x: Tensor) -> Tensor:
        return F.amplitude_to_db(x, self.multiplier, top_db=self.top_db)


class MFCC(nn.Module):
    """Waveforms [..., time] to cepstral coefficients [..., n_mfcc, frames] of the mel
    spectrogram."""

    def __init__(
        self,
        sample_rate: int = 16000,
        n_mfcc: int = 40,
        norm: str | None = "ortho",
        log_mels: bool = False,
        melkwargs: dict[str, Any] | None = None,
    ) -> None:
        settings = melkwargs or {}
        n_mels = settings.get("n_mels", 128)
        if n_mfcc > n_mels:
            raise ValueError(f"MFCC: expected n_mfcc of at most n_mels {n_mels}, got {n_mfcc}")
        self.mel_spectrogram = MelSpectrogram(sample_rate, **settings)
        self.amplitude_to_db = AmplitudeToDB("power", 80.0)
        self.dct_mat = nn.Buffer(F.create_dct(n_mfcc, n_mels, norm))
        self.log_mels = log_mels

    def forward(self, waveform: Tensor) -> Tensor:
        mel = self.mel_spectrogram(waveform)
        level = tenon.log(mel + 1e-6) if self.log_mels else self.amplitude_to_db(mel)
        return self.dct_mat.mT @ level


class Resample(nn.Module):
    """Waveforms at `new_freq` instead of `orig_freq` samples per second."""

    def __init__(
        self,
        orig_freq: int = 16000,
        new_freq: int = 16000,
        resampling_method: str = "sinc_interp_hann",
        lowpass_filter_width: int = 6,
        rolloff: float = 0.99,
        beta: float | None = None,
    ) -> None:
        self.settings = (orig_freq, new_freq, lowpass_filter_width, rolloff, resampling_method)
        self.beta = 14.769656459379492 if beta is None else beta

    def forward(self, waveform: Tensor) -> Tensor:
        return F.resample(waveform, *self.settings, self.beta)


class GriffinLim(nn.Module):
    """Spectrograms [..., n_fft / 2 + 1, frames] to waveforms with about these magnitudes."""

    def __init__(
        self,
        n_fft: int = 400,
        n_iter: int = 32,
        win_length: int | None = None,
        hop_length: int | None = None,
        window_fn: Window = signal.hann_window,
        power: float = 2.0,
        momentum: float = 0.99,
        length: int | None = None,
    ) -> None:
        self.n_fft, self.win_length = n_fft, n_fft if win_length is None else win_length
        self.hop_length = self.win_length // 2 if hop_length is None else hop_length
        self.window = nn.Buffer(window_fn(self.win_length))
        self.settings = (power, n_iter, momentum, length)

    def forward(self, magnitudes: Tensor) -> Tensor:
        return F.griffin_lim(
            magnitudes, self.window, self.n_fft, self.hop_length, self.win_length, *self.settings
        )
