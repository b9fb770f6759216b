# SPDX-License-Identifier: Apache-2.0
"""The schedules that have names. In each of them a stage takes backward passes in the order of micro-batches, so that
gradients add up in the order of one process that accumulates."""

from __future__ import annotations

from collections.abc import Callable

from .schedule import BACKWARD, FORWARD, WEIGHTS, Action, Schedule


def gpipe(ranks: int, microbatches: int, chunks: int = 1) -> Schedule:
    """All forward passes, then all backward passes: every rank keeps the activations of all micro-batches."""
    _one_chunk("GPipe", chunks)
    table = [
        [Action(kind, rank, i) for kind in (FORWARD, BACKWARD) for i in range(microbatches)]
        for rank in range(ranks)
    ]
    return Schedule("GPipe", ranks, microbatches, table)


def one_forward_one_backward(ranks: int, microbatches: int, chunks: int = 1) -> Schedule:
    """A backward pass as soon as there can be one: rank r keeps activations of ranks - r micro-batches."""
    _one_chunk("1F1B", chunks)
    table = []
    for rank in range(ranks):
        ahead = min(ranks - rank - 1, microbatches)
        forward = [Action(FORWARD, rank, i) for i in range(microbatches)]
        backward = [Action(BACKWARD, rank, i) for i in range(microbatches)]
        table.append(_alternating(forward, backward, ahead))
    return Schedule("1F1B", ranks, microbatches, table)


def interleaved(ranks: int, microbatches: int, chunks: int = 2) -> Schedule:
    """1F1B with several stages on each rank: shorter stages, so that the first and last passes leave ranks idle for a
    shorter time, and more messages (Narayanan et al., 2021)."""
    if microbatches % ranks:
        raise ValueError(
            f"schedule interleaved: expected a number of micro-batches that {ranks} ranks divide, got {microbatches}"
        )
    total, around = microbatches * chunks, ranks * chunks

    def nth(kind: str, rank: int, n: int) -> Action:
        chunk = n % around // ranks
        chunk = chunk if kind == FORWARD else chunks - 1 - chunk
        return Action(kind, chunk * ranks + rank, n // around * ranks + n % ranks)

    table = []
    for rank in range(ranks):
        ahead = min((ranks - rank - 1) * 2 + (chunks - 1) * ranks, total)
        forward = [nth(FORWARD, rank, n) for n in range(total)]
        backward = [nth(BACKWARD, rank, n) for n in range(total)]
        table.append(_alternating(forward, backward, ahead))
    return Schedule("interleaved", ranks, microbatches, table, chunks)


def zero_bubble(ranks: int, microbatches: int, chunks: int = 1) -> Schedule:
    """ZB-H1: backward passes make the gradients of inputs first, which other ranks wait for; those of weights fill the
    time in which a rank would be idle. No rank keeps activations of more micro-batches than the first one does with
    1F1B (Qi et al., 2023)."""
    _one_chunk("ZB-H1", chunks)
    table = []
    for rank in range(ranks):
        ahead = min(ranks - rank - 1, microbatches)
        actions = [Action(FORWARD, rank, i) for i in range(ahead)]
        for i in range(microbatches):
            if ahead + i < microbatches:
                actions.append(Action(FORWARD, rank, ahead + i))
            actions.append(Action(BACKWARD, rank, i))
            # Later ranks, which were idle for longer before their first pass, leave more of them for the end.
            if i >= rank:
                actions.append(Action(WEIGHTS, rank, i - rank))
        done = max(microbatches - rank, 0)
        actions += [Action(WEIGHTS, rank, i) for i in range(done, microbatches)]
        table.append(actions)
    return Schedule("ZB-H1", ranks, microbatches, table)


SCHEDULES: dict[str, Callable[..., Schedule]] = {
    "GPipe": gpipe,
    "1F1B": one_forward_one_backward,
    "interleaved": interleaved,
    "ZB-H1": zero_bubble,
}


def schedule_of(
    name: str | Schedule, ranks: int, microbatches: int, chunks: int | None = None
) -> Schedule:
    """A schedule by its name, or one that was made elsewhere, for so many ranks and micro-batches."""
    if isinstance(name, Schedule):
        if (name.ranks, name.microbatches) != (ranks, microbatches):
            raise ValueError(
                f"expected a schedule of {ranks} ranks and {microbatches} micro-batches, got {name!r}"
            )
        return name
    for known, make in SCHEDULES.items():
        if known.lower() == str(name).lower():
            return make(ranks, microbatches, **({} if chunks is None else {"chunks": chunks}))
    raise ValueError(
        f"expected a schedule out of {', '.join(SCHEDULES)}, or one of your own, got {name!r}"
    )


def _one_chunk(name: str, chunks: int) -> None:
    if chunks != 1:
        raise ValueError(
            f"schedule {name}: expected one stage on each rank, got {chunks}; schedule 'interleaved' has several"
        )


def _alternating(forward: list[Action], backward: list[Action], ahead: int) -> list[Action]:
    """`ahead` forward passes, then one of each in turn, then the backward passes that are left."""
    actions = forward[:ahead]
    for n, action in enumerate(forward[ahead:]):
        actions += [action, backward[n]]
    return actions + backward[len(forward) - ahead :]
