# SPDX-License-Identifier: Apache-2.0
"""One decoder-only transformer, whose options cover the families of families.json.

A step is a ragged batch: T tokens of B sequences, one after another, prompts and single tokens side
by side. Keys and values of earlier tokens lie in pools of blocks, [blocks, kv_heads, block_size,
head_dim] as paged_attention has them, two a layer; a step writes its own into them, in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tenon
from tenon import Tensor
from tenon.llm.models.blocks import BlockWeight
from tenon.llm.models.config import DecoderConfig, LayerOptions, Rotary

Pools = list[tuple[Tensor, Tensor]]
Weight = Tensor | BlockWeight

# Kernels of attention and of products add in another order where there are few rows. With so many, a
# token's bits do not depend on how many tokens of its sequence a step computes.
LEAST_ROWS = 8
LEAST_CAPPED_ROWS = 24
LEAST_NARROW_ROWS = 24  # of a step with weights in bfloat16


class Decoder:
    """A model of `config` over `weights`, which are named and shaped as `config.weight_shapes()` says.

    Weights are held as they are given and never written; matrices may be in blocks. Calls from several
    threads are safe while they write to different blocks of the pools.
    """

    def __init__(self, config: DecoderConfig, weights: Mapping[str, Weight]) -> None:
        shapes = config.weight_shapes()
        for name, shape in shapes.items():
            if name not in weights:
                raise ValueError(f"Decoder: expected a weight '{name}' of shape {shape}, got none")
            if tuple(weights[name].shape) != shape:
                raise ValueError(
                    f"Decoder: weight '{name}': expected shape {shape}, got "
                    f"{tuple(weights[name].shape)}"
                )
            if isinstance(weights[name], BlockWeight) and len(shape) != 2:
                raise ValueError(f"Decoder: weight '{name}': expected a plain tensor, got blocks")
        left_over = sorted(set(weights) - set(shapes))
        if left_over:
            raise ValueError(
                f"Decoder: no part of the model takes the weights {_listed(left_over)}"
            )
        self.config = config
        self.weights = dict(weights)
        # What is computed between products of matrices, as blocks say nothing about it.
        self.dtype = self._plain("final_norm.weight").dtype
        # With fewer rows in a step, a row's bits depend on how many there are.
        narrow = any(
            weight.dtype == tenon.bfloat16
            for weight in self.weights.values()
            if not isinstance(weight, BlockWeight)
        )
        self.minimum_rows = LEAST_NARROW_ROWS if narrow else 1

    def new_pools(self, blocks: int, block_size: int = 16, dtype: str = "float32") -> Pools:
        """Keys and values [blocks, kv_heads, block_size, head_dim] of each layer, zeros."""
        config = self.config
        shape = [blocks, config.kv_heads, block_size, config.head_dim]
        return [
            (tenon.zeros(shape, dtype=dtype), tenon.zeros(shape, dtype=dtype))
            for _ in range(config.layers)
        ]

    def forward(
        self,
        tokens: Tensor,
        positions: Tensor,
        slots: Tensor,
        offsets: Tensor,
        table: Tensor,
        lengths: Tensor,
        picks: Tensor,
        pools: Pools,
    ) -> Tensor:
        """Logits [P, vocab_size], float32, of the rows `picks` [P].

        `tokens`, `positions` [T] and `slots` [T] belong to the rows: the row of the pool, block *
        block_size + place, that takes a token's key and value, -1 for none. Sequence n has the rows
        from `offsets[n]` to `offsets[n + 1]` [B + 1]; they are the last of its `lengths[n]` [B] keys,
        which lie in the blocks `table[n]` [B, blocks of a sequence]. All are int32. A number out of
        range is a ValueError that names it, before anything is written.
        """
        x = self.hidden(tokens, positions, slots, offsets, table, lengths, picks, pools)
        with tenon.no_grad():
            head = "embedding" if self.config.tied_head else "head"
            logits = self._linear(x, head).to(tenon.float32)
            return _capped(logits, self.config.logits_softcap)

    __call__ = forward

    def hidden(
        self,
        tokens: Tensor,
        positions: Tensor,
        slots: Tensor,
        offsets: Tensor,
        table: Tensor,
        lengths: Tensor,
        picks: Tensor,
        pools: Pools,
    ) -> Tensor:
        """What forward() makes logits of: the last norm's rows `picks`, [P, hidden_size]."""
        step = _Step(self.config, tokens, positions, slots, offsets, table, lengths, picks, pools)
        with tenon.no_grad():
            x = self._embed(tokens, positions)
            for layer, options in enumerate(self.config.layer_options):
                x = self._layer(x, f"layers.{layer}", options, step, pools[layer])
            return self._norm(tenon.index_select(x, picks), "final_norm")

    def _embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        x = self._rows("embedding.weight", tokens)
        if self.config.embedding_scale != 1.0:
            x = x * self.config.embedding_scale
        if self.config.learned_positions:
            x = x + self._rows("position_embedding.weight", positions)
        return x

    def _layer(
        self, x: Tensor, at: str, options: LayerOptions, step: _Step, pool: tuple[Tensor, Tensor]
    ) -> Tensor:
        attended = self._attention(self._norm(x, f"{at}.attention_norm"), at, options, step, pool)
        if self.config.post_norms:
            attended = self._norm(attended, f"{at}.attention_post_norm")
        if self.config.parallel:
            return x + attended + self._feed_forward(self._norm(x, f"{at}.mlp_norm"), at)
        x = x + attended
        made = self._feed_forward(self._norm(x, f"{at}.mlp_norm"), at)
        if self.config.post_norms:
            made = self._norm(made, f"{at}.mlp_post_norm")
        return x + made

    def _attention(
        self, x: Tensor, at: str, options: LayerOptions, step: _Step, pool: tuple[Tensor, Tensor]
    ) -> Tensor:
        config = self.config
        query = self._linear(x, f"{at}.query").reshape([-1, config.heads, config.head_dim])
        key = self._linear(x, f"{at}.key").reshape([-1, config.kv_heads, config.head_dim])
        value = self._linear(x, f"{at}.value").reshape([-1, config.kv_heads, config.head_dim])
        if config.head_norms:
            query = tenon.rms_norm(query, self._plain(f"{at}.query_norm.weight"), config.norm_eps)
            key = tenon.rms_norm(key, self._plain(f"{at}.key_norm.weight"), config.norm_eps)
        if options.rotary is not None:
            query, key = (step.turned(each, options.rotary) for each in (query, key))
        step.write(pool, key, value)
        out = tenon.concat(
            [
                step.attend(sequence, query[first:last], pool, options.window)
                for sequence, (first, last) in enumerate(step.ranges)
            ]
        )
        return self._linear(out.reshape([-1, config.heads * config.head_dim]), f"{at}.output")

    def _feed_forward(self, x: Tensor, at: str) -> Tensor:
        experts = self.config.experts
        if experts is None:
            return self._mlp(x, f"{at}.mlp")
        router = self._linear(x, f"{at}.router")
        weights, chosen = tenon.moe_gate(router, experts.per_token, experts.normalize)
        rows, counts, order = tenon.moe_dispatch(x, chosen, experts.count)
        parts = tenon.split(rows, counts.tolist(), 0)
        made = [
            self._mlp(part, f"{at}.experts.{expert}")
            for expert, part in enumerate(parts)
            if part.shape[0]
        ]
        out = tenon.moe_combine(tenon.concat(made), weights, order)
        if experts.shared_size:
            share = tenon.sigmoid(self._linear(x, f"{at}.shared_router"))
            out = out + share * self._mlp(x, f"{at}.shared_expert")
        return out

    def _mlp(self, x: Tensor, at: str) -> Tensor:
        up = self._linear(x, f"{at}.up")
        if self.config.gated:
            up = _activated(self._linear(x, f"{at}.gate"), self.config.activation) * up
        else:
            up = _activated(up, self.config.activation)
        return self._linear(up, f"{at}.down")

    def _linear(self, x: Tensor, name: str) -> Tensor:
        weight = self.weights[f"{name}.weight"]
        bias = self._plain(f"{name}.bias") if f"{name}.bias" in self.weights else None
        if isinstance(weight, BlockWeight):
            return tenon.linear_blocks(x, weight.blocks, weight.format, bias)
        if weight.dtype == tenon.bfloat16:  # whose products are faster with many rows
            return tenon.linear(x, weight, bias)
        return tenon.linear_batch_invariant(x, weight, bias)

    def _rows(self, name: str, indices: Tensor) -> Tensor:
        weight = self.weights[name]
        if isinstance(weight, BlockWeight):
            return tenon.embedding_blocks(weight.blocks, indices, weight.format).to(self.dtype)
        return tenon.embedding(weight, indices)

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight = self._plain(f"{name}.weight")
        if self.config.norm == "rms":
            return tenon.rms_norm(x, weight, self.config.norm_eps)
        bias = self._plain(f"{name}.bias")
        return tenon.layer_norm(x, weight, bias, 1, self.config.norm_eps)

    def _plain(self, name: str) -> Tensor:
        weight = self.weights[name]
        assert not isinstance(weight, BlockWeight)  # as __init__ has seen
        return weight


