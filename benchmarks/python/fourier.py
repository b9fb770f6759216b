# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms: Tenon beside SciPy and PyTorch, over lengths that are powers of two, products of small
primes and primes, single and in batches, along the last and the first axis, in one and more dimensions.

    python fourier.py [--quick] [--only irfft] [--threads 1] [--json results.json]

Tenon's transforms are its own, SciPy's are by pocketfft, PyTorch's by MKL.
"""

from __future__ import annotations

from _libraries import Case, compare
from _report import parser
from linear_algebra import Function, call_of


def transform(text: str, *shape: int, dtype: str = "float32") -> Function:
    return Function(f"lib.fft.{text}", shape, "real" if text[0] == "r" else "complex", dtype)


FUNCTIONS = {
    "fft 64": transform("fft(x)", 64),
    "fft 4096": transform("fft(x)", 4096),
    "fft 2^20": transform("fft(x)", 2**20),
    "fft 1000": transform("fft(x)", 1000),
    "fft 30030": transform("fft(x)", 30030),
    "fft 1009, a prime": transform("fft(x)", 1009),
    "fft 1000 of 64": transform("fft(x)", 1000, 64),
    "fft 1000 of 1000": transform("fft(x)", 1000, 1000),
    "fft 1000 of 1024": transform("fft(x)", 1000, 1024),
    "fft 1000 of 1009, a prime": transform("fft(x)", 1000, 1009),
    "fft of float64, 1000 of 1000": transform("fft(x)", 1000, 1000, dtype="float64"),
    "fft along axis 0, 1000x1000": transform("fft(x, None, 0)", 1000, 1000),
    "fft along axis 0, 1024x1024": transform("fft(x, None, 0)", 1024, 1024),
    "fft2 512x512": transform("fft2(x)", 512, 512),
    "fftn 64x64x64": transform("fftn(x)", 64, 64, 64),
    "rfft 4096": transform("rfft(x)", 4096),
    "rfft 1000 of 64": transform("rfft(x)", 1000, 64),
    "rfft 1000 of 1000": transform("rfft(x)", 1000, 1000),
    "rfft 1000 of 1024": transform("rfft(x)", 1000, 1024),
    "rfft along axis 0, 1000x1000": transform("rfft(x, None, 0)", 1000, 1000),
    "rfft2 512x512": transform("rfft2(x)", 512, 512),
    "rfft2 32 of 224x224": transform("rfft2(x)", 32, 224, 224),
    "irfft 2049": transform("irfft(x)", 2049),
    "irfft 1000 of 33": transform("irfft(x)", 1000, 33),
    "irfft 1000 of 501": transform("irfft(x)", 1000, 501),
    "irfft 1000 of 513": transform("irfft(x)", 1000, 513),
    "irfft along axis 0, 501x1000": transform("irfft(x, None, 0)", 501, 1000),
    "irfft2 512x257": transform("irfft2(x)", 512, 257),
}
QUICK = ("fft 4096", "fft 1000 of 1000", "irfft 1000 of 513", "rfft2 512x512")


def build(library: str, case: Case, options):
    """What a case is in a library's process."""
    return call_of(FUNCTIONS[case.name], library, options)


def main() -> None:
    options = parser(__doc__, rounds=7, peers=("scipy", "torch")).parse_args()
    group = f"{options.threads} thread{'s' * (options.threads > 1)}"
    names = QUICK if options.quick else FUNCTIONS
    compare("fourier", [Case(name, group, tolerance=1e-3) for name in names], build, options)


if __name__ == "__main__":
    main()
