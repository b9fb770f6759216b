# SPDX-License-Identifier: Apache-2.0
"""Sound: spectrograms, mel scales, cepstra, resampling, and WAV files.

Waveforms are tensors [..., time]; leading axes are channels and batches. Names and settings are
those of torchaudio, in lower case.
"""

from . import functional, transforms
from .wav import load, save

__all__ = ["functional", "load", "save", "transforms"]
