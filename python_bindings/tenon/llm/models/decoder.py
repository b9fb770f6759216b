# SPDX-License-Identifier: Apache-2.0
"""One decoder-only transformer, whose options cover the families of families.json.

A step is a ragged batch: T tokens of B sequences, one after another, prompts and single tokens side
by side. Keys and values of earlier tokens lie in pools of blocks, [blocks, kv_heads, block_size,
head_dim] as paged_attention has them, two a layer; a step writes its own into them, in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tenon
from tenon import Tensor
from tenon.llm.models.blocks import BlockWeight
from tenon.llm.models.config import DecoderConfig, LayerOptions, Rotary
from tenon.llm.models.float8 import Float8Weight
from tenon.llm.models.packed import PackedWeight
from tenon.llm.models.programs import StepPrograms
from tenon.llm.models.step import Numbers, Pools, check_step

Weight = Tensor | PackedWeight
# What `activations` may be for which weights, and what the errors call these.
_ROUNDED = {"int8": (BlockWeight, "blocks"), "float8": (Float8Weight, "float8")}

# Products of bfloat16 add in another order where there are few rows. With so many rows in a step, a token's
# bits do not depend on how many tokens of its sequence it computes.
LEAST_NARROW_ROWS = 24

POOL_DTYPES = ("float32", "bfloat16", "float16", "int8")  # of keys and values


class Decoder:
    """A model of `config` over `weights`, which are named and shaped as `config.weight_shapes()` says.

    Weights are held as they are given and never written; matrices may be in blocks or float8. With
    `activations` "int8" what meets blocks is rounded to 8 bits, 32 numbers at a time, and integers are
    multiplied, as llama.cpp does; with "float8" what meets matrices of float8 is rounded to float8.
    Calls from several threads are safe while they write to different blocks of the pools.
    """

    def __init__(
        self, config: DecoderConfig, weights: Mapping[str, Weight], activations: str = "float"
    ) -> None:
        if activations not in ("float", *_ROUNDED):
            raise ValueError(
                f"Decoder: expected activations 'float', 'int8' or 'float8', got {activations!r}"
            )
        if activations != "float":
            kind, called = _ROUNDED[activations]
            if not any(isinstance(weight, kind) for weight in weights.values()):
                raise ValueError(
                    f"Decoder: activations '{activations}' are for weights in {called}, of which this "
                    "model has none"
                )
        self.activations = activations
        shapes = config.weight_shapes()
        for name, shape in shapes.items():
            if name not in weights:
                raise ValueError(f"Decoder: expected a weight '{name}' of shape {shape}, got none")
            if tuple(weights[name].shape) != shape:
                raise ValueError(
                    f"Decoder: weight '{name}': expected shape {shape}, got "
                    f"{tuple(weights[name].shape)}"
                )
            if not isinstance(weights[name], Tensor) and len(shape) != 2:
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
            if isinstance(weight, Tensor)
        )
        self.minimum_rows = LEAST_NARROW_ROWS if narrow else 1
        self._stacked = self._experts_alike()
        # A program cannot follow how many rows an expert takes, but moe_linear can.
        self._programs = StepPrograms(enabled=config.experts is None or self._stacked)

    def new_pools(self, blocks: int, block_size: int = 16, dtype: str = "float32") -> Pools:
        """Keys and values [blocks, kv_heads, block_size, head_dim] of each layer, zeros. With `dtype` "int8" rows
        have four bytes more, a float32 by which their numbers are multiplied."""
        config = self.config
        if str(dtype) not in POOL_DTYPES:
            raise ValueError(
                f"Decoder: expected keys and values of {', '.join(POOL_DTYPES)}, got {dtype}"
            )
        row = config.head_dim + (4 if str(dtype) == "int8" else 0)
        if row % 4 and str(dtype) == "int8":
            raise ValueError(
                f"Decoder: keys and values of int8 need a head_dim that is a multiple of 4, got "
                f"{config.head_dim}"
            )
        shape = [blocks, config.kv_heads, block_size, row]
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
        numbers = self._checked(tokens, positions, slots, offsets, table, lengths, picks, pools)
        return self._programs.run(self._logits, numbers, pools)

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
        numbers = self._checked(tokens, positions, slots, offsets, table, lengths, picks, pools)
        with tenon.no_grad():
            return self._hidden(*numbers, pools)

    def _checked(
        self,
        tokens: Tensor,
        positions: Tensor,
        slots: Tensor,
        offsets: Tensor,
        table: Tensor,
        lengths: Tensor,
        picks: Tensor,
        pools: Pools,
    ) -> Numbers:
        """The numbers of a step, all of which are in range."""
        if len(pools) != self.config.layers:
            raise ValueError(
                f"Decoder: expected {self.config.layers} pools, one a layer, got {len(pools)}"
            )
        blocks, _, block_size, _ = pools[0][0].shape
        written = check_step(
            tokens,
            positions,
            slots,
            offsets,
            table,
            lengths,
            picks,
            self.config,
            blocks,
            block_size,
        )
        return Numbers(tokens, positions, *written, offsets, table, lengths, picks)

    def _logits(self, *arguments: Any) -> Tensor:
        x = self._hidden(*arguments)
        head = "embedding" if self.config.tied_head else "head"
        logits = self._linear(x, head).to(tenon.float32)
        return _capped(logits, self.config.logits_softcap)

    def _hidden(self, *arguments: Any) -> Tensor:
        *numbers, pools = arguments
        step = _Step(Numbers(*numbers))
        x = self._embed(step.tokens, step.positions)
        for layer, options in enumerate(self.config.layer_options):
            x = self._layer(x, f"layers.{layer}", options, step, pools[layer])
        return self._norm(tenon.index_select(x, step.picks), "final_norm")

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
        out = tenon.paged_attention(
            query,
            *pool,
            step.table,
            step.lengths,
            config.attention_scale,
            step.offsets,
            options.window,
            config.attention_softcap,
        )
        return self._linear(out.reshape([-1, config.heads * config.head_dim]), f"{at}.output")

    def _feed_forward(self, x: Tensor, at: str) -> Tensor:
        experts = self.config.experts
        if experts is None:
            return self._mlp(x, f"{at}.mlp")
        router = self._linear(x, f"{at}.router")
        weights, chosen = tenon.moe_gate(router, experts.per_token, experts.normalize)
        rows, counts, order = tenon.moe_dispatch(x, chosen, experts.count)
        if self._stacked:
            made = self._mlp_of_experts(rows, counts, f"{at}.experts")
        else:
            parts = tenon.split(rows, counts.tolist(), 0)
            made = tenon.concat(
                [
                    self._mlp(part, f"{at}.experts.{expert}")
                    for expert, part in enumerate(parts)
                    if part.shape[0]
                ]
            )
        out = tenon.moe_combine(made, weights, order)
        if experts.shared_size:
            share = tenon.sigmoid(self._linear(x, f"{at}.shared_router"))
            out = out + share * self._mlp(x, f"{at}.shared_expert")
        return out

    def _experts_alike(self) -> bool:
        """Whether the weights of each layer's experts are stored alike and have no bias, as moe_linear asks."""
        if self.config.experts is None:
            return False
        kinds: dict[tuple[str, str], set[Any]] = {}
        for name, weight in self.weights.items():
            layer, found, rest = name.partition(".experts.")
            if not found:
                continue
            module = rest.partition(".")[2]
            if module.endswith(".bias") or not isinstance(weight, Tensor | BlockWeight):
                return False
            kind = weight.format if isinstance(weight, BlockWeight) else weight.dtype
            kinds.setdefault((layer, module), set()).add(kind)
        return all(
            len(each) == 1 and (each <= {self.dtype} or all(isinstance(kind, str) for kind in each))
            for each in kinds.values()
        )

    def _mlp_of_experts(self, rows: Tensor, counts: Tensor, at: str) -> Tensor:
        """What the experts make of their rows, which lie one after another."""

        def linear(x: Tensor, module: str) -> Tensor:
            names = [f"{at}.{each}.{module}.weight" for each in range(counts.shape[0])]
            weights = [self.weights[name] for name in names]
            first = weights[0]
            if isinstance(first, BlockWeight):
                blocks = [each.blocks for each in weights if isinstance(each, BlockWeight)]
                return tenon.moe_linear(
                    x, blocks, counts, first.format, activations=self.activations
                )
            plain = [each for each in weights if isinstance(each, Tensor)]
            return tenon.moe_linear(x, plain, counts)

        up = linear(rows, "up")
        if self.config.gated:
            up = _activated(linear(rows, "gate"), self.config.activation) * up
        else:
            up = _activated(up, self.config.activation)
        return linear(up, "down")

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
        if not isinstance(weight, Tensor):
            return weight.linear(x, bias, self.activations)
        if weight.dtype == tenon.bfloat16:  # whose products are faster with many rows
            return tenon.linear(x, weight, bias)
        return tenon.linear_batch_invariant(x, weight, bias)

    def _rows(self, name: str, indices: Tensor) -> Tensor:
        weight = self.weights[name]
        if not isinstance(weight, Tensor):
            return weight.rows_at(indices).to(self.dtype)
        return tenon.embedding(weight, indices)

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight = self._plain(f"{name}.weight")
        if self.config.norm == "rms":
            return tenon.rms_norm(x, weight, self.config.norm_eps)
        bias = self._plain(f"{name}.bias")
        return tenon.layer_norm(x, weight, bias, 1, self.config.norm_eps)

    def _plain(self, name: str) -> Tensor:
        weight = self.weights[name]
        assert isinstance(weight, Tensor)  # as __init__ has seen
        return weight


