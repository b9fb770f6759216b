# SPDX-License-Identifier: Apache-2.0
"""How many models of timm and transformers, and small ones of the usual kinds, become programs that agree with PyTorch.

    python -m tests.bridges.torch_models --timm 100 --transformers 40 --own 20 [--open [alone]]

Runs where PyTorch and these packages are installed. Weights are drawn: nothing is downloaded. Prints a line for each model
and, last, how many agree within 1e-4.
"""

from __future__ import annotations

import argparse
import inspect
import math
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from typing import Any

import tenon
import torch

TIMM = (
    "resnet18 mobilenetv3_small_050 efficientnet_b0 vit_tiny_patch16_224 convnext_atto regnetx_002 densenet121 "
    "deit_tiny_patch16_224 mixer_s32_224 ghostnet_050 mnasnet_050 swin_tiny_patch4_window7_224 resnext50_32x4d "
    "seresnet18 coat_lite_tiny poolformer_s12 edgenext_xx_small levit_128s tinynet_e semnasnet_075 hardcorenas_a "
    "xcit_nano_12_p16_224 gmlp_s16_224 resmlp_12_224 mobilevit_xxs fbnetc_100 dla34 vgg11 repvgg_a0 cait_xxs24_224 "
    "resnet10t resnet14t resnet26 resnet34 resnet26d seresnext26d_32x4d legacy_seresnet18 ecaresnext26t_32x4d "
    "eca_resnet33ts gcresnext26ts skresnet18 resnest14d res2net50_48w_2s dla46_c dla46x_c dpn48b darknet17 sedarknet21 "
    "cs3darknet_s cs3darknet_focus_s ese_vovnet19b_slim_dw hrnet_w18_small mobilenetv1_100 mobilenetv2_050 "
    "mobilenetv3_large_100 mobilenetv4_conv_small mobileone_s0 fastvit_t8 repghostnet_050 ghostnetv2_100 lcnet_050 "
    "tinynet_c efficientnet_lite0 efficientnet_es tf_efficientnetv2_b0 tf_efficientnet_lite0 mixnet_s tf_mixnet_s "
    "spnasnet_100 mnasnet_small rexnet_100 regnety_002 regnetx_004 nf_regnet_b0 nf_resnet26 convnext_femto "
    "convnextv2_atto visformer_tiny vit_tiny_r_s16_p8_224 crossvit_tiny_240 crossvit_9_240 pit_ti_224 convit_tiny "
    "pvt_v2_b0 poolformerv2_s12 edgenext_x_small mobilevitv2_050 mobilevit_xs levit_conv_128s efficientformer_l1 "
    "efficientformerv2_s0 efficientvit_b0 efficientvit_m0 starnet_s1 fasternet_t0 shvit_s1 tiny_vit_5m_224 "
    "coatnet_pico_rw_224 gcvit_xxtiny repvit_m1 mambaout_femto swiftformer_xs hgnetv2_b0 hgnet_tiny repvgg_a1 "
    "xcit_tiny_12_p16_224 eva02_tiny_patch14_224 gmixer_12_224 test_vit test_resnet test_efficientnet test_byobnet "
    "test_convnext"
).split()
TRANSFORMERS = (
    "Bert GPT2 DistilBert Roberta Llama Electra Albert OPT GPTNeoX Qwen2 Mistral XLMRoberta MPNet Phi Gemma T5Encoder ViT DeiT "
    "Bloom GPTNeo Camembert Deberta DebertaV2 ConvBert FNet SqueezeBert MobileBert LayoutLM Ernie RoFormer BioGpt GPTJ Falcon "
    "Qwen3 Gemma2 StableLm Starcoder2 Cohere Olmo Phi3 Granite CodeGen Beit Dinov2 ConvNext ResNet RegNet Segformer MobileNetV2 "
    "SmolLM3 Nystromformer"
).split()
OPEN = {None: "PyTorch opens no batch", True: "open batch", False: "NO open batch"}
IMAGES = "ViT DeiT Beit Dinov2 ConvNext ResNet RegNet Segformer MobileNetV2".split()


def timm_models(count: int, only: str) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    import timm

    known = [name for name in TIMM if timm.is_model(name)]
    for name in known[:count]:
        if only not in f"timm/{name}":
            continue
        model = timm.create_model(name, pretrained=False).eval()
        size = model.default_cfg["input_size"]
        yield f"timm/{name}", model, {"x": torch.randn(1, *size)}


def own_models(count: int, only: str) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    from tests.bridges import own_models

    for make in own_models.MODELS[:count]:
        if only not in f"own/{make.__name__}":
            continue
        model, *inputs = make()
        yield f"own/{make.__name__}", model.eval(), {str(i): x for i, x in enumerate(inputs)}


