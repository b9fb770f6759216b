# SPDX-License-Identifier: Apache-2.0
"""Damaged files, read by a process of its own: each is refused by an error that says why, or works, and the process lives.

A program of this kind draws a case as a file (or as a folder of files) and has a function `read` that uses what it could read.
`serve` calls that function in the process that reads, and `Campaign` asks that process for as long as it is told.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

SECONDS = 10  # of a processor, that a file may take
PATIENCE = 300  # seconds of the clock, in which a busy machine gives these
GIBIBYTES = 24  # of addresses, which a sanitizer reserves and no program uses
NUMBERS = (
    0,
    1,
    2,
    3,
    7,
    16,
    28,
    63,
    64,
    127,
    128,
    255,
    65536,
    2**31 - 1,
    2**31,
    2**40,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
REFUSALS = (
    ValueError,
    TypeError,
    IndexError,
    NotImplementedError,
    OverflowError,
    MemoryError,
    RuntimeError,
)


def damaged(data: bytes, rng: random.Random) -> bytes:
    array = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(array) + 1)
        match rng.randrange(4):
            case 0 if at < len(array):
                array[at] = rng.randrange(256)
            case 1:
                del array[at : at + rng.randint(1, 9)]
            case 2:
                array[at:at] = rng.randbytes(rng.randint(1, 9))
            case _:
                array[at:at] = array[at : at + rng.randint(1, 64)]
    return bytes(array)


def arguments(text: str, out: str) -> argparse.ArgumentParser:
    """What every such program takes."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--count", type=int, default=sys.maxsize, help="files at most")
    parser.add_argument("--out", default=out, help="where failures are written")
    return parser


# -- the process that reads -------------------------------------------------------------------------------------


def serve(read: Callable[[Path], str], refusals: tuple[type[Exception], ...]) -> int:
    """Reads the file that each line names; a line back says what became of it."""
    import tenon

    if "asan" not in Path("/proc/self/maps").read_text():  # which reserves more than any limit
        resource.setrlimit(resource.RLIMIT_AS, (GIBIBYTES << 30, GIBIBYTES << 30))
    tenon.set_num_threads(1)
    for line in sys.stdin:
        try:
            said = read(Path(line.strip()))
        except tenon.InternalError as error:
            said = f"raised InternalError: {error}"
        except refusals as error:
            said = f"refused {type(error).__name__}" if str(error) else "raised without a text"
        except BaseException as error:  # the library `tokenizers` has errors that are no Exception
            said = f"raised {type(error).__name__}: {error}"
        print(said.replace("\n", " "), flush=True)
    return 0


def used(use: Callable[[], object], refusals: tuple[type[Exception], ...] = REFUSALS) -> str:
    """What a file that was read comes to when it is used."""
    import tenon

    try:
        use()
    except tenon.InternalError:
        raise
    except refusals:
        return "loaded, and its use was refused"
    return "loaded"


# -- the process that asks --------------------------------------------------------------------------------------


def processor_seconds(process: int) -> float:
    """That a process has used; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Reader:
    """A process that runs `--serve` of a module."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", self._module, "--serve"]
        # Warnings would fill a pipe, as this process reads it last of all.
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            bufsize=1,
        )

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._errors.close()

    def _start_again(self) -> None:
        self.close()
        self._start()

    def read(self, path: Path) -> str:
        process = self._process
        assert process.stdin and process.stdout
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        begin, clock = processor_seconds(process.pid), time.monotonic()
        while not select.select([process.stdout], [], [], 1)[0]:
            taken, waited = processor_seconds(process.pid) - begin, time.monotonic() - clock
            if taken > SECONDS or waited > PATIENCE:
                self._start_again()
                return f"took {taken:.0f} seconds of a processor in {waited:.0f} of the clock"
        line = process.stdout.readline()
        if line:
            return line.strip()
        code = process.wait()
        self._errors.seek(0)
        errors = self._errors.read()
        self._start_again()
        # A sanitizer's report begins with what is wrong.
        report = errors.rfind("==ERROR")
        return f"ended the process ({code}): {errors[report : report + 4000] if report >= 0 else errors[-2000:]}"


class Campaign:
    """Asks a module's process about files that `draw` writes into an empty folder, and counts what became of them."""

    def __init__(self, module: str, options: argparse.Namespace) -> None:
        self.seed, self.out, self.failures = options.seed, Path(options.out), 0
        self._count = options.count
        self._reader = Reader(module)

    def run(
        self, draw: Callable[[Path, random.Random], Path], rng: random.Random, minutes: float
    ) -> Counter[str]:
        counts: Counter[str] = Counter()
        end = time.monotonic() + 60 * minutes
        for _ in range(self._count):
            if time.monotonic() >= end:
                break
            with tempfile.TemporaryDirectory() as folder:
                path = draw(Path(folder), rng)
                said = self._reader.read(path)
                kind = said.split()[0].rstrip(",")
                if kind in ("loaded", "refused"):
                    counts[kind] += 1
                else:
                    self._keep(path, said)
        return counts

    def _keep(self, path: Path, said: str) -> None:
        """The files of a case that failed, by which it can be read again."""
        self.failures += 1
        kept = self.out / f"{self.seed}-{self.failures}"
        shutil.copytree(path.parent, kept, dirs_exist_ok=True)
        print(f"{kept / path.name}: {said}", flush=True)

    def end(self) -> int:
        """The exit status."""
        self._reader.close()
        return 1 if self.failures else 0


def told(counts: Counter[str]) -> str:
    return (
        ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "nothing was read"
    )
