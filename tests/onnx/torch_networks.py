# SPDX-License-Identifier: Apache-2.0
"""Networks of timm and transformers with drawn weights, exported by PyTorch: by torch.export, or by the older TorchScript.

Nothing is downloaded. Images are of 96 pixels where a network takes any size; networks of transformers are small ones, of their
configurations.
"""

from __future__ import annotations

import contextlib
import gc
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
import transformers
from compared import Case

OPSET = 20
EXPORTED_ROWS, EXPORTED_LENGTH = 2, 12
ROWS, LENGTHS = (3, 1), (17, 9)  # of the two batches

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
    "CLIPText CLIPVision SiglipText SiglipVision ViT DeiT Beit Dinov2 Swin ConvNext ResNet Segformer PoolFormer Wav2Vec2 Hubert "
    "BertForSequenceClassification BertForMaskedLM BertForQuestionAnswering RobertaForTokenClassification GPT2LMHead LlamaForCausalLM "
    "ViTForImageClassification SegformerForSemanticSegmentation Wav2Vec2ForCTC T5 Bart XLNet GPTBigCode Mamba BioGpt SmolLM3 RegNet "
    "MobileNetV2 MobileViT"
).split()
VISION = "ViT DeiT Beit Dinov2 Swin ConvNext ResNet Segformer PoolFormer CLIPVision SiglipVision RegNet MobileNetV2 MobileViT".split()
AUDIO = "Wav2Vec2 Hubert".split()
# What has a decoder of its own, that reads other numbers than the encoder.
PAIRS = "T5 Bart".split()
UNMASKED = "FNet Mamba XLNet GPTBigCode".split()  # take no mask, or one of another kind

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
    "RegNet": {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "groups_width": 8},
    "MobileNetV2": {"image_size": 64},
    "MobileViT": {"image_size": 64, "patch_size": 2, "hidden_sizes": [32, 48, 64]},
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


def timm_network(name: str) -> tuple[Any, dict[str, Any]]:
    model = timm.create_model(name, pretrained=False).eval()
    channels, height, width = model.default_cfg["input_size"]
    sizes: tuple[Any, ...]
    if not model.default_cfg.get("fixed_input_size") and not hasattr(model, "patch_embed"):
        sizes = (96, 128, 160, height)
    else:
        sizes = (height,)
    for size in sizes:  # the smallest that it takes
        x = torch.randn(EXPORTED_ROWS, channels, size, size if len(sizes) > 1 else width)
        with torch.no_grad(), contextlib.suppress(Exception):
            model(x)
            return model, {"x": x}
    raise RuntimeError(f"takes no image of {sizes} pixels")


class Values(torch.nn.Module):
    """The tensors among a network's results, in order; `names` are those of its inputs."""

    def __init__(self, model: Any, *names: str):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, x, y=None):
        given = (x,) if y is None else (x, y)
        found = self.model(**dict(zip(self.names, given, strict=True)))
        values = found.to_tuple() if hasattr(found, "to_tuple") else found
        values = values if isinstance(values, (tuple, list)) else (values,)
        return tuple(value for value in values if isinstance(value, torch.Tensor))


def padding(rows: int, length: int) -> Any:
    """Rows of ones, all but the first with zeros at their end."""
    mask = torch.ones(rows, length, dtype=torch.int64)
    mask[1:, length - 3 :] = 0
    return mask


def ids(rows: int, length: int) -> Any:
    return torch.randint(3, 99, (rows, length))


def transformers_network(name: str) -> tuple[Any, dict[str, Any]]:
    base = name.split("For")[0].removesuffix("LMHead")
    kind = getattr(transformers, name if "For" in name.removeprefix(base) else f"{name}Model")
    make = kind.config_class
    known = make().to_dict()
    chosen = {key: value for key, value in SMALL.items() if key in known}
    for key in WITHOUT.get(base, []):
        chosen.pop(key, None)
    chosen.update(OWN.get(base, {}))
    model = kind(make(**chosen)).eval()
    if base in VISION:
        size = chosen.get("image_size", 64)
        return Values(model, "pixel_values"), {"x": torch.randn(EXPORTED_ROWS, 3, size, size)}
    if base in AUDIO:
        return Values(model, "input_values"), {"x": torch.randn(EXPORTED_ROWS, 800)}
    words = ids(EXPORTED_ROWS, EXPORTED_LENGTH)
    if base in PAIRS:
        return Values(model, "input_ids", "decoder_input_ids"), {"x": words, "decoded": words + 0}
    if base in UNMASKED:
        return Values(model, "input_ids"), {"x": words}
    return Values(model, "input_ids", "attention_mask"), {
        "x": words,
        "mask": padding(EXPORTED_ROWS, EXPORTED_LENGTH),
    }


def open_axes(inputs: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The axes of inputs that are left open: the batch, and the length of texts."""
    return {name: (0, 1) if x.dtype == torch.int64 else (0,) for name, x in inputs.items()}


def export_graph(model: Any, inputs: dict[str, Any], path: Path, is_open: bool) -> None:
    """By torch.export, which closes by itself what the network does not leave open."""
    axes = open_axes(inputs)
    shapes = tuple({axis: torch.export.Dim.AUTO for axis in axes[name]} for name in inputs)
    torch.onnx.export(model, tuple(inputs.values()), str(path), input_names=list(inputs), opset_version=OPSET, dynamo=True,
                      external_data=False, verbose=False, dynamic_shapes=shapes if is_open else None)  # fmt: skip


def export_trace(model: Any, inputs: dict[str, Any], path: Path, is_open: bool) -> None:
    """By TorchScript, which writes down what one call does."""
    names = ("rows", "length")
    axes = {name: {axis: names[axis] for axis in each} for name, each in open_axes(inputs).items()}
    torch.onnx.export(model, tuple(inputs.values()), str(path), input_names=list(inputs), opset_version=OPSET, dynamo=False,
                      dynamic_axes=axes if is_open else None)  # fmt: skip


def draw(inputs: dict[str, Any], shapes: dict[str, list[Any]], batch: int) -> dict[str, np.ndarray]:
    torch.manual_seed(1 + batch)
    feeds = {}
    for name, shape in shapes.items():
        chosen = [size if isinstance(size, int) else (ROWS, LENGTHS)[axis][batch] for axis, size in enumerate(shape)]  # fmt: skip
        if name == "mask":
            feeds[name] = padding(*chosen).numpy()
        elif inputs[name].dtype == torch.int64:
            feeds[name] = ids(*chosen).numpy()
        else:
            feeds[name] = torch.randn(chosen).numpy()
    return feeds


def network(kind: str, name: str) -> Callable[[Path, bool], Case]:
    """What writes the network's model into a file, with open sizes or with those of the example."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    family, _, exporter = kind.partition("-")
    model, inputs = (timm_network if family == "timm" else transformers_network)(name)
    draw_zeros(model)
    export = export_trace if exporter else export_graph

    def origin(feeds: dict[str, Any]) -> list[Any]:
        with torch.no_grad():
            found = model(*(torch.from_numpy(feeds[key]) for key in inputs))
        return [x.numpy() for x in (found if isinstance(found, tuple) else (found,))]

    def written(path: Path, is_open: bool) -> Case:
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            export(model, inputs, path, is_open)
        gc.collect()
        return Case(path, lambda shapes, batch: draw(inputs, shapes, batch), origin)

    return written


def names(kind: str) -> list[str]:
    return TIMM if kind.startswith("timm") else TRANSFORMERS
