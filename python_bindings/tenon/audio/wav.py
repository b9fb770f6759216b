# SPDX-License-Identifier: Apache-2.0
"""WAV files of linear PCM, by Python's own module."""

from __future__ import annotations

import array
import sys
import wave
from pathlib import Path

import tenon
from tenon import Tensor


def load(path: str | Path) -> tuple[Tensor, int]:
    """The waveform [channels, time] of a WAV file, float32 from -1 to 1, and its sample rate in
    hertz."""
    with wave.open(str(path), "rb") as file:
        channels, width = file.getnchannels(), file.getsampwidth()
        rate, content = file.getframerate(), file.readframes(file.getnframes())
    if width not in (1, 2, 4):
        raise ValueError(
            f"load: expected samples of 8, 16 or 32 bits in {path}, got {8 * width} bits"
        )
    samples = array.array({1: "B", 2: "h", 4: "i"}[width], content)
    if sys.byteorder == "big" and width > 1:
        samples.byteswap()
    dtype = {1: tenon.uint8, 2: tenon.int16, 4: tenon.int32}[width]
    x = tenon.frombuffer(samples, dtype, [len(samples) // channels, channels]).to(tenon.float32)
    x = (x - 128) / 128 if width == 1 else x / float(2 ** (8 * width - 1))
    return x.T.contiguous(), rate


def save(path: str | Path, waveform: Tensor, sample_rate: int) -> None:
    """Writes a waveform [channels, time] or [time] from -1 to 1 as 16-bit PCM; values beyond are
    limited."""
    if waveform.ndim not in (1, 2) or not waveform.dtype.is_floating_point:
        raise ValueError(
            "save: expected a floating waveform [channels, time] or [time], got "
            f"{waveform.dtype} of shape {tuple(waveform.shape)}"
        )
    x = waveform.detach().cpu()
    x = x.unsqueeze(0) if x.ndim == 1 else x
    frames = tenon.clip(tenon.round(x.to(tenon.float64) * 32767), -32768, 32767).transpose()
    samples = array.array("h", frames.to(tenon.int16).reshape([-1]).tolist())
    if sys.byteorder == "big":
        samples.byteswap()
    with wave.open(str(path), "wb") as file:
        file.setnchannels(x.shape[0])
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())
