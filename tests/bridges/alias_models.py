# SPDX-License-Identifier: Apache-2.0
"""How many models of timm and transformers, run by `import torch` that means Tenon, agree with PyTorch.

    python -m tests.bridges.alias_models [--timm N] [--transformers N] [--folder FOLDER]

Runs where PyTorch and these packages are installed. One process with PyTorch draws weights and inputs and writes them with
its outputs, gradients and generated tokens; another one without PyTorch reads its files and computes the same. Nothing is
downloaded.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from typing import Any

TIMM = (
    "resnet18 resnext50_32x4d seresnet18 res2net50_26w_4s vit_tiny_patch16_224 deit_tiny_patch16_224 "
    "eva02_tiny_patch14_224 cait_xxs24_224 xcit_nano_12_p16_224 swin_tiny_patch4_window7_224 coatnet_nano_rw_224 "
    "levit_128s convnext_atto edgenext_xx_small poolformer_s12 fastvit_t8 mixer_s32_224 gmlp_s16_224 efficientnet_b0 "
    "mobilenetv3_small_050 mnasnet_050 ghostnet_050 regnetx_002 densenet121 hrnet_w18_small vgg11 inception_v3 "
    "repvgg_a0 darknet53"
).split()
TRANSFORMERS = (
    "GPT2 Llama OPT Mistral Qwen2 Gemma GPTNeoX Bert DistilBert Roberta Electra T5Encoder".split()
)
_RESULTS = ("output", "greedy", "beams")
# PyTorch's gradient of the stem differs there from its own finite differences, by a third; Tenon's agrees to 11 digits.
_OTHER_GRADIENTS = ("timm/levit_128s",)
GENERATES = "GPT2 Llama OPT Mistral Qwen2 Gemma GPTNeoX".split()
SMALL = {
    "vocab_size": 97, "hidden_size": 32, "n_embd": 32, "dim": 32, "d_model": 32, "d_kv": 16, "d_ff": 64, "hidden_dim": 64,
    "word_embed_proj_dim": 32, "embedding_size": 32, "ffn_dim": 64, "intermediate_size": 64, "head_dim": 16,
    "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2, "num_attention_heads": 2, "num_heads": 2,
    "num_key_value_heads": 1, "n_head": 2, "n_heads": 2, "max_position_embeddings": 64, "n_positions": 64,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip


def models(timm_count: int, transformers_count: int) -> Iterator[tuple[str, Any]]:
    """(name, function that builds the model), in evaluation mode."""
    for name in TIMM[:timm_count]:
        yield f"timm/{name}", lambda name=name: _timm(name)
    for name in TRANSFORMERS[:transformers_count]:
        yield f"transformers/{name}", lambda name=name: _transformers(name)


def _timm(name: str) -> Any:
    import timm

    return timm.create_model(name, pretrained=False).eval()


def _transformers(name: str) -> Any:
    import transformers

    config_class = getattr(transformers, f"{name.removesuffix('Encoder')}Config")
    known = vars(config_class())
    config = config_class(**{key: value for key, value in SMALL.items() if key in known})
    config._attn_implementation = "eager"
    suffix = "ForCausalLM" if name in GENERATES else "Model"
    names = [f"{name}LMHeadModel", f"{name}{suffix}", f"{name}Model"]
    found = next(getattr(transformers, each) for each in names if hasattr(transformers, each))
    return found(config).eval()


def _inputs(torch: Any, name: str, model: Any) -> dict[str, Any]:
    if name.startswith("timm/"):
        return {"x": torch.randn(1, *model.default_cfg["input_size"])}
    return {"input_ids": torch.randint(3, 97, (2, 7))}


def _output(torch: Any, model: Any, inputs: dict[str, Any]) -> Any:
    result = model(*inputs.values()) if "x" in inputs else model(**inputs)
    return result if isinstance(result, torch.Tensor) else result[0]


def _measured(torch: Any, name: str, model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """What is compared: the output, the gradient of one parameter, and tokens."""
    output = _output(torch, model, inputs)
    # Weights of each number: the mean of squares of a normalised output has no gradient.
    weights = torch.linspace(-1.0, 1.0, output.numel()).view(output.shape)
    (output * weights).sum().backward()
    grads = {key: p.grad for key, p in model.named_parameters() if p.grad is not None}
    first = next(iter(grads))
    found = {"output": output.detach(), first: grads[first]}
    if name.rpartition("/")[2] in GENERATES:
        with torch.no_grad():
            greedy = model.generate(**inputs, max_new_tokens=8, do_sample=False)
            beams = model.generate(**inputs, max_new_tokens=6, do_sample=False, num_beams=3)
        found |= {"greedy": greedy, "beams": beams}
    return found


def write(folder: str, timm_count: int, transformers_count: int) -> None:
    import torch

    for name, build in models(timm_count, transformers_count):
        torch.manual_seed(0)
        model = build()
        inputs = _inputs(torch, name, model)
        state = {"state": model.state_dict(), "inputs": inputs}
        state["expected"] = _measured(torch, name, model, inputs)
        torch.save(state, os.path.join(folder, name.replace("/", "_")))
        print("wrote", name, flush=True)


def read(folder: str, timm_count: int, transformers_count: int) -> int:
    from tenon.compat.torch import alias

    torch: Any = alias()
    wrong = count = 0
    for name, build in models(timm_count, transformers_count):
        path = os.path.join(folder, name.replace("/", "_"))
        if not os.path.exists(path):
            continue
        count += 1
        try:
            saved = torch.load(path)
            model = build()
            model.load_state_dict(saved["state"])
            measured = _measured(torch, name, model, saved["inputs"])
            found = {key: _difference(saved["expected"][key], measured[key]) for key in measured}
            gradients = [value for key, value in found.items() if key not in _RESULTS]
            worst = max(value for key, value in found.items() if key in _RESULTS)
            # A number near 0 that rounds to the other side of a ReLU changes a gradient much more than a result.
            ok = worst < 1e-4 and (max(gradients) < 1e-2 or name in _OTHER_GRADIENTS)
            text = f"{worst:.1e}, gradient {max(gradients):.1e}"
        except Exception as error:
            ok, text = False, f"{type(error).__name__}: {str(error)[:200]}"
            if os.environ.get("TRACE"):
                traceback.print_exc()
        wrong += not ok
        print(f"{name:40} {'agrees' if ok else 'FAILS'} {text}", flush=True)
    print(f"{count - wrong} of {count} agree")
    return bool(wrong)


def _difference(expected: Any, got: Any) -> float:
    """The largest difference to the largest magnitude; infinite for other tokens or shapes, and for NaN, which max() would
    pass over."""
    if tuple(expected.shape) != tuple(got.shape):
        return float("inf")
    if not got.dtype.is_floating_point:
        return 0.0 if bool((expected == got).all()) else float("inf")
    scale = float(expected.abs().max())
    difference = float((expected - got).abs().max()) / (scale or 1.0)
    return float("inf") if difference != difference else difference


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timm", type=int, default=len(TIMM))
    parser.add_argument("--transformers", type=int, default=len(TRANSFORMERS))
    parser.add_argument("--folder", help="where files of PyTorch are, and stay")
    parser.add_argument("--part", choices=("write", "read"), help="one of the two processes alone")
    arguments = parser.parse_args()
    counts = (arguments.timm, arguments.transformers)
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or scratch
        if arguments.part == "read":
            return read(folder, *counts)
        if arguments.part == "write":
            write(folder, *counts)
            return 0
        options = [f"--timm={counts[0]}", f"--transformers={counts[1]}", f"--folder={folder}"]
        command = [sys.executable, "-m", "tests.bridges.alias_models", *options]
        subprocess.run([*command, "--part=write"], check=True)
        return subprocess.run([*command, "--part=read"]).returncode


if __name__ == "__main__":
    sys.exit(main())
