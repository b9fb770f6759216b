# SPDX-License-Identifier: Apache-2.0
"""Networks of timm and transformers that PyTorch exports to ONNX, beside ONNX Runtime: what agrees, what is refused and why.

    PYTHONPATH=build/release/python PYTHON_WITH_THEM tests/onnx/network_suite.py [--kind timm] [-k TEXT] [--part 1/4] [--least 133]

Needs torch, onnx, onnxscript, onnxruntime, timm and transformers. Weights are drawn: nothing is downloaded. Images are of 96 pixels
where a network takes any size. What PyTorch cannot export, or ONNX Runtime cannot run, is counted apart: it says nothing about us.
Fails if a result is wrong, or if fewer networks agree than --least.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import gc
import io
import json
import logging
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import tenon
import tenon.onnx
import torch

TOLERANCE = 1e-4  # of the largest element of a result

TIMM = (
    "resnet18 resnet26 resnet34 resnet50 resnet18d resnet50_gn resnetv2_50 resnext50_32x4d seresnet18 seresnext26d_32x4d "
    "ecaresnet26t resnetrs50 resnest14d res2net50_26w_4s skresnet18 legacy_seresnet18 wide_resnet50_2 gcresnet33ts "
    "halonet26t botnet26t_256 lambda_resnet26t lamhalobotnet50ts_256 bat_resnext26ts sehalonet33ts eca_halonext26ts "
    "mobilenetv2_050 mobilenetv3_small_050 mobilenetv3_large_100 mobilenetv4_conv_small mobilenetv4_hybrid_medium "
    "mobileone_s0 mobilevit_xxs mobilevitv2_050 efficientnet_b0 efficientnetv2_rw_t efficientnet_es tf_efficientnet_lite0 "
    "tinynet_e semnasnet_075 mnasnet_050 hardcorenas_a fbnetc_100 fbnetv3_b spnasnet_100 lcnet_050 mixnet_s ghostnet_050 "
    "ghostnetv2_100 rexnet_100 repvgg_a0 repvit_m0_9 repghostnet_050 regnetx_002 regnety_002 regnetz_b16 vgg11 vgg11_bn "
    "densenet121 dla34 dla46_c dpn48b inception_v3 inception_v4 inception_resnet_v2 xception41 xception65 nasnetalarge "
    "pnasnet5large hrnet_w18_small selecsls42b vovnet39a ese_vovnet19b_dw cs3darknet_m cspresnet50 darknet53 gernet_s "
    "nf_resnet26 nfnet_f0 dm_nfnet_f0 eca_nfnet_l0 tresnet_m convnext_atto convnextv2_atto convmixer_768_32 "
    "inception_next_tiny edgenext_xx_small fastvit_t8 efficientformer_l1 efficientformerv2_s0 efficientvit_b0 "
    "efficientvit_m0 starnet_s1 hgnet_tiny hgnetv2_b0 mambaout_femto ghostnetv3_100 focalnet_tiny_srf "
    "vit_tiny_patch16_224 vit_tiny_r_s16_p8_224 vit_relpos_small_patch16_224 vit_small_patch14_dinov2 eva02_tiny_patch14_224 "
    "deit_tiny_patch16_224 deit3_small_patch16_224 beit_base_patch16_224 beitv2_base_patch16_224 flexivit_small "
    "cait_xxs24_224 xcit_nano_12_p16_224 crossvit_tiny_240 coat_lite_tiny convit_tiny levit_128s pit_ti_224 "
    "visformer_tiny tnt_s_patch16_224 twins_pcpvt_small twins_svt_small swin_tiny_patch4_window7_224 "
    "swinv2_tiny_window8_256 swinv2_cr_tiny_ns_224 maxvit_rmlp_nano_rw_256 coatnet_nano_rw_224 coatnext_nano_rw_224 "
    "poolformer_s12 poolformerv2_s12 caformer_s18 convformer_s18 davit_tiny gcvit_xxtiny mvitv2_tiny nest_tiny "
    "pvt_v2_b0 sequencer2d_s volo_d1_224 mixer_s32_224 gmlp_s16_224 resmlp_12_224 nextvit_small tiny_vit_5m_224 hiera_tiny_224 "
    "tiny_vit_11m_224 samvit_base_patch16_224 shvit_s1 swiftformer_xs rdnet_tiny"
).split()

TRANSFORMERS = (
    "Bert Roberta DistilBert Albert Electra MPNet XLMRoberta Camembert Ernie Data2VecText MobileBert SqueezeBert Deberta DebertaV2 "
    "ConvBert RoFormer Nystromformer FNet MegatronBert LayoutLM Funnel XLM GPT2 GPTNeo GPTNeoX GPTJ OPT Bloom CodeGen Llama Mistral "
    "Qwen2 Qwen3 Gemma Gemma2 Phi Phi3 Falcon StableLm Olmo Olmo2 Starcoder2 Cohere Granite Persimmon Glm T5Encoder MT5Encoder "
    "CLIPText CLIPVision SiglipText SiglipVision ViT DeiT Beit Dinov2 Swin ConvNext ResNet Segformer PoolFormer Wav2Vec2 Hubert"
).split()
VISION = (
    "ViT DeiT Beit Dinov2 Swin ConvNext ResNet Segformer PoolFormer CLIPVision SiglipVision".split()
)
AUDIO = "Wav2Vec2 Hubert".split()

SMALL = {
    "hidden_size": 64, "n_embd": 64, "dim": 64, "d_model": 64, "emb_dim": 64, "embedding_size": 64, "word_embed_proj_dim": 64,
    "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2, "num_blocks": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "n_head": 4, "n_heads": 4, "num_heads": 4, "intermediate_size": 128, "hidden_dim": 128, "ffn_dim": 128,
    "d_ff": 128, "d_inner": 128, "d_kv": 16, "d_head": 16, "head_dim": 16, "rotary_dim": 8, "n_positions": 64, "vocab_size": 100,
    "max_position_embeddings": 64, "max_sequence_length": 64, "pad_token_id": 0, "use_cache": False, "return_dict": True,
    "block_sizes": [1, 1], "num_landmarks": 4, "segment_means_seq_len": 16, "sliding_window": 32, "true_hidden_size": 32,
    "intra_bottleneck_size": 32, "query_pre_attn_scalar": 16, "image_size": 32, "patch_size": 8, "conv_dim": [32, 32],
    "conv_stride": [5, 2], "conv_kernel": [10, 3], "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
# What else a network needs, or what of the above does not suit it.
OWN: dict[str, dict[str, Any]] = {
    "GPTNeo": {"attention_types": [[["global", "local"], 1]], "num_layers": 2},
    "MobileBert": {"hidden_size": 64, "embedding_size": 32},
    "Bloom": {"n_layer": 2},
    "Swin": {"image_size": 64, "patch_size": 4, "depths": [1, 1], "num_heads": [2, 4], "embed_dim": 32, "window_size": 4},
    "ConvNext": {"image_size": 64, "patch_size": 4, "hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1]},
    "ResNet": {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "layer_type": "basic"},
    "Segformer": {"image_size": 64, "num_attention_heads": [1, 2, 4, 8], "depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 48, 64],
                  "patch_sizes": [7, 3, 3, 3], "num_encoder_blocks": 4},
    "PoolFormer": {"image_size": 64, "patch_size": 16, "depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 48, 64]},
    "Funnel": {"d_model": 64, "block_sizes": [1, 1], "num_decoder_layers": 1},
    "XLM": {"emb_dim": 64},
    "ConvBert": {"embedding_size": 64, "hidden_size": 64},
    "FNet": {"tpu_short_seq_length": 12},
}  # fmt: skip
WITHOUT = {  # parameters of which the class computes the value
    "Llama": ["head_dim"], "Qwen2": ["head_dim"], "Mistral": ["head_dim"], "Phi": ["head_dim"], "Olmo": ["head_dim"],
    "Swin": ["hidden_size", "num_layers"], "Segformer": ["patch_size"], "ResNet": ["image_size"], "Falcon": ["head_dim"],
}  # fmt: skip


def draw_zeros(model: Any) -> None:
    """Layers that begin as zeros, so that a fresh network hides what is behind them."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.numel() and parameter.is_floating_point() and not parameter.any():
                parameter.normal_(0, 0.02)


