# SPDX-License-Identifier: Apache-2.0
"""A tiny model as Hugging Face's folders hold one."""

import json

import numpy
import tenon
from tenon.io import safetensors

CONFIG = {
    "model_type": "llama",
    "vocab_size": 256,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "torch_dtype": "float32",
    "tie_word_embeddings": False,
}


def byte_tokenizer():
    """A token a byte, in the format of the library `tokenizers`."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that stand for themselves
    others = [byte for byte in range(256) if byte not in shown]
    symbols = {byte: chr(byte) for byte in shown}
    symbols |= {byte: chr(256 + place) for place, byte in enumerate(others)}
    level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    return {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": level,
        "decoder": level,
        "model": {"type": "BPE", "vocab": {symbols[b]: b for b in range(256)}, "merges": []},
    }


def folder_of(path, width=16):
    """Writes the model to `path`, which it returns."""
    wide = 3 * width // 2
    numbers = numpy.random.default_rng(3)
    shapes = {"model.embed_tokens": (256, width), "lm_head": (256, width), "model.norm": (width,)}
    for layer in range(2):
        at = f"model.layers.{layer}"
        shapes |= {f"{at}.input_layernorm": (width,), f"{at}.post_attention_layernorm": (width,)}
        shapes |= {f"{at}.self_attn.{name}_proj": (width, width) for name in "qo"}
        shapes |= {f"{at}.self_attn.{name}_proj": (width // 2, width) for name in "kv"}
        shapes |= {f"{at}.mlp.{name}_proj": (wide, width) for name in ("gate", "up")}
        shapes[f"{at}.mlp.down_proj"] = (width, wide)
    tensors = {
        f"{name}.weight": tenon.from_numpy(numbers.normal(0, 0.5, shape).astype(numpy.float32))
        for name, shape in shapes.items()
    }
    config = CONFIG | {"hidden_size": width, "intermediate_size": wide}
    safetensors.write(path / "model.safetensors", tensors)
    (path / "config.json").write_text(json.dumps(config))
    (path / "tokenizer.json").write_text(json.dumps(byte_tokenizer()))
    return path