class _Step:
    """The numbers of a ragged batch, examined once, and what all layers do with them."""

    def __init__(
        self,
        config: DecoderConfig,
        tokens: Tensor,
        positions: Tensor,
        slots: Tensor,
        offsets: Tensor,
        table: Tensor,
        lengths: Tensor,
        picks: Tensor,
        pools: Pools,
    ) -> None:
        self.config = config
        if len(pools) != config.layers:
            raise ValueError(
                f"Decoder: expected {config.layers} pools, one a layer, got {len(pools)}"
            )
        blocks, _, self.block_size, _ = pools[0][0].shape
        rows = tokens.shape[0]
        if positions.shape[0] != rows or slots.shape[0] != rows:
            raise ValueError(
                f"Decoder: expected {rows} positions and slots, one a token, got "
                f"{positions.shape[0]} and {slots.shape[0]}"
            )
        _check_range("tokens", tokens.tolist(), 0, config.vocab_size)
        _check_range("positions", positions.tolist(), 0, config.max_positions)
        _check_range("slots", slots.tolist(), -1, blocks * self.block_size)
        _check_range("picks", picks.tolist(), 0, rows)
        self.positions = positions
        self.ranges = _ranges(offsets.tolist(), rows)
        self.lengths: list[int] = lengths.tolist()
        self.blocks = self._blocks_of_sequences(table.tolist(), blocks)
        written = [row for row, slot in enumerate(slots.tolist()) if slot >= 0]
        self._written = tenon.tensor(written, dtype=tenon.int64)
        indices = tenon.index_select(slots, self._written)
        self._block = tenon.floor_divide(indices, self.block_size)
        self._place = tenon.remainder(indices, self.block_size)
        self._tables: dict[Rotary, tuple[Tensor, Tensor]] = {}
        self._masks: dict[tuple[int, int | None], Tensor] = {}

    def _blocks_of_sequences(self, table: list[list[int]], blocks: int) -> list[Tensor]:
        if len(table) != len(self.ranges) or len(self.lengths) != len(self.ranges):
            raise ValueError(
                f"Decoder: expected {len(self.ranges)} rows of the table and lengths, one a sequence, "
                f"got {len(table)} and {len(self.lengths)}"
            )
        found = []
        for sequence, (first, last) in enumerate(self.ranges):
            length, row = self.lengths[sequence], table[sequence]
            most = len(row) * self.block_size
            if not last - first <= length <= most:
                raise ValueError(
                    f"Decoder: sequence {sequence}: expected a length from its {last - first} rows to "
                    f"the {most} slots of its blocks, got {length}"
                )
            used = row[: -(-length // self.block_size)]
            _check_range(f"sequence {sequence}: blocks", used, 0, blocks)
            found.append(tenon.tensor(used, dtype=tenon.int64))
        return found

    def turned(self, x: Tensor, rotary: Rotary) -> Tensor:
        """`x` [T, heads, head_dim] with its first features turned by the angles of the positions."""
        if rotary not in self._tables:
            frequencies = tenon.tensor(rotary.frequencies, dtype=tenon.float64)
            angles = (self.positions.to(tenon.float64).unsqueeze(-1) * frequencies).unsqueeze(1)
            self._tables[rotary] = (
                (tenon.cos(angles) * rotary.scale).to(tenon.float32),
                (tenon.sin(angles) * rotary.scale).to(tenon.float32),
            )
        cos, sin = self._tables[rotary]
        count = 2 * len(rotary.frequencies)
        head = tenon.rotary_embedding(x[..., :count], cos, sin, rotary.interleaved)
        return head if count == x.shape[-1] else tenon.concat([head, x[..., count:]], -1)

    def write(self, pool: tuple[Tensor, Tensor], key: Tensor, value: Tensor) -> None:
        """Puts the rows that have a slot into the pool."""
        if not self._written.shape[0]:
            return
        for kept, rows in zip(pool, (key, value)):
            # [blocks, block_size, kv_heads, head_dim] is a view: this writes the pool itself.
            kept.transpose(1, 2)[self._block, self._place] = tenon.index_select(
                rows, self._written
            ).to(kept.dtype)

    def attend(
        self, sequence: int, query: Tensor, pool: tuple[Tensor, Tensor], window: int | None
    ) -> Tensor:
        """Attention of the rows [t, heads, head_dim] of a sequence to its keys, in a call of its own, so
        that no other sequence changes its bits."""
        config, length = self.config, self.lengths[sequence]
        if query.shape[0] == 0:
            return query
        key, value = (self._gathered(kept, sequence, length, query.dtype) for kept in pool)
        rows = query.shape[0]
        missing = (LEAST_ROWS if config.attention_softcap is None else LEAST_CAPPED_ROWS) - rows
        if missing > 0:
            query = tenon.concat([query, query[-1:].expand([missing, *query.shape[1:]])])
        mask = self._mask(sequence, rows, query.shape[0], window)
        query = query.transpose(0, 1)
        scale = config.head_dim**-0.5 if config.attention_scale is None else config.attention_scale
        if config.attention_softcap is None:
            out = tenon.scaled_dot_product_attention(
                query, key, value, mask, scale=scale, enable_gqa=config.heads != config.kv_heads
            )
        else:
            out = self._capped_attention(query, key, value, mask, scale, config.attention_softcap)
        return out[:, :rows].transpose(0, 1)

    def _capped_attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor,
        scale: float,
        cap: float,
    ) -> Tensor:
        heads, rows, features = query.shape
        grouped = [key.shape[0], -1, features]  # the heads that share keys lie side by side
        scores = query.reshape(grouped) @ key.transpose(1, 2) * scale
        scores = _capped(scores.reshape([heads, rows, -1]), cap)
        # After the cap, which would make -inf finite.
        scores = tenon.where(mask, scores, float("-inf"))
        weights = tenon.softmax(scores, -1).reshape([key.shape[0], -1, key.shape[1]])
        return (weights @ value).reshape([heads, rows, features])

    def _gathered(self, kept: Tensor, sequence: int, length: int, dtype: tenon.dtype) -> Tensor:
        """[kv_heads, length, head_dim]"""
        rows = tenon.index_select(kept, self.blocks[sequence]).transpose(0, 1)
        return rows.reshape([kept.shape[1], -1, kept.shape[3]])[:, :length].to(dtype)

    def _mask(self, sequence: int, rows: int, padded: int, window: int | None) -> Tensor:
        """Where a query [padded, 1] sees a key [1, length]. Queries behind the first `rows` are the
        last one again."""
        length = self.lengths[sequence]
        if (sequence, window) not in self._masks:
            last = tenon.arange(length - rows, length - rows + padded).unsqueeze(1)
            last = tenon.minimum(last, tenon.tensor(length - 1))
            key = tenon.arange(length).unsqueeze(0)
            mask = key <= last
            if window is not None:
                mask = tenon.logical_and(mask, key > last - window)
            self._masks[sequence, window] = mask
        return self._masks[sequence, window]


def _ranges(offsets: Sequence[int], rows: int) -> list[tuple[int, int]]:
    ranges = list(zip(offsets[:-1], offsets[1:]))
    if offsets[0] != 0 or offsets[-1] != rows or any(first > last for first, last in ranges):
        raise ValueError(
            f"Decoder: expected offsets that rise from 0 to the {rows} rows, got {list(offsets)}"
        )
    return ranges


def _check_range(name: str, values: Sequence[int], first: int, end: int) -> None:
    for place, value in enumerate(values):
        if not first <= value < end:
            raise ValueError(
                f"Decoder: {name}: expected numbers from {first} to {end - 1}, got {value} at {place}"
            )


def _capped(x: Tensor, cap: float | None) -> Tensor:
    return x if cap is None else cap * tenon.tanh(x / cap)


def _activated(x: Tensor, activation: str) -> Tensor:
    if activation == "silu":
        return tenon.silu(x)
    if activation == "relu":
        return tenon.relu(x)
    return tenon.gelu(x, approximate=activation == "gelu_tanh")


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"'{name}'" for name in names[:most]) + more