def timm_model(name: str) -> tuple[Any, dict[str, Any]]:
    import timm

    model = timm.create_model(name, pretrained=False).eval()
    channels, height, width = model.default_cfg["input_size"]
    sizes: tuple[Any, ...]
    if not model.default_cfg.get("fixed_input_size") and not hasattr(model, "patch_embed"):
        sizes = (96, 128, 160, height)
    else:
        sizes = (height,)
    for size in sizes:  # the smallest that it takes
        x = torch.randn(1, channels, size, size if len(sizes) > 1 else width)
        with torch.no_grad(), contextlib.suppress(Exception):
            model(x)
            return model, {"x": x}
    raise RuntimeError(f"takes no image of {sizes} pixels")


class Values(torch.nn.Module):
    """The tensors among a network's results, in order."""

    def __init__(self, model: Any, name: str):
        super().__init__()
        self.model, self.name = model, name

    def forward(self, x):
        found = self.model(**{self.name: x})
        values = found.to_tuple() if hasattr(found, "to_tuple") else found
        values = values if isinstance(values, (tuple, list)) else (values,)
        return tuple(value for value in values if isinstance(value, torch.Tensor))


def transformers_model(name: str) -> tuple[Any, dict[str, Any]]:
    import transformers

    base = {"T5Encoder": "T5", "MT5Encoder": "MT5"}.get(name, name)
    make = getattr(transformers, f"{base}Config")
    known = make().to_dict()
    chosen = {key: value for key, value in SMALL.items() if key in known}
    for key in WITHOUT.get(name, []):
        chosen.pop(key, None)
    chosen.update(OWN.get(name, {}))
    kind = f"{name}Model"
    model = getattr(transformers, kind)(make(**chosen)).eval()
    if name in VISION:
        size = chosen.get("image_size", 64)
        return Values(model, "pixel_values"), {"x": torch.randn(1, 3, size, size)}
    if name in AUDIO:
        return Values(model, "input_values"), {"x": torch.randn(1, 800)}
    return Values(model, "input_ids"), {"x": torch.randint(3, 99, (2, 12))}


