# SPDX-License-Identifier: Apache-2.0
"""How many models of timm and transformers become programs that agree with PyTorch.

    python -m tests.bridges.torch_models --timm 15 --transformers 15

Runs where PyTorch and these packages are installed. Weights are drawn: nothing is downloaded. Prints a line for each model
and, last, how many agree within 1e-4.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

import tenon
import torch

TIMM = (
    "resnet18 mobilenetv3_small_050 efficientnet_b0 vit_tiny_patch16_224 convnext_atto regnetx_002 densenet121 "
    "deit_tiny_patch16_224 mixer_s32_224 ghostnet_050 mnasnet_050 swin_tiny_patch4_window7_224 resnext50_32x4d "
    "seresnet18 coat_lite_tiny poolformer_s12 edgenext_xx_small levit_128s tinynet_e semnasnet_075 hardcorenas_a "
    "xcit_nano_12_p16_224 gmlp_s16_224 resmlp_12_224 mobilevit_xxs fbnetc_100 dla34 vgg11 repvgg_a0 cait_xxs24_224"
).split()
TRANSFORMERS = (
    "Bert GPT2 DistilBert Roberta Llama Electra Albert OPT GPTNeoX Qwen2 Mistral XLMRoberta MPNet Phi Gemma T5Encoder ViT DeiT "
    "Bloom GPTNeo"
).split()


def timm_models(count: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    import timm

    for name in TIMM[:count]:
        model = timm.create_model(name, pretrained=False).eval()
        size = model.default_cfg["input_size"]
        yield f"timm/{name}", model, {"x": torch.randn(1, *size)}


def transformers_models(count: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    import transformers

    small = {
        "hidden_size": 64,
        "n_embd": 64,
        "dim": 64,
        "d_model": 64,
        "num_hidden_layers": 2,
        "n_layer": 2,
        "n_layers": 2,
        "num_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "n_head": 4,
        "n_heads": 4,
        "num_heads": 4,
        "intermediate_size": 128,
        "hidden_dim": 128,
        "ffn_dim": 128,
        "d_ff": 128,
        "d_kv": 16,
        "head_dim": 16,
        "vocab_size": 100,
        "embedding_size": 64,
        "word_embed_proj_dim": 64,
        "max_position_embeddings": 64,
        "n_positions": 64,
        "attention_types": [[["global", "local"], 1]],
        "pad_token_id": 0,
        "use_cache": False,
        "return_dict": True,
    }
    for name in TRANSFORMERS[:count]:
        base = "T5" if name == "T5Encoder" else name
        config_class = getattr(transformers, f"{base}Config")
        known = config_class().to_dict()
        chosen = {key: value for key, value in small.items() if key in known}
        if name in ("Llama", "Qwen2", "Mistral", "Gemma", "Phi"):
            chosen.pop("head_dim", None)
        config = config_class(**chosen)
        model = getattr(transformers, f"{name}Model")(config).eval()
        if name in ("ViT", "DeiT"):
            yield f"transformers/{name}", model, {"pixel_values": torch.randn(1, 3, 224, 224)}
        else:
            ids = torch.randint(1, 99, (2, 12))
            yield f"transformers/{name}", model, {"input_ids": ids}


def draw_zeros(model: Any) -> None:
    """Layers that begin as zeros, so that a fresh model gives zeros."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.numel() and not parameter.any():
                parameter.normal_(0, 0.02)


def tensors_of(tree: Any) -> list[Any]:
    if isinstance(tree, (torch.Tensor, tenon.Tensor)):
        return [tree]
    if isinstance(tree, dict):
        return [leaf for each in tree.values() for leaf in tensors_of(each)]
    if isinstance(tree, (list, tuple)):
        return [leaf for each in tree for leaf in tensors_of(each)]
    return []


def distance(name: str, model: Any, inputs: dict[str, Any]) -> tuple[float, str]:
    """The largest difference of a result, relative to its largest element, and a text of times."""
    draw_zeros(model)
    with torch.no_grad():
        if name.startswith("timm"):
            exported = torch.export.export(model, tuple(inputs.values()))
        else:
            exported = torch.export.export(model, (), inputs)
        began = time.perf_counter()
        program = tenon.torch.load(exported, name=name)
        loaded = time.perf_counter() - began
        expected = tensors_of(
            model(*inputs.values()) if name.startswith("timm") else model(**inputs)
        )
        got = tensors_of(program(*[tenon.from_dlpack(each) for each in inputs.values()]))
    if len(got) != len(expected):
        raise ValueError(f"{len(got)} results, and {len(expected)} of PyTorch's")
    worst = 0.0
    for one, other in zip(got, expected, strict=True):
        result = torch.from_dlpack(one)
        if result.shape != other.shape or result.dtype != other.dtype:
            raise ValueError(
                f"{result.shape} {result.dtype}, and {other.shape} {other.dtype} of PyTorch's"
            )
        largest = float(other.abs().max()) if other.numel() else 0.0
        if largest == 0.0:
            raise ValueError("PyTorch's result is zero, which says nothing")
        worst = max(worst, float((result - other).abs().max()) / largest)
    return worst, f"loaded in {loaded:.1f} s, {tenon.torch.report()[-1].steps} steps"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--timm", type=int, default=len(TIMM))
    parser.add_argument("--transformers", type=int, default=len(TRANSFORMERS))
    options = parser.parse_args()
    agreed = tried = 0
    for models, count in ((timm_models, options.timm), (transformers_models, options.transformers)):
        iterator = models(count)
        while True:
            torch.manual_seed(0)
            try:
                name, model, inputs = next(iterator)
            except StopIteration:
                break
            except Exception:
                traceback.print_exc(limit=1)
                tried += 1
                break
            tried += 1
            try:
                worst, text = distance(name, model, inputs)
            except Exception as error:
                print(f"{name}: FAILED {type(error).__name__}: {error}", flush=True)
                continue
            agreed += worst <= 1e-4
            print(f"{name}: {worst:.1e}, {text}", flush=True)
    print(f"{agreed} of {tried} models agree within 1e-4")
    return 0 if agreed == tried else 1


if __name__ == "__main__":
    sys.exit(main())
