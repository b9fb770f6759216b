# SPDX-License-Identifier: Apache-2.0
"""Networks of timm and transformers, of random weights, exported by PyTorch: predictors beside ONNX Runtime.

    PYTHONPATH=build/release/python PYTHON_WITH_THEM tests/onnx/network_suite.py [--kind timm,transformers] [-k TEXT]
                                                        [--every 1] [--least 0.95]

Needs torch, timm, transformers, onnx, onnxscript and onnxruntime. One network of each of timm's families, the smallest by its name,
and tiny ones of transformers' families. What PyTorch cannot export, or ONNX Runtime cannot run, is counted apart. Each is exported
and compared in a process of its own. Fails if a result is wrong, or if fewer of the others agree than --least.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

TOLERANCE = 1e-4  # of the largest element
SMALL = ("test_", "atto", "femto", "pico", "nano", "xxs", "xxt", "micro", "extra_small", "tiny", "xs", "_t", "mini", "small", "b0", "18", "10", "26", "lite", "_s", "34", "base", "50")  # fmt: skip
# Some families have several kinds of networks.
MORE_TIMM = ("resnext50_32x4d", "seresnet50", "resnet26t", "wide_resnet50_2", "resnet50d", "gernet_s", "regnety_002", "regnetx_002",
             "mobilenetv3_small_050", "efficientnet_es", "mnasnet_small", "fbnetc_100", "tinynet_e", "semnasnet_075", "spnasnet_100",
             "lcnet_050", "ghostnetv2_100", "vit_tiny_r_s16_p8_224", "deit3_small_patch16_224", "resmlp_12_224", "gmixer_12_224",
             "halonet26t", "botnet26t_256", "lambda_resnet26t", "eca_botnext26ts_256", "sebotnet33ts_256")  # fmt: skip
TEXT = ("bert", "roberta", "electra", "albert", "distilbert", "camembert", "xlm-roberta", "deberta", "deberta-v2", "mpnet", "squeezebert",
        "layoutlm", "convbert", "fnet", "roformer", "ernie", "megatron-bert", "nystromformer", "xlnet", "data2vec-text", "ibert",
        "gpt2", "gpt_neo", "gpt_neox", "gptj", "opt", "bloom", "codegen", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "phi",
        "phi3", "falcon", "stablelm", "starcoder2", "olmo", "granite", "cohere", "xglm", "biogpt")  # fmt: skip
IMAGES = (
    "vit",
    "deit",
    "beit",
    "convnext",
    "resnet",
    "dinov2",
    "segformer",
    "poolformer",
    "regnet",
    "mobilenet_v2",
)
TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 99,
}


def timm_names() -> list[str]:
    import timm

    names = []
    for module in timm.list_modules():
        found = timm.list_models(module=module)
        rank = [
            next((i for i, word in enumerate(SMALL) if word in name), len(SMALL)) for name in found
        ]
        if found:
            names.append(min(zip(rank, map(len, found), found))[2])
    known = set(timm.list_models())
    names += [name for name in MORE_TIMM if name in known]
    return sorted(set(names))


def names_of(kind: str) -> list[str]:
    return timm_names() if kind == "timm" else [*TEXT, *IMAGES]


# -- the process of one network --------------------------------------------------------------------------------------


def made_by_timm(name: str):
    import timm
    import torch

    model = timm.create_model(name)
    size = model.default_cfg.get("input_size", (3, 224, 224))
    if not model.default_cfg.get("fixed_input_size", False) and size[-1] >= 224:
        size = (3, 128, 128)
    return model.eval(), (torch.rand(1, *size),)


def made_by_transformers(name: str):
    import torch
    import transformers

    is_text = name in TEXT
    config = transformers.AutoConfig.for_model(name)
    for key, value in TINY.items():
        if hasattr(config, key):
            setattr(config, key, value)
    if getattr(config, "num_key_value_heads", None):
        config.num_key_value_heads = 2
    for key, value in {"head_dim": 8, "embedding_size": 32, "d_ff": 64, "rotary_dim": 8, "pad_token_id": 0, "word_embed_proj_dim": 32,
                       "ffn_dim": 64, "attention_types": [[["global", "local"], 1]]}.items():  # fmt: skip
        if getattr(config, key, None) is not None:
            setattr(config, key, value)
    config.use_cache = False
    model = transformers.AutoModel.from_config(config)

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            given = {"input_ids" if is_text else "pixel_values": x}
            return self.model(**given)[0]

    size = getattr(config, "image_size", 64)
    size = size if isinstance(size, int) else size[0]
    x = torch.randint(1, 90, (1, 12)) if is_text else torch.rand(1, 3, size, size)
    return Hidden().eval(), (x,)


def run_one(kind: str, name: str, path: str) -> dict:
    import numpy as np
    import onnxruntime
    import torch

    torch.manual_seed(0)
    try:
        model, inputs = (made_by_timm if kind == "timm" else made_by_transformers)(name)
        torch.onnx.export(model, inputs, path, input_names=["x"], opset_version=18, dynamo=True, external_data=False)  # fmt: skip
    except Exception as error:
        return {"how": "not exported", "why": f"{type(error).__name__}: {error}".splitlines()[0]}
    feeds = {"x": inputs[0].numpy()}
    try:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        wanted = session.run(None, feeds)
    except Exception as error:
        return {"how": "not run by ONNX Runtime", "why": str(error).splitlines()[0]}
    from tenon import inference

    try:
        predictor = inference.Predictor(path)
        found = [value.numpy() for value in predictor.run(feeds).values()]
        again = [value.numpy() for value in predictor.run(feeds).values()]
    except Exception as error:
        return {"how": "refused", "why": f"{type(error).__name__}: {error}"[:300]}
    worst = 0.0
    for got, same, want in zip(found, again, wanted, strict=True):
        if got.shape != want.shape or got.dtype != want.dtype:
            return {"how": "wrong", "why": f"{got.dtype}{got.shape}, not {want.dtype}{want.shape}"}
        if not np.array_equal(got, same):
            return {"how": "wrong", "why": "the second run has other bits than the first"}
        worst = max(worst, float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-6)))
    how = "equal" if worst <= TOLERANCE else "wrong"
    return {"how": how, "why": f"largest difference {worst:.1e} of the largest element"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", default="timm,transformers")
    parser.add_argument("-k", default="", help="networks whose name contains this")
    parser.add_argument("--every", type=int, default=1, help="one of so many")
    parser.add_argument(
        "--least", type=float, default=0.95, help="share of those that ran that has to agree"
    )
    parser.add_argument("--seconds", type=int, default=600, help="for each")
    options = parser.parse_args()
    failed = False
    for kind in options.kind.split(","):
        counts: collections.Counter[str] = collections.Counter()
        for name in [name for name in names_of(kind) if options.k in name][:: options.every]:
            with tempfile.TemporaryDirectory() as folder:
                command = [
                    sys.executable,
                    __file__,
                    "--one",
                    kind,
                    name,
                    str(Path(folder) / "net.onnx"),
                ]
                try:
                    done = subprocess.run(
                        command, capture_output=True, text=True, timeout=options.seconds
                    )
                    lines = done.stdout.splitlines()
                    found = (
                        json.loads(lines[-1])
                        if done.returncode == 0 and lines
                        else {"how": "wrong", "why": f"the process ended with {done.returncode}"}
                    )
                except subprocess.TimeoutExpired:
                    found = {"how": "took too long", "why": f"{options.seconds} s"}
            counts[found["how"]] += 1
            print(f"{kind} {name}: {found['how']}: {found['why']}", flush=True)
        asked = counts["equal"] + counts["refused"] + counts["wrong"]
        print(f"{kind}: {dict(counts)}")
        failed |= counts["wrong"] > 0 or counts["equal"] < options.least * asked
    return failed


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(run_one(*sys.argv[2:5])))
    else:
        sys.exit(main())
