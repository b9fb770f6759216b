# SPDX-License-Identifier: Apache-2.0
"""The DataLoader by its properties, and samplers by their distributions.

    python -m tests.fuzz.peers.data --minutes 5

Every sample comes once, whatever the dataset, the sampler and the number of workers are; batches
are those of the calling thread; a pass that is resumed goes on with the next batch; what
__getitem__ of a subclass says is what comes. Draws are held to chi-square tests (p of at least
1e-7, so that a right program is called wrong once in ten million).
"""

from __future__ import annotations

import collections
import itertools
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats as stats
import tenon
from tenon import data

from .campaign import Checks, Difference, main

DIFFERENCES: list[Difference] = []


class Numbers(data.Dataset[int]):
    """The numbers themselves."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        if not 0 <= index < self.count:
            raise IndexError(index)
        return index


class Noisy(Numbers):
    """Numbers with noise that follows from the sample."""

    def __getitem__(self, index: int) -> Any:
        return {"x": super().__getitem__(index), "noise": data.sample_rng().random()}


class Shifted(data.TensorDataset):
    """Overrides __getitem__ alone."""

    def __getitem__(self, index: int) -> Any:
        (x,) = super().__getitem__(index)
        return (x + 1000,)


class Stream(data.IterableDataset[int]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Any:
        info = data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(first, self.count, step))


def datasets(rng: random.Random, folder: str) -> tuple[Any, list[int]]:
    """A dataset, and the number that each of its samples stands for."""
    n = rng.randint(1, 40)
    kind = rng.choice(
        "numbers noisy tensors shifted subset nested split concat list array stack frozen".split()
    )
    if kind == "noisy":
        return Noisy(n), list(range(n))
    if kind == "tensors":
        return data.TensorDataset(tenon.arange(n)), list(range(n))
    if kind == "shifted":
        return Shifted(tenon.arange(n)), [i + 1000 for i in range(n)]
    if kind in ("subset", "nested"):
        inner = rng.choice(
            [Numbers(n), data.TensorDataset(tenon.arange(n)), Shifted(tenon.arange(n))]
        )
        shift = 1000 if isinstance(inner, Shifted) else 0
        rows = [rng.randrange(n) for _ in range(rng.randint(1, 30))]
        if kind == "subset":
            return data.Subset(inner, rows), [i + shift for i in rows]
        more = [rng.randrange(len(rows)) for _ in range(5)]
        return data.Subset(data.Subset(inner, rows), more), [rows[i] + shift for i in more]
    if kind == "split":
        part = data.random_split(
            data.TensorDataset(tenon.arange(n + 1)), [n, 1], seed=rng.randrange(9)
        )[0]
        return part, list(part.indices)
    if kind == "concat":
        parts = [data.TensorDataset(tenon.arange(n)), Shifted(tenon.arange(3))]
        return data.ConcatDataset(parts), [*range(n), 1000, 1001, 1002]
    if kind == "list":
        return list(range(n)), list(range(n))
    if kind == "array":
        path = Path(folder) / f"{n}.npy"
        np.save(path, np.arange(n))
        return data.NumpyDataset(path), list(range(n))
    if kind == "stack":
        return data.StackDataset(Numbers(n), data.TensorDataset(tenon.arange(n))), list(range(n))
    if kind == "frozen":
        return data.FrozenList(range(n)), list(range(n))
    return Numbers(n), list(range(n))


def first_of(batch: Any) -> Any:
    """The numbers of a batch, or of a sample, which is a tensor, a number, or holds one in the
    first place."""
    while isinstance(batch, (list, tuple)):
        batch = batch[0]
    return batch["x"] if isinstance(batch, dict) else batch


def plain(batch: Any) -> Any:
    """A batch as lists and numbers, to be compared."""
    if isinstance(batch, tenon.Tensor):
        return batch.tolist()
    if isinstance(batch, dict):
        return {key: plain(value) for key, value in batch.items()}
    return [plain(each) for each in batch] if isinstance(batch, (list, tuple)) else batch


def numbers_of(batches: list[Any]) -> list[int]:
    rows: list[int] = []
    for batch in batches:
        value = plain(first_of(batch))
        rows += value if isinstance(value, list) else [value]
    return rows


def samplers(rng: random.Random, count: int) -> tuple[Any, Any]:
    """A function that makes a sampler, None for that of the loader, and the indices that it gives,
    if they are sure."""
    seed = rng.randrange(9)
    kind = rng.choice("none shuffle sequential random longer subset weighted replaced".split())
    if kind == "sequential":
        return (lambda: data.SequentialSampler(range(count))), range(count)
    if kind == "random":
        return (lambda: data.RandomSampler(range(count), seed)), range(count)
    if kind == "longer":
        return (lambda: data.RandomSampler(range(count), seed, num_samples=2 * count)), [
            *range(count)
        ] * 2
    if kind == "subset":
        chosen = sorted({rng.randrange(count) for _ in range(5)})
        return (lambda: data.SubsetRandomSampler(chosen, seed)), chosen
    if kind == "weighted":
        weights = [rng.choice([0.0, 1e-300, 1e-4, 1.0, 1e300]) for _ in range(count - 1)] + [1.0]
        possible = [i for i, weight in enumerate(weights) if weight]
        return (lambda: data.WeightedRandomSampler(weights, len(possible), False, seed)), possible
    if kind == "replaced":
        return (
            lambda: data.RandomSampler(range(count), seed, replacement=True, num_samples=7)
        ), None
    return None, range(count)


def loaders(rng: random.Random) -> Checks:
    with tempfile.TemporaryDirectory() as folder:
        dataset, values = datasets(rng, folder)
        sampler, indices = samplers(rng, len(values))
        size = rng.choice([None, 1, 2, 3, 8, 64])
        drop_last = size is not None and rng.random() < 0.3
        shuffle = sampler is None and rng.random() < 0.5
        seed = rng.randrange(100)
        label = f"[{type(dataset).__name__}, batches of {size}, {drop_last=}]"

        def loader(**options: Any) -> Any:
            return data.DataLoader(
                dataset,
                size,
                shuffle,
                sampler=None if sampler is None else sampler(),
                drop_last=drop_last,
                seed=seed,
                **options,
            )

        plainly = loader()
        batches = [list(plainly) for _ in range(2)]
        passes, got = plain(batches), numbers_of(batches[0])
        if indices is not None:
            left = len(indices) % size if drop_last and size else 0
            want = collections.Counter(values[i] for i in indices)
            extra = collections.Counter(got) - want
            missing = want - collections.Counter(got)
            wrong = extra or sum(missing.values()) != left
            yield (
                f"every sample once {label}",
                f"too many {extra}, missing {missing}" if wrong else None,
            )
        is_length = len(plainly) == len(passes[0])
        yield (
            f"length {label}",
            None if is_length else f"{len(plainly)} for {len(passes[0])} batches",
        )
        workers = rng.randint(1, 3)
        options: dict[str, Any] = {"num_workers": workers, "prefetch_factor": rng.randint(1, 3)}
        options["workers"] = rng.choice(["process", "thread"])
        if options["workers"] == "process":
            options["multiprocessing_context"] = "fork"
            options["persistent_workers"] = rng.random() < 0.5
        other = loader(**options)
        again = [plain(list(other)) for _ in range(2)]
        other.close()
        yield (
            f"batches of workers {label}",
            None if again == passes else f"{again} for {passes}, {options}",
        )
        # Interrupted in either pass, and resumed by another loader.
        which = rng.randrange(2)
        at = rng.randint(0, len(passes[which]))
        running = loader()
        if which:
            list(running)
        walk = iter(running)
        before = [plain(each) for each in itertools.islice(walk, at)]
        state = running.state_dict()
        resumed = loader(**(options if rng.random() < 0.5 else {}))
        resumed.load_state_dict(state)
        rest = plain(list(resumed))
        resumed.close()
        # At the end of a pass the next one follows.
        whole = before + rest
        right = whole == passes[which]
        if at == len(passes[which]):
            right = before == passes[which] and (rest == [] or which or rest == passes[1])
        yield (
            f"resumed {label}",
            None if right else f"{before} and {rest} for {passes[which]}, {at=}",
        )


def streams(rng: random.Random) -> Checks:
    count, size = rng.randint(0, 30), rng.choice([None, 1, 3, 8])
    workers = rng.randint(0, 3)
    options = {"num_workers": workers, "workers": rng.choice(["process", "thread"])}
    if workers and options["workers"] == "process":
        options["multiprocessing_context"] = "fork"
    got = numbers_of(list(data.DataLoader(Stream(count), size, **options)))
    right = sorted(got) == list(range(count))
    yield f"every sample of a stream once [{options}]", None if right else f"{got} of {count}"


def parts(rng: random.Random) -> Checks:
    """Processes that share a dataset see all of it."""
    count, replicas = rng.randint(1, 40), rng.randint(1, 5)
    drop_last, shuffle, seed = rng.random() < 0.5, rng.random() < 0.5, rng.randrange(9)
    each = [
        list(data.DistributedSampler(range(count), replicas, rank, shuffle, seed, drop_last))
        for rank in range(replicas)
    ]
    seen = collections.Counter(itertools.chain.from_iterable(each))
    size = count // replicas if drop_last else -(-count // replicas)
    right = all(len(part) == size for part in each)
    if drop_last:
        right &= max(seen.values(), default=1) == 1
    else:
        right &= set(seen) == set(range(count))
    yield "parts of a dataset", None if right else f"{each} of {count}"


def chi_square(observed: list[int], expected: list[float]) -> str | None:
    p = stats.chisquare(observed, np.array(expected) / sum(expected) * sum(observed)).pvalue
    return None if p > 1e-7 else f"p = {p:g}: {observed} for {expected}"


def draws(rng: random.Random) -> Checks:
    """How often indices are drawn."""
    n, seed, scale = rng.randint(2, 8), rng.getrandbits(30), 10.0 ** rng.choice([-300, -4, 0, 300])
    weights = [rng.uniform(0.2, 3) for _ in range(n)]
    scaled = [weight * scale for weight in weights]
    drawn = collections.Counter(data.WeightedRandomSampler(scaled, 4000, True, seed))
    yield "draws with replacement", chi_square([drawn[i] for i in range(n)], weights)
    first = collections.Counter(
        next(iter(data.WeightedRandomSampler(scaled, 1, False, seed + i))) for i in range(2000)
    )
    yield "first draws without replacement", chi_square([first[i] for i in range(n)], weights)
    uniform = collections.Counter(
        data.RandomSampler(range(n), seed, replacement=True, num_samples=4000)
    )
    yield "uniform draws", chi_square([uniform[i] for i in range(n)], [1.0] * n)
    order = collections.Counter(
        next(iter(data.RandomSampler(range(n), seed + i))) for i in range(2000)
    )
    yield "first of random orders", chi_square([order[i] for i in range(n)], [1.0] * n)


def case(rng: random.Random) -> Checks:
    return rng.choice([loaders, loaders, loaders, streams, parts, draws])(rng)


if __name__ == "__main__":
    sys.exit(main(case, DIFFERENCES, __doc__))