def exported(model: Any, inputs: dict[str, Any], path: Path) -> None:
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(model, tuple(inputs.values()), str(path), input_names=list(inputs), opset_version=20, dynamo=True,
                          external_data=False, verbose=False)  # fmt: skip


def distance(got: list[Any], want: list[Any]) -> float:
    if len(got) != len(want):
        raise ValueError(f"{len(got)} results, {len(want)} of ONNX Runtime")
    worst = 0.0
    for ours, theirs in zip(got, want, strict=True):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            raise ValueError(
                f"{ours.shape} {ours.dtype}, {theirs.shape} {theirs.dtype} of ONNX Runtime"
            )
        if theirs.size == 0:
            continue
        if theirs.dtype.kind != "f":
            worst = max(worst, float((ours != theirs).any()))
            continue
        largest = float(np.abs(theirs).max())
        if not np.isfinite(largest) or largest == 0:
            raise ValueError("the result of ONNX Runtime is zero or not finite, and says nothing")
        if not np.isfinite(ours).all():  # of NaN max() keeps what was before
            raise ValueError("a result is not finite, that of ONNX Runtime is")
        worst = max(worst, float(np.abs(ours - theirs).max()) / largest)
    return worst


def short(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])[:300]}"


def result_of(kind: str, name: str, folder: Path) -> dict[str, Any]:
    """A network's kind, name, state (agrees, wrong, refused, not exported, not run), difference and reason."""
    row: dict[str, Any] = {"kind": kind, "name": name, "state": "not exported"}
    path = folder / f"{name}.onnx"
    torch.manual_seed(0)
    began = time.perf_counter()
    try:
        model, inputs = (timm_model if kind == "timm" else transformers_model)(name)
        draw_zeros(model)
        exported(model, inputs, path)
        del model
        gc.collect()
        row["exported_s"] = round(time.perf_counter() - began, 1)
        row["state"] = "not run"
        arrays = {key: value.numpy() for key, value in inputs.items()}
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
        want = session.run(None, arrays)
        del session
        row["state"] = "refused"
        began = time.perf_counter()
        predictor = tenon.inference.Predictor(str(path))
        given = {key: tenon.from_numpy(value) for key, value in arrays.items()}
        predictor.run(given)  # step by step; the second one runs what is joined
        got = [value.numpy() for value in predictor.run(given).values()]
        row["run_s"] = round(time.perf_counter() - began, 1)
        row["state"] = "wrong"
        row["difference"] = distance(got, want)
        if row["difference"] <= TOLERANCE:
            row["state"] = "agrees"
        else:
            row["reason"] = f"differs by {row['difference']:.1e}"
    except Exception as error:
        row["reason"] = short(error)
    finally:
        path.unlink(missing_ok=True)
        gc.collect()
    return row


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", choices=["timm", "transformers"])
    parser.add_argument("-k", default="", help="networks whose name contains this")
    parser.add_argument(
        "--part", default="1/1", help="of how many: 2/4 is every fourth from the second on"
    )
    parser.add_argument("--timm", type=int, default=100, help="how many that PyTorch exports")
    parser.add_argument("--transformers", type=int, default=40)
    parser.add_argument("--least", type=int, default=0, help="how many have to agree")
    parser.add_argument(
        "--json", type=Path, help="a line for each network; what is there is not run again"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    tenon.set_num_threads(1)
    part, parts = map(int, options.part.split("/"))
    known = {}
    if options.json and options.json.exists():
        rows = [json.loads(line) for line in options.json.read_text().splitlines()]
        known = {(row["kind"], row["name"]): row for row in rows}
    states: dict[str, collections.Counter[str]] = {}
    for kind, names in (("timm", TIMM), ("transformers", TRANSFORMERS)):
        if options.kind not in (None, kind):
            continue
        wanted = getattr(options, kind)
        counted = states[kind] = collections.Counter()
        for name in names[part - 1 :: parts]:
            if options.k not in name:
                continue
            if sum(counted[each] for each in ("agrees", "wrong", "refused")) * parts >= wanted:
                break
            row = known.get((kind, name))
            if row is None:
                with tempfile.TemporaryDirectory() as folder:
                    row = result_of(kind, name, Path(folder))
                if options.json:
                    with options.json.open("a") as file:
                        file.write(json.dumps(row) + "\n")
            counted[row["state"]] += 1
            text = row.get("reason") or f"{row['difference']:.1e}"
            print(f"{kind}/{name}: {row['state']}: {text}", flush=True)
    agree = wrong = 0
    for kind, counted in states.items():
        tried = sum(counted[each] for each in ("agrees", "wrong", "refused"))
        print(f"{kind}: {counted['agrees']} of {tried} agree within {TOLERANCE}; {dict(counted)}")
        agree, wrong = agree + counted["agrees"], wrong + counted["wrong"]
    return 1 if wrong or agree < options.least else 0


if __name__ == "__main__":
    sys.exit(main())
