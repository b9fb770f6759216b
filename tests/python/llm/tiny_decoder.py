# SPDX-License-Identifier: Apache-2.0
"""A small decoder with random weights and a tokenizer of bytes, for tests of what runs decoders."""

from types import SimpleNamespace

import numpy as np
import tenon


class TinyDecoder:
    """Two layers of attention and a feed-forward part, with the decoder's contract of the engine."""

    def __init__(
        self, vocab=260, layers=2, heads=4, kv_heads=2, head_dim=16, positions=128, seed=0
    ):
        self.config = SimpleNamespace(
            vocab_size=vocab,
            layers=layers,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            max_positions=positions,
            eos_token_ids=(),
            window=None,
        )
        generator = np.random.default_rng(seed)
        width = heads * head_dim

        def weight(*shape):
            return tenon.asarray((generator.standard_normal(shape) * 0.3).astype("float32"))

        self.embedding = weight(vocab, width)
        self.position_rows = weight(positions, width)
        self.layers = [
            {
                "query": weight(width, width),
                "key": weight(kv_heads * head_dim, width),
                "value": weight(kv_heads * head_dim, width),
                "out": weight(width, width),
                "up": weight(4 * width, width),
                "down": weight(width, 4 * width),
            }
            for _ in range(layers)
        ]
        self.fault = None  # raised by the next step that sees the token `faulty`
        self.faulty = -1
        self.spoiled = -1  # a token whose logits are NaN
        self.steps = 0
        self.delay = None

    def new_pools(self, blocks, block_size=16, dtype="float32"):
        shape = (blocks, self.config.kv_heads, block_size, self.config.head_dim)
        return [
            (tenon.zeros(shape, dtype=dtype), tenon.zeros(shape, dtype=dtype)) for _ in self.layers
        ]

    def forward(self, tokens, positions, slots, offsets, table, lengths, picks, pools):
        if self.delay:
            self.delay()
        ids = tokens.tolist()
        if self.fault is not None and self.faulty in ids:
            raise self.fault
        self.steps += 1
        config, count = self.config, len(ids)
        counts = np.diff(offsets.numpy())
        tables = tenon.asarray(np.repeat(table.numpy(), counts, 0))
        size = pools[0][0].shape[2]
        block, place = tenon.floor_divide(slots, size), tenon.remainder(slots, size)
        x = self.embedding[tokens] + self.position_rows[positions]
        linear = tenon.nn.functional.linear
        for layer, (keys, values) in zip(self.layers, pools):
            y = tenon.nn.functional.rms_norm(x)
            query = linear(y, layer["query"]).reshape(count, config.heads, config.head_dim)
            shape = (count, config.kv_heads, config.head_dim)
            keys.transpose(1, 2)[block, place] = linear(y, layer["key"]).reshape(shape)
            values.transpose(1, 2)[block, place] = linear(y, layer["value"]).reshape(shape)
            seen = tenon.paged_attention(query, keys, values, tables, positions + 1)
            x = x + linear(seen.reshape(count, -1), layer["out"])
            y = tenon.nn.functional.rms_norm(x)
            x = x + linear(tenon.nn.functional.silu(linear(y, layer["up"])), layer["down"])
        logits = (
            linear(x[picks] * 0.1, self.embedding).numpy().copy()
            if len(picks)
            else np.zeros((0, 1))
        )
        for row, pick in enumerate(picks.tolist()):
            if ids[pick] == self.spoiled:
                logits[row] = np.nan
        return tenon.asarray(logits.astype("float32"))
