# SPDX-License-Identifier: Apache-2.0
"""tenon.audio against SciPy, formulas written out with NumPy, and exact values."""

import math
import wave

import numpy as np
import pytest
import scipy.fft
import scipy.signal
import tenon
from tenon import audio
from tenon.audio import functional as F

RATE = 8000
RNG = np.random.default_rng(0)
T = tenon.tensor


def tone(hertz, seconds=0.5, rate=RATE):
    return np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)


@pytest.mark.parametrize("power", [None, 1.0, 2.0])
def test_spectrograms(power):
    x = RNG.normal(size=(2, 300))
    got = F.spectrogram(T(x), n_fft=64, hop_length=16, power=power, center=False)
    frames = np.stack([x[:, i : i + 64] for i in range(0, 300 - 63, 16)], -1)
    window = scipy.signal.windows.hann(64, sym=False)
    want = np.fft.rfft(frames * window[:, None], axis=1)
    want = want if power is None else np.abs(want) ** power
    np.testing.assert_allclose(got.numpy(), want, atol=1e-11)
    normalized = F.spectrogram(
        T(x), n_fft=64, hop_length=16, power=1.0, normalized=True, center=False
    )
    np.testing.assert_allclose(
        normalized.numpy() * np.sqrt((window**2).sum()),
        np.abs(np.fft.rfft(frames * window[:, None], axis=1)),
        atol=1e-11,
    )
    assert F.spectrogram(T(x), pad=5, n_fft=64).shape == (2, 33, 310 // 32 + 1)


def test_spectra_give_the_waveform_back():
    x = T(RNG.normal(size=(2, 400)))
    spectra = F.spectrogram(x, n_fft=64, hop_length=16, power=None, normalized=True)
    back = F.inverse_spectrogram(spectra, 400, n_fft=64, hop_length=16, normalized=True)
    np.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-10)


def test_griffin_lim_finds_a_waveform_of_the_magnitudes():
    tenon.manual_seed(0)
    x = T(tone(440) + 0.5 * tone(1200))
    settings = {"n_fft": 256, "hop_length": 64}
    size = F.spectrogram(x, **settings, power=1.0)
    found = F.griffin_lim(size, **settings, power=1.0, length=x.shape[0])
    again = F.spectrogram(found, **settings, power=1.0)
    assert ((again - size).square().sum() / size.square().sum()).item() < 0.02


@pytest.mark.parametrize("scale", ["htk", "slaney"])
def test_mel_scale(scale):
    for hertz in (0.0, 440.0, 1000.0, 7000.0):
        assert abs(F.mel_to_hz(F.hz_to_mel(hertz, scale), scale) - hertz) < 1e-9
    assert F.hz_to_mel(1000.0, "slaney") == 15.0
    assert abs(F.hz_to_mel(1000.0, "htk") - 999.9855) < 1e-3
    bank = F.melscale_fbanks(201, 0.0, 4000.0, 20, RATE, None, scale).numpy()
    points = [F.mel_to_hz(F.hz_to_mel(4000.0, scale) * i / 21, scale) for i in range(22)]
    frequencies = np.linspace(0, 4000, 201)
    for i in range(20):
        want = np.interp(frequencies, points[i : i + 3], [0, 1, 0], 0, 0)
        np.testing.assert_allclose(bank[:, i], want, atol=1e-6)
    even = F.melscale_fbanks(201, 0.0, 4000.0, 20, RATE, "slaney", scale).numpy()
    np.testing.assert_allclose(
        even, bank * 2 / (np.array(points[2:]) - points[:-2]), rtol=1e-5, atol=1e-8
    )


def test_empty_filters_are_refused():
    with pytest.raises(ValueError, match="128 are empty .*; use fewer filters than 128 or more"):
        F.melscale_fbanks(33, 0.0, 4000.0, 128, RATE)
    with pytest.raises(ValueError, match="expected 0 <= f_min < f_max, got 5.0 and 5.0"):
        F.melscale_fbanks(33, 5.0, 5.0, 4, RATE)
    with pytest.raises(ValueError, match="expected mel_scale 'htk' or 'slaney', got 'bark'"):
        F.hz_to_mel(1.0, "bark")


@pytest.mark.parametrize("norm", [None, "ortho"])
def test_cosine_transform(norm):
    x = RNG.normal(size=(3, 16))
    got = x @ F.create_dct(7, 16, norm).numpy()
    np.testing.assert_allclose(got, scipy.fft.dct(x, norm=norm)[:, :7], atol=1e-5)


def test_decibels():
    x = np.array([1.0, 10.0, 1e-12, 0.5])
    np.testing.assert_allclose(F.amplitude_to_db(T(x)).numpy(), [0, 10, -100, 10 * math.log10(0.5)])
    limited = F.amplitude_to_db(T(x), 20.0, top_db=30.0).numpy()
    np.testing.assert_allclose(limited, [0, 20, -10, 20 * math.log10(0.5)])
    for power in (0.5, 1.0):
        level = F.amplitude_to_db(T(x[:2]), 10.0 / power)
        np.testing.assert_allclose(F.db_to_amplitude(level, power=power).numpy(), x[:2])
    with pytest.raises(ValueError, match="expected stype 'power' or 'magnitude', got 'level'"):
        audio.transforms.AmplitudeToDB("level")


