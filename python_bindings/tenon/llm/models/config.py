# SPDX-License-Identifier: Apache-2.0
"""What a decoder is made of, as numbers and choices; a family of models is a way to fill these in."""

from __future__ import annotations

from dataclasses import dataclass

ACTIVATIONS = ("silu", "gelu", "gelu_tanh", "relu")


@dataclass(frozen=True)
class Rotary:
    """Rotary position embedding: pair i of the first 2 * len(frequencies) features of a head turns by
    `frequencies[i]` radians a position; cosines and sines are multiplied by `scale`."""

    frequencies: tuple[float, ...]
    scale: float = 1.0
    interleaved: bool = False


@dataclass(frozen=True)
class LayerOptions:
    """What may differ from layer to layer. A query sees the last `window` keys, itself among them; all
    if None."""

    window: int | None = None
    rotary: Rotary | None = None


@dataclass(frozen=True)
class Experts:
    """A mixture of experts in place of each layer's MLP: `count` of them, `per_token` of which each
    token takes by the softmax of the router, with weights that `normalize` makes sum to one. A shared
    expert of `shared_size` features, which all tokens take, is weighted by a sigmoid of its own."""

    count: int
    per_token: int
    size: int
    normalize: bool = True
    shared_size: int = 0


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes and options of a Decoder. Fields without a default are sizes of the checkpoint."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    max_positions: int
    layer_options: tuple[LayerOptions, ...]
    eos_token_ids: tuple[int, ...] = ()
    bos_token_id: int | None = None
    norm: str = "rms"  # or "layer"
    norm_eps: float = 1e-6
    post_norms: bool = False  # norms of what attention and MLP made, before they are added
    head_norms: bool = False  # rms norms of each head of queries and keys
    learned_positions: bool = False
    parallel: bool = False  # attention and MLP read the same residual
    activation: str = "silu"
    gated: bool = True  # activation(gate(x)) * up(x), else activation(up(x))
    attention_bias: bool = False  # of query, key, value
    output_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    tied_head: bool = False  # the embedding is the head
    embedding_scale: float = 1.0
    attention_scale: float | None = None  # 1 / sqrt(head_dim)
    attention_softcap: float | None = None  # cap * tanh(scores / cap)
    logits_softcap: float | None = None
    experts: Experts | None = None

    def __post_init__(self) -> None:
        for name in ("vocab_size", "hidden_size", "layers", "heads", "kv_heads", "head_dim"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if self.heads % self.kv_heads:
            raise ValueError(
                f"heads: expected a multiple of the {self.kv_heads} heads of keys, got {self.heads}"
            )
        if len(self.layer_options) != self.layers:
            raise ValueError(
                f"layer_options: expected {self.layers}, one a layer, got {len(self.layer_options)}"
            )
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"activation: expected one of {', '.join(ACTIVATIONS)}, got '{self.activation}'"
            )
        if self.norm not in ("rms", "layer"):
            raise ValueError(f"norm: expected 'rms' or 'layer', got '{self.norm}'")

    @property
    def window(self) -> int | None:
        """How many of the last keys any layer can still see: None if some layer sees all."""
        windows = [options.window for options in self.layer_options]
        return None if None in windows else max(window for window in windows if window is not None)

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of all tensors that a decoder of these options has, no more and no less."""
        shapes: dict[str, tuple[int, ...]] = {}
        hidden, features = self.hidden_size, self.heads * self.head_dim
        kv_features = self.kv_heads * self.head_dim

        def linear(name: str, rows: int, columns: int, bias: bool) -> None:
            shapes[f"{name}.weight"] = (rows, columns)
            if bias:
                shapes[f"{name}.bias"] = (rows,)

        def norm(name: str, size: int = hidden, kind: str = self.norm) -> None:
            shapes[f"{name}.weight"] = (size,)
            if kind == "layer":
                shapes[f"{name}.bias"] = (size,)

        def mlp(name: str, size: int) -> None:
            if self.gated:
                linear(f"{name}.gate", size, hidden, self.mlp_bias)
            linear(f"{name}.up", size, hidden, self.mlp_bias)
            linear(f"{name}.down", hidden, size, self.mlp_bias)

        shapes["embedding.weight"] = (self.vocab_size, hidden)
        if self.learned_positions:
            shapes["position_embedding.weight"] = (self.max_positions, hidden)
        for layer in range(self.layers):
            at = f"layers.{layer}"
            norm(f"{at}.attention_norm")
            linear(f"{at}.query", features, hidden, self.attention_bias)
            linear(f"{at}.key", kv_features, hidden, self.attention_bias)
            linear(f"{at}.value", kv_features, hidden, self.attention_bias)
            linear(f"{at}.output", hidden, features, self.output_bias)
            if self.head_norms:
                norm(f"{at}.query_norm", self.head_dim, "rms")
                norm(f"{at}.key_norm", self.head_dim, "rms")
            norm(f"{at}.mlp_norm")
            if self.post_norms:
                norm(f"{at}.attention_post_norm")
                norm(f"{at}.mlp_post_norm")
            if self.experts is None:
                mlp(f"{at}.mlp", self.intermediate_size)
                continue
            linear(f"{at}.router", self.experts.count, hidden, False)
            for expert in range(self.experts.count):
                mlp(f"{at}.experts.{expert}", self.experts.size)
            if self.experts.shared_size:
                mlp(f"{at}.shared_expert", self.experts.shared_size)
                linear(f"{at}.shared_router", 1, hidden, False)
        norm("final_norm")
        if not self.tied_head:
            linear("head", self.vocab_size, hidden, self.head_bias)
        return shapes
