# SPDX-License-Identifier: Apache-2.0
"""Decoding step by step until all sequences have ended, and beams of the likeliest sequences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import tenon
from tenon import Tensor

from .recurrent import RNNCellBase

__all__ = ["BeamSearchDecoder", "BeamSearchOutput", "BeamSearchState", "Decoder", "dynamic_decode"]


class Decoder(Protocol):
    """What dynamic_decode runs. Outputs and states are tensors in tuples, lists and dicts, or one tensor."""

    def initialize(self, inits: Any) -> tuple[Any, Any, Tensor]:
        """The first inputs, the first states, and which sequences have ended before."""

    def step(self, time: int, inputs: Any, states: Any) -> tuple[Any, Any, Any, Tensor]:
        """Outputs of the step, the next states, the next inputs, and which sequences have ended."""

    def finalize(self, outputs: Any, states: Any, lengths: Tensor) -> tuple[Any, Any]:
        """What is made of the outputs of all steps, each with a first axis of steps, and of the last states."""


class BeamSearchState(NamedTuple):
    cell: Any  # states of the cell, [N * beams, ...]
    scores: Tensor  # sums of log-probabilities [N, beams]
    words: Tensor  # the last word of each beam [N, beams]
    finished: Tensor  # [N, beams]
    lengths: Tensor  # words before the end, which counts, [N, beams]


class BeamSearchOutput(NamedTuple):
    scores: Tensor
    predicted_ids: Tensor
    parent_ids: Tensor


class BeamSearchDecoder:
    """The `beam_size` likeliest sequences of a cell: a callable of inputs [N * beams, ...] and states that returns outputs and
    states, or a cell of this package, as GRUCell.

    `embedding_fn` makes the cell's inputs of words [N * beams], by default the words themselves; `output_fn` makes logits [N * beams, words]
    of its outputs, by default the outputs themselves. Every sequence begins with `start_token` and ends with `end_token`.
    """

    def __init__(
        self,
        cell: Callable[..., Any],
        start_token: int,
        end_token: int,
        beam_size: int,
        embedding_fn: Callable[[Tensor], Tensor] | None = None,
        output_fn: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        if beam_size < 1:
            raise ValueError(
                f"BeamSearchDecoder: expected beam_size of at least 1, got {beam_size}"
            )
        self.cell, self.start_token, self.end_token, self.beam_size = (
            cell,
            start_token,
            end_token,
            beam_size,
        )
        self.embedding_fn, self.output_fn = embedding_fn, output_fn

    @staticmethod
    def tile_beam_merge_with_batch(x: Tensor, beam_size: int) -> Tensor:
        """[N, ...] as [N * beams, ...], each row `beam_size` times: for what the cell reads beside its states."""
        tiled = tenon.expand(x.unsqueeze(1), [x.shape[0], beam_size, *x.shape[1:]])
        return tiled.reshape([x.shape[0] * beam_size, *x.shape[1:]])

    def _inputs(self, words: Tensor) -> Tensor:
        flat = words.reshape([-1])
        return flat if self.embedding_fn is None else self.embedding_fn(flat)

    def initialize(self, inits: Any) -> tuple[Tensor, BeamSearchState, Tensor]:
        """From the states of the cell [N, ...], of which each beam gets a copy."""
        first = _first(inits)
        batch, device = first.shape[0], first.device
        shape = [batch, self.beam_size]
        # All beams are alike at first, so that the others must not count.
        beams = tenon.arange(self.beam_size, device=device)
        scores = tenon.where(beams == 0, 0.0, -math.inf).cast(first.dtype)
        words = tenon.full(shape, self.start_token, dtype=tenon.int64, device=device)
        state = BeamSearchState(
            _map(lambda x: self.tile_beam_merge_with_batch(x, self.beam_size), inits),
            tenon.expand(scores, shape).clone(),
            words,
            tenon.zeros(shape, dtype=tenon.bool, device=device),
            tenon.zeros(shape, dtype=tenon.int64, device=device),
        )
        return self._inputs(words), state, state.finished

    def step(
        self, time: int, inputs: Tensor, states: BeamSearchState
    ) -> tuple[BeamSearchOutput, BeamSearchState, Tensor, Tensor]:
        result = self.cell(inputs, states.cell)
        if isinstance(
            self.cell, RNNCellBase
        ):  # returns its states alone, of which the first is the result
            out, cell = result if isinstance(result, Tensor) else result[0], result
        else:
            out, cell = result
        logits = out if self.output_fn is None else self.output_fn(out)
        batch = states.words.shape[0]
        likely = tenon.log_softmax(logits, -1).reshape([batch, self.beam_size, logits.shape[-1]])
        # A sequence that begins with its end has not ended.
        last = tenon.where(states.finished, self.end_token, -1)
        scores, words, parents = tenon.beam_search_step(
            likely, states.scores, last, self.beam_size, self.end_token
        )
        rows = (
            parents + tenon.arange(batch, device=parents.device).unsqueeze(1) * self.beam_size
        ).reshape([-1])
        before = tenon.gather(states.finished, parents, 1)
        lengths = tenon.gather(states.lengths, parents, 1) + tenon.where(before, 0, 1)
        finished = tenon.logical_or(before, words == self.end_token)
        cell = _map(lambda x: tenon.index_select(x, rows, 0), cell)
        return (
            BeamSearchOutput(scores, words, parents),
            BeamSearchState(cell, scores, words, finished, lengths),
            self._inputs(words),
            finished,
        )

    def finalize(
        self, outputs: BeamSearchOutput, states: BeamSearchState, lengths: Tensor
    ) -> tuple[Tensor, BeamSearchState]:
        """The words [steps, N, beams] of each beam from its first step on, best beam first."""
        return tenon.gather_tree(outputs.predicted_ids, outputs.parent_ids), states


def dynamic_decode(
    decoder: Decoder,
    inits: Any = None,
    max_step_num: int | None = None,
    output_time_major: bool = False,
    impute_finished: bool = False,
    return_length: bool = False,
) -> Any:
    """Call `decoder.step` until all sequences have ended, `max_step_num` times at most.

    Returns the outputs [N, steps, ...], or [steps, N, ...] with `output_time_major`, and the last states; with `return_length` also how many
    steps each sequence took, its end included. `impute_finished` keeps the states of sequences that have ended; with beams, which are sorted anew, it is a NotImplementedError.
    """
    if max_step_num is not None and max_step_num < 1:
        raise ValueError(f"dynamic_decode: expected max_step_num of at least 1, got {max_step_num}")
    inputs, states, finished = decoder.initialize(inits)
    if impute_finished and isinstance(states, BeamSearchState):
        raise NotImplementedError(
            "dynamic_decode: expected impute_finished=False with beams, which are sorted anew, got True; what "
            "follows the end of a beam does not count anyway"
        )
    lengths = tenon.zeros([*finished.shape], dtype=tenon.int64, device=finished.device)
    steps: list[Any] = []
    while max_step_num is None or len(steps) < max_step_num:
        outputs, after, inputs, ended = decoder.step(len(steps), inputs, states)
        if impute_finished:
            after = _kept(finished, states, after)
        lengths = lengths + tenon.where(finished, 0, 1)
        # Beams are sorted anew: a decoder that moves them counts itself.
        finished, states = (
            ended if isinstance(states, BeamSearchState) else tenon.logical_or(finished, ended),
            after,
        )
        steps.append(outputs)
        if bool(tenon.all(finished)):
            break
    joined = _joined(steps)
    lengths = states.lengths if isinstance(states, BeamSearchState) else lengths
    outputs, states = decoder.finalize(joined, states, lengths)
    if not output_time_major:
        outputs = _map(lambda x: x.transpose(0, 1), outputs)
    return (outputs, states, lengths) if return_length else (outputs, states)


def _first(value: Any) -> Tensor:
    while not isinstance(value, Tensor):
        if not value:
            raise ValueError(
                "BeamSearchDecoder: expected the states of the cell as inits, got none"
            )
        value = next(iter(value.values() if isinstance(value, dict) else value))
    return value


def _map(function: Callable[..., Any], *values: Any) -> Any:
    """A function of the tensors at the same positions of tuples, lists and dicts."""
    first = values[0]
    if isinstance(first, dict):
        return {name: _map(function, *(each[name] for each in values)) for name in first}
    if isinstance(first, (list, tuple)):
        parts = [_map(function, *each) for each in zip(*values)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    return function(*values)


def _joined(steps: list[Any]) -> Any:
    return _map(lambda *each: tenon.stack(list(each)), *steps)


def _kept(finished: Tensor, before: Any, after: Any) -> Any:
    """The states before where a sequence has ended."""

    def choose(old: Tensor, new: Tensor) -> Tensor:
        ended = (
            finished
            if list(new.shape[: finished.ndim]) == list(finished.shape)
            else finished.reshape([-1])
        )
        if new.ndim < ended.ndim or new.shape[0] != ended.shape[0]:
            return new
        return tenon.where(ended.reshape([*ended.shape, *[1] * (new.ndim - ended.ndim)]), old, new)

    return _map(choose, before, after)
