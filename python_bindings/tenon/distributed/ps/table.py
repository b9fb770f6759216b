# SPDX-License-Identifier: Apache-2.0
"""A worker's view of a table: rows are pulled from all servers at a time, and gradients pushed."""

from __future__ import annotations

import os
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tenon
from tenon import Tensor, _core, optim

from . import table_files
from .collector import Collector
from .geo import LocalRows
from .job import Job, current_job
from .row_optimizer import SUM, RowOptimizer, optimizer_name
from .settings import Entry, Settings, check_change, check_name

TALKS = (
    " reads or writes rows of servers, and a program does not: it would go on with the rows of the time at which it was recorded; "
    "make a program of the dense part, which takes the rows, and call it behind the embedding"
)


class Table:
    """Rows of `dim` numbers under ids of 64 bits, kept by the job's servers. All workers make it with the same name and
    settings.

    `optimizer` is a class of tenon.optim that updates rows alone, `options` what it is made with. Modes:

    - `"sync"`: a push waits for those of all workers, which are averaged in the workers' order; the next pull sees them.
      The numbers are those of data parallel training of a dense table.
    - `"async"`: each push is an update of its own. With `staleness=k` no worker reads rows while another one is more than
      k pushes behind.
    - `"geo"`: a worker updates copies of its own, and every `geo_steps` pushes adds what changed, divided by the number of
      workers, to the servers' rows.

    `entry` says which ids get a row. An id without one reads as zeros, and otherwise as uniform numbers in
    [-initial_range, initial_range) by `seed` and id.
    """

    def __init__(
        self,
        name: str,
        dim: int,
        optimizer: type[optim.Optimizer] | str = optim.SGD,
        *,
        mode: str = "sync",
        staleness: int | None = None,
        geo_steps: int = 10,
        entry: Entry | None = None,
        initial_range: float = 0.01,
        seed: int = 0,
        decay: float = 1.0,
        show: float = 0.1,
        click: float = 1.0,
        hot_rows: int = 0,
        job: Job | None = None,
        **options: Any,
    ) -> None:
        check_name(name)
        self.name, self.dim, self.mode = name, dim, mode
        self._job = job or current_job()
        own = Settings(
            dim, optimizer_name(optimizer), options, mode, staleness, entry, initial_range, seed,
            decay, show, click, hot_rows,
        )  # fmt: skip
        self._row_optimizer = RowOptimizer(own)  # refuses what servers would
        self.settings = own
        self._local: LocalRows | None = None
        if mode == "geo":
            if geo_steps < 1:
                raise ValueError(f"Table: expected geo_steps of 1 or more, got {geo_steps}")
            self.settings = Settings(
                dim, SUM, {}, mode, None, None, initial_range, seed, decay, show, click, hot_rows
            )
            self._local = LocalRows(own, geo_steps, self._job.workers)
        self._servers = range(self._job.servers)
        self._steps = [0] * self._job.servers  # pushes that were begun
        self._taken = [0] * self._job.servers  # pushes that were acknowledged
        self._others = [0] * self._job.servers  # other changes
        self._pushing = ThreadPoolExecutor(1, f"ps-{name}")
        self._prefetching = ThreadPoolExecutor(1, f"ps-{name}-prefetch")
        self._pushed: ThreadFuture[Any] | None = None
        self._prefetched: tuple[Tensor, ThreadFuture[Tensor]] | None = None
        self.gradients = Collector(self.push)
        found = self._on_all(
            "attach", {s: [self._job.worker, self.settings.words()] for s in self._servers}
        )
        for server, (step, other) in enumerate(found):
            self._steps[server], self._others[server] = step, other
        self._taken = list(self._steps)

    def _on_all(self, method: str, arguments: dict[int, Any]) -> list[Any]:
        return self._job.call_all(method, self.name, arguments, self._attach_again)

    def _attach_again(self, server: int) -> None:
        arguments = [self._job.worker, self.settings.words()]
        found = self._job.begin(server, "attach", self.name, arguments).wait()
        if found[0] < self._taken[server] or found[1] < self._others[server]:
            raise RuntimeError(
                f"Table {self.name!r}: expected server {server} to have what it had acknowledged, got a server that was "
                "started again without its folder; load a checkpoint into a new job"
            )

    # -- reading

    def pull(self, ids: Tensor) -> Tensor:
        """The rows of ids of any shape, with one axis more. Plain numbers: gradients are for push()."""
        _core.record_effect("Table.pull()", TALKS)
        flat = _ids(ids).reshape([-1])
        if self._pushed is not None and self._pushed.done():
            self.flush()  # raises what went wrong
        found = self._take_prefetched(flat)
        if found is None:
            found = self._pull(flat, list(self._steps))
        return found.reshape([*ids.shape, self.dim])

    def prefetch(self, ids: Tensor) -> None:
        """Begin to pull what pull() will be called with when one more push was made: the rows of the next batch."""
        _core.record_effect("Table.prefetch()", TALKS)
        flat = _ids(ids).reshape([-1])
        if self._local is not None:
            return  # which rows are to be pulled is known when the push before is made
        flat = flat.clone()  # Memory of the caller's may change until pull().
        steps = [step + 1 for step in self._steps]
        self._prefetched = (flat, self._prefetching.submit(self._pull, flat, steps))

    def _take_prefetched(self, flat: Tensor) -> Tensor | None:
        if self._prefetched is None:
            return None
        ids, future = self._prefetched
        self._prefetched = None
        if ids.shape != flat.shape or not bool((ids == flat).all().item()):
            return None
        return future.result()

    def _pull(self, flat: Tensor, steps: list[int]) -> Tensor:
        if self._local is not None:
            return self._local.pull(flat, self._pull_copies)
        return self._pull_from_servers(flat, steps)

    def _pull_copies(self, missing: Tensor) -> Tensor:
        return self._pull_from_servers(missing, self._steps)

    def _pull_from_servers(self, flat: Tensor, steps: list[int]) -> Tensor:
        order, parts = self._divided(flat)
        arguments = {
            s: [self._job.worker, steps[s], ids] for s, ids in enumerate(parts) if ids.numel()
        }
        rows = self._on_all("pull", arguments)
        out = tenon.empty([flat.numel(), self.dim])
        if rows:
            tenon.index_copy(out, 0, order, tenon.cat(rows, 0), out=out)
        return out

    def _divided(self, flat: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The order of ids by server, and each server's ids."""
        order = tenon.empty([flat.numel()], dtype=tenon.int64)
        counts = _core._divide_ids(flat, len(self._servers), order)
        grouped = tenon.index_select(flat, order, 0)
        return order, _cut(grouped, counts)

    # -- writing

    def push(
        self,
        ids: Tensor,
        gradients: Tensor,
        shows: Tensor | None = None,
        clicks: Tensor | None = None,
    ) -> None:
        """Begin to send gradients [*ids.shape, dim]; equal ids add up. `shows` and `clicks`, of the shape of ids, say how
        often each was shown (otherwise once) and clicked. What goes wrong is raised by the next call."""
        _core.record_effect("Table.push()", TALKS)
        flat = _ids(ids).reshape([-1])
        if tuple(gradients.shape) != (*ids.shape, self.dim):
            raise ValueError(
                f"Table.push: expected gradients of shape {(*ids.shape, self.dim)}, got {tuple(gradients.shape)}"
            )
        rows = _floats(gradients).reshape([flat.numel(), self.dim])
        uses = [
            None if x is None else _floats(x).reshape([flat.numel()]).clone()
            for x in (shows, clicks)
        ]
        if self._local is not None:
            if shows is not None or clicks is not None:
                raise ValueError(
                    "Table.push: expected no shows and clicks with mode 'geo', whose servers see sums of many pushes, got "
                    "some; use mode 'sync' or 'async'"
                )
            delta = self._local.push(flat, rows, self._pull_copies)
            if delta is None:
                return
            flat, rows = delta
            uses = [None, None]
        self.flush()
        steps = list(self._steps)
        self._steps = [step + 1 for step in steps]
        # Memory of the caller's may change meanwhile.
        self._pushed = self._pushing.submit(self._push, flat.clone(), rows.clone(), uses, steps)
        if self._local is not None:
            self.flush()  # rows that are pulled next have what was added

    def _push(
        self, flat: Tensor, rows: Tensor, uses: list[Tensor | None], steps: list[int]
    ) -> None:
        with tenon.no_grad():
            order, parts = self._divided(flat)
            counts = [ids.numel() for ids in parts]
            cut: list[Any] = [_cut(tenon.index_select(rows, order, 0), counts)]
            for x in uses:
                divided = None if x is None else _cut(tenon.index_select(x, order, 0), counts)
                cut.append(divided or [None] * len(counts))
            arguments = {
                s: [self._job.worker, steps[s], parts[s], *(each[s] for each in cut)]
                for s in self._servers
            }
            self._on_all("push", arguments)
            self._taken = [step + 1 for step in steps]

    def flush(self) -> None:
        """Return when all servers have taken what was pushed."""
        pushed, self._pushed = self._pushed, None
        if pushed is not None:
            pushed.result()

    # -- what one worker orders for all

    def day_end(self) -> None:
        """Shows and clicks decay, and rows that are not pushed are unseen for a day more. One worker calls it."""
        self._change("day_end", [])

    def shrink(self, unseen_days: int = (1 << 32) - 1, score: float = float("-inf")) -> int:
        """Remove rows that were not pushed for more days than that, or of which `show * shows + click * clicks` is less
        than `score`; the result is how many. One worker calls it."""
        check_change("shrink", [unseen_days, score])
        return sum(self._change("shrink", [unseen_days, float(score)]))

    def save(self, folder: str | os.PathLike, *, delta: bool = False) -> None:
        """Write a checkpoint, of all rows or of those that changed since the last save() or load(). One worker calls it; all
        servers see the folder. Others may push meanwhile, and then each server's rows are those of one moment."""
        self.flush()
        path, token = os.path.abspath(os.fspath(folder)), table_files.new_token()
        parts = self._on_all("save", {s: [path, token, delta] for s in self._servers})
        bases = {part["base"] for part in parts}
        if len(bases) > 1:
            raise RuntimeError(
                "Table.save: expected all servers to have the same last save, got several; save all rows"
            )
        width = self.dim + RowOptimizer(self.settings).state_width
        values = {
            "kind": "table",
            "name": self.name,
            "settings": self.settings.words(),
            "width": width,
            "base": bases.pop(),
            "day": max(part["day"] for part in parts),
        }
        written = [counts for part in parts for counts in part["written"]]
        table_files.commit(path, token, len(parts), width, written, values)
        self._on_all("saved", {s: [token, part["version"]] for s, part in enumerate(parts)})

    def load(self, folder: str | os.PathLike) -> None:
        """Take the rows of a checkpoint in place of those that are there, whatever number of servers wrote it; or, of a delta,
        add what changed. One worker calls it, while no other one pushes."""
        path = os.path.abspath(os.fspath(folder))
        table_files.open_save(path)
        self._change("load", [path])
        if self._local is not None:
            self._local.forget()

    def _change(self, what: str, arguments: list[Any]) -> list[Any]:
        self.flush()
        others = list(self._others)
        given = {s: [self._job.worker, others[s], what, arguments] for s in self._servers}
        results = self._on_all("change", given)
        self._others = [number + 1 for number in others]
        return results

    def counters(self) -> dict[str, int]:
        """rows, cold_rows, candidates and bytes of all servers."""
        self.flush()
        found = self._on_all("counters", {s: [] for s in self._servers})
        return {
            key: sum(each[key] for each in found)
            for key in ("rows", "cold_rows", "candidates", "bytes")
        }


def _cut(x: Tensor, counts: list[int]) -> list[Tensor]:
    parts, begin = [], 0
    for count in counts:
        parts.append(x[begin : begin + count])
        begin += count
    return parts


def _ids(ids: Tensor) -> Tensor:
    if ids.dtype.is_floating_point or ids.dtype.is_complex or ids.dtype == tenon.bool:
        raise TypeError(f"Table: expected ids of an integer dtype, got {ids.dtype.name}")
    return ids.detach().to("cpu").to(tenon.int64).contiguous()


def _floats(x: Tensor) -> Tensor:
    return x.detach().to("cpu").to(tenon.float32).contiguous()