class _Step:
    """What all layers do with the numbers of a step."""

    def __init__(self, numbers: Numbers) -> None:
        self.tokens, self.positions, self._rows, self._block, self._place, *rest = numbers
        self.offsets, self.table, self.lengths, self.picks = rest
        self._tables: dict[Rotary, tuple[Tensor, Tensor]] = {}

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
        if count == x.shape[-1]:
            return tenon.rotary_embedding(x, cos, sin, rotary.interleaved)
        head = tenon.rotary_embedding(x[..., :count], cos, sin, rotary.interleaved)
        return tenon.concat([head, x[..., count:]], -1)

    def write(self, pool: tuple[Tensor, Tensor], key: Tensor, value: Tensor) -> None:
        """Puts the rows that have a slot into the pool."""
        count = self._rows.shape[0]
        if not count:
            return
        for kept, rows in zip(pool, (key, value)):
            if count != rows.shape[0]:
                rows = tenon.index_select(rows, self._rows)
            rows = _with_scales(rows) if kept.dtype == tenon.int8 else rows.to(kept.dtype)
            # [blocks, block_size, kv_heads, head_dim] is a view: this writes the pool itself.
            kept.transpose(1, 2)[self._block, self._place] = rows


def _with_scales(x: Tensor) -> Tensor:
    """Rows of int8, and the four bytes of the scale with which the largest magnitude of each is 127."""
    x = x.to(tenon.float32)
    scales = tenon.max(tenon.abs(x), [-1], keepdim=True) / 127.0
    # A scale that is not above 0 is that of zeros, or NaN, which makes what is read NaN.
    codes = tenon.round(x / tenon.where(scales > 0, scales, 1.0)).to(tenon.int8)
    return tenon.concat([codes, tenon.view_dtype(scales, tenon.int8)], -1)


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