def test_mel_spectrograms_and_cepstra():
    x = T(np.stack([tone(440), tone(1500)]).astype(np.float32))
    settings = {"n_fft": 400, "hop_length": 100, "n_mels": 24}
    mel = audio.transforms.MelSpectrogram(RATE, **settings)(x)
    assert mel.shape == (2, 24, 41)
    # The loudest filter is the one around the tone.
    loudest = mel.mean(axis=-1).argmax(axis=1).tolist()
    top = F.hz_to_mel(RATE / 2)
    for index, hertz in zip(loudest, (440, 1500)):
        assert abs(F.mel_to_hz(top * (index + 1) / 25) - hertz) < 100
    mfcc = audio.transforms.MFCC(RATE, 13, melkwargs=settings)
    got = mfcc(x)
    assert got.shape == (2, 13, 41)
    level = np.maximum(10 * np.log10(np.maximum(mel.numpy(), 1e-10)), -np.inf)
    level = np.maximum(level, level.max() - 80)  # channels count together
    want = scipy.fft.dct(level, axis=1, norm="ortho")[:, :13]
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-3, atol=2e-2)
    with pytest.raises(ValueError, match="MFCC: expected n_mfcc of at most n_mels 24, got 40"):
        audio.transforms.MFCC(RATE, 40, melkwargs=settings)
    with pytest.raises(ValueError, match="MelScale: expected 201 frequencies .* set n_stft to"):
        audio.transforms.MelScale(8)(mel)


@pytest.mark.parametrize("new", [4000, 6000, 11025, 16000])
@pytest.mark.parametrize("method", ["sinc_interp_hann", "sinc_interp_kaiser"])
def test_resampled_tones_are_tones(new, method):
    got = F.resample(T(tone(440)), RATE, new, 32, resampling_method=method).numpy()
    assert len(got) == math.ceil(0.5 * new)
    inside = slice(100, -100)  # the ends see the silence around the sound
    np.testing.assert_allclose(got[inside], tone(440, 0.51, new)[: len(got)][inside], atol=3e-3)


def test_resampling_removes_what_the_new_rate_cannot_hold():
    got = F.resample(T(tone(3000)), RATE, 4000, 32).numpy()
    assert np.abs(got[50:-50]).max() < 1e-3
    x = T(RNG.normal(size=(2, 3, 100)))
    assert F.resample(x, 100, 100) is x
    assert audio.transforms.Resample(3, 2)(x).shape == (2, 3, 67)
    x.requires_grad = True
    assert tenon.autograd.gradcheck(
        lambda x: F.resample(x, 3, 2), (x[:1, :1, :9].detach().requires_grad_(),)
    )
    with pytest.raises(ValueError, match="expected rates that are whole and positive, got 0 and 5"):
        F.resample(x, 0, 5)


def test_mu_law():
    x = np.linspace(-1, 1, 101)
    code = F.mu_law_encoding(T(x))
    assert code.dtype == tenon.int64 and (code.min().item(), code.max().item()) == (0, 255)
    # The steps next to 1 are 0.043 wide, and the error is half a step.
    np.testing.assert_allclose(F.mu_law_decoding(code).numpy(), x, atol=0.025)


def test_emphasis_and_slopes():
    x = np.array([[1.0, 2.0, 4.0]])
    np.testing.assert_allclose(F.preemphasis(T(x), 0.5).numpy(), [[1.0, 1.5, 3.0]])
    line = T(np.arange(12.0).reshape(1, 12) * 3)
    np.testing.assert_allclose(F.compute_deltas(line).numpy()[:, 2:-2], 3.0)
    with pytest.raises(ValueError, match="expected an odd win_length of at least 3, got 4"):
        F.compute_deltas(line, 4)


def test_wav_files(tmp_path):
    x = T(np.stack([tone(440, 0.01), -tone(300, 0.01)]).astype(np.float32) * 0.9)
    audio.save(tmp_path / "a.wav", x, RATE)
    back, rate = audio.load(tmp_path / "a.wav")
    assert rate == RATE and back.shape == x.shape and back.dtype == tenon.float32
    np.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-4)
    for width, content in ((1, b"\x80\xff\x00"), (4, np.int32([0, 2**30, -(2**31)]).tobytes())):
        with wave.open(str(tmp_path / "b.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(width)
            file.setframerate(RATE)
            file.writeframes(content)
        values = audio.load(tmp_path / "b.wav")[0].tolist()
        assert values == [[0.0, 127 / 128 if width == 1 else 0.5, -1.0]]
    with pytest.raises(ValueError, match=r"save: expected a floating waveform \[channels, time\]"):
        audio.save(tmp_path / "c.wav", T([1, 2]), RATE)


def test_gradients_reach_the_waveform():
    x = T(RNG.normal(size=(1, 600)).astype(np.float32))
    x.requires_grad = True
    mfcc = audio.transforms.MFCC(RATE, 5, log_mels=True, melkwargs={"n_fft": 128, "n_mels": 8})
    mfcc(x).sum().backward()
    assert tenon.all(tenon.isfinite(x.grad)).item() and tenon.any(x.grad != 0).item()
