# SPDX-License-Identifier: Apache-2.0
"""A progress bar without dependencies.

    for images, labels in (bar := progress(loader, "epoch 1/5")):
        ...
        bar.update(loss=loss.item())

On a terminal one line is redrawn, at most ten times a second. Elsewhere (a log file, CI) one line
is written at the end.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO


def progress(steps: Iterable, label: str = "", **options: Any) -> Progress:
    """Same as Progress(...)."""
    return Progress(steps, label, **options)


class Progress:
    """Iterates over `steps` and shows how far it is. `total` is needed if `steps` has no length.

    `values` gives what else to show, by name; it is called when the line is drawn.
    """

    redraw_seconds = 0.1

    def __init__(
        self,
        steps: Iterable,
        label: str = "",
        *,
        total: int | None = None,
        file: TextIO | None = None,
        values: Callable[[], dict[str, float]] | None = None,
    ) -> None:
        self.steps = steps
        self.label = label
        self.total = total if total is not None else getattr(steps, "__len__", lambda: None)()
        self.file = file or sys.stderr
        self._values = values or dict
        self._sums: dict[str, tuple[int, float]] = {}
        self.done = 0
        self._is_terminal = self.file.isatty()
        self._drawn_at = self._begun_at = 0.0

    def __iter__(self) -> Iterator[Any]:
        self._begun_at, self.done = time.perf_counter(), 0
        for step in self.steps:
            yield step
            self.done += 1
            now = time.perf_counter()
            if self._is_terminal and now - self._drawn_at >= self.redraw_seconds:
                self._drawn_at = now
                self._draw(self._line())
        self._draw(self._line())
        self.file.write("\n")
        self.file.flush()

    def update(self, **values: float) -> None:
        """Show values next to the bar: the mean of each since the loop began.

        Pass plain numbers: a tensor on a device would have to be waited for.
        """
        for name, value in values.items():
            count, total = self._sums.get(name, (0, 0.0))
            self._sums[name] = (count + 1, total + value)

    def _line(self) -> str:
        seconds = max(time.perf_counter() - self._begun_at, 1e-9)
        rate = self.done / seconds
        means = {name: total / count for name, (count, total) in self._sums.items()}
        parts = [f"{name} {value:.4f}" for name, value in (means | self._values()).items()]
        parts.append(f"{rate:.1f}/s")
        if self.total and 0 < self.done < self.total:
            parts.append(f"{_clock((self.total - self.done) / rate)} left")
        else:
            parts.append(_clock(seconds))
        count = f"{self.done}/{self.total}" if self.total else str(self.done)
        text = f"{self.label}  {count}  " if self.label else f"{count}  "
        tail = "  ".join(parts)
        if not self._is_terminal or not self.total:
            return text + tail
        width = shutil.get_terminal_size().columns - len(text) - len(tail) - 5
        width = max(5, min(width, 30))
        filled = width * self.done // self.total
        return f"{text}[{'=' * filled}{' ' * (width - filled)}]  {tail}"

    def _draw(self, line: str) -> None:
        if self._is_terminal:
            self.file.write("\r\x1b[K")  # to column 0, erase the line
        self.file.write(line)
        self.file.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