def transformers_models(count: int, only: str) -> Iterator[tuple[str, Any, dict[str, Any]]]:
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
        "rotary_dim": 8,
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
    made = 0
    for name in TRANSFORMERS:
        if made == count:
            return
        if only not in f"transformers/{name}":
            continue
        base = "T5" if name == "T5Encoder" else name
        torch.manual_seed(0)
        try:
            config_class = getattr(transformers, f"{base}Config")
            known = config_class().to_dict()
            chosen = {key: value for key, value in small.items() if key in known}
            if name not in ("T5Encoder", "DistilBert"):
                chosen.pop("head_dim", None)
            model = getattr(transformers, f"{name}Model")(config_class(**chosen)).eval()
        except Exception as error:  # sizes of its own, which these do not fit
            print(f"transformers/{name}: not made: {type(error).__name__}: {error}", flush=True)
            continue
        made += 1
        if name in IMAGES:
            yield f"transformers/{name}", model, {"pixel_values": torch.randn(1, 3, 224, 224)}
        else:
            yield f"transformers/{name}", model, {"input_ids": torch.randint(1, 99, (2, 12))}


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
    with torch.no_grad():
        is_named = name.startswith("transformers")
        given = tuple(inputs.values())
        exported = torch.export.export(model, *(((), inputs) if is_named else (given,)))
        began = time.perf_counter()
        program = tenon.torch.load(exported, name=name)
        loaded = time.perf_counter() - began
        expected = tensors_of(model(**inputs) if is_named else model(*given))
        got = tensors_of(program(*[tenon.from_dlpack(each) for each in given]))
    if len(got) != len(expected):
        raise ValueError(f"{len(got)} results, and {len(expected)} of PyTorch's")
    worst = 0.0
    for one, other in zip(got, expected, strict=True):
        result = torch.from_dlpack(one)
        if result.shape != other.shape or result.dtype != other.dtype:
            raise ValueError(
                f"{result.shape} {result.dtype}, and {other.shape} {other.dtype} of PyTorch's"
            )
        result, other = result.double(), other.double()
        largest = float(other.abs().max()) if other.numel() else 0.0
        if largest == 0.0 or not math.isfinite(largest):
            raise ValueError("PyTorch's result is zero or not finite, and says nothing")
        if not result.isfinite().all():  # of NaN max() keeps what was before
            raise ValueError("a result is not finite, PyTorch's is")
        worst = max(worst, float((result - other).abs().max()) / largest)
    return worst, f"loaded in {loaded:.1f} s, {tenon.torch.report()[-1].steps} steps"


def has_open_batch(name: str, model: Any, inputs: dict[str, Any]) -> bool | None:
    """Whether one program serves other batches than the one that was exported; None: PyTorch does not export it so."""
    is_named = name.startswith("transformers")
    doubled = {key: torch.cat([each, each]) for key, each in inputs.items()}
    given = tuple(doubled.values())
    batch = torch.export.Dim("batch", max=16)
    open_axes = {key: {0: batch} for key in inputs}
    shapes: Any = open_axes if is_named else tuple(open_axes.values())
    kinds = [each.kind for each in inspect.signature(model.forward).parameters.values()]
    if not is_named and kinds == [inspect.Parameter.VAR_POSITIONAL]:
        shapes = (shapes,)  # forward(*inputs) has one argument, a tuple
    try:
        exported = torch.export.export(
            model,
            *(((), doubled) if is_named else (given,)),
            dynamic_shapes=shapes,
        )
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        print(f"{name}: {type(error).__name__}: {text}", flush=True)
        return None
    larger = {key: torch.cat([each, *[each[:1]] * 3]) for key, each in doubled.items()}
    program = tenon.torch.load(exported, name=name)
    expected = tensors_of(model(**larger) if is_named else model(*larger.values()))
    got = tensors_of(program(*[tenon.from_dlpack(each) for each in larger.values()]))
    # Networks of a hundred layers add in another order than PyTorch: the tolerance is that of the largest result.
    return all(
        torch.allclose(
            torch.from_dlpack(one), other, rtol=1e-3, atol=1e-4 * float(other.abs().max())
        )
        for one, other in zip(got, expected, strict=True)
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--timm", type=int, default=30)
    parser.add_argument("--transformers", type=int, default=20)
    parser.add_argument("--own", type=int, default=20)
    parser.add_argument(
        "--open",
        nargs="?",
        const="too",
        choices=("too", "alone"),
        help="with an open batch, too, or that alone",
    )
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--at-least", type=float, default=1.0, help="of the models agree")
    options = parser.parse_args()
    agreed = tried = opened = could_open = 0
    kinds: Counter[str] = Counter()
    for models, count in (
        (own_models, options.own),
        (transformers_models, options.transformers),
        (timm_models, options.timm),
    ):
        if count == 0:
            continue  # nor is its package imported
        iterator = models(count, options.only)
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
            draw_zeros(model)
            texts = []
            if options.open != "alone":
                try:
                    worst, text = distance(name, model, inputs)
                except Exception as error:
                    kinds[f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"] += 1
                    print(f"{name}: FAILED {type(error).__name__}: {error}", flush=True)
                    continue
                agreed += worst <= 1e-4
                kinds["values"] += worst > 1e-4
                texts += [f"{worst:.1e}", text]
            if options.open:
                with torch.no_grad():
                    try:
                        is_open = has_open_batch(name, model, inputs)
                    except Exception as error:
                        is_open = False
                        print(f"{name}: open batch: {type(error).__name__}: {error}", flush=True)
                could_open += is_open is not None
                opened += bool(is_open)
                texts.append(OPEN[is_open])
            print(f"{name}: {', '.join(texts)}", flush=True)
    if options.open:
        print(f"{opened} of {could_open} that PyTorch exports with an open batch have one")
    if options.open == "alone":
        return 0 if opened >= options.at_least * could_open else 1
    print(f"others: {dict(kinds)}")
    print(f"{agreed} of {tried} models agree within 1e-4")
    return 0 if agreed >= options.at_least * tried else 1


if __name__ == "__main__":
    sys.exit(main())
