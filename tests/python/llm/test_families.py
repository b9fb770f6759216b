# SPDX-License-Identifier: Apache-2.0
"""Each family beside transformers: tiny models of random weights, logits and 64 greedy tokens.

Runs where torch and transformers are (requirements/peers.txt).
"""

import numpy
import pytest
from tenon.llm import LanguageModel
from tenon.llm.loading import read_decoder
from tenon.llm.sequence import BLOCK

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
torch.set_num_threads(1)

SIZES = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
GPT2 = {
    "vocab_size": 97,
    "n_embd": 64,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 256,
    "initializer_range": 0.2,
    "bos_token_id": None,
    "eos_token_id": None,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
EXPERTS = {"num_experts": 4, "moe_intermediate_size": 32, "num_experts_per_tok": 2}
MODELS = {
    "llama": ("LlamaConfig", {"attention_bias": True, "mlp_bias": True}),
    "llama tied": ("LlamaConfig", {"tie_word_embeddings": True}),
    "llama3 rope": ("LlamaConfig", {"rope_parameters": LLAMA3}),
    "linear rope": ("LlamaConfig", {"rope_parameters": LINEAR}),
    "yarn rope": ("Qwen3Config", {"head_dim": 16, "rope_parameters": YARN}),
    "mistral": ("MistralConfig", {"sliding_window": 12}),
    "qwen2": (
        "Qwen2Config",
        {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1},
    ),
    "qwen3": ("Qwen3Config", {"head_dim": 24}),
    "gemma": ("GemmaConfig", {"head_dim": 16}),
    "gemma2": ("Gemma2Config", {"head_dim": 16, "sliding_window": 10, "query_pre_attn_scalar": 20}),
    "gemma3": (
        "Gemma3TextConfig",
        {"head_dim": 16, "sliding_window": 10, "num_hidden_layers": 6, "query_pre_attn_scalar": 20},
    ),
    "gpt2": ("GPT2Config", GPT2),
    "gpt_neox": ("GPTNeoXConfig", {}),
    "gpt_neox serial": ("GPTNeoXConfig", {"use_parallel_residual": False}),
    "phi3": ("Phi3Config", {"sliding_window": 20}),
    "mixtral": ("MixtralConfig", {"num_local_experts": 4}),
    "qwen2_moe": ("Qwen2MoeConfig", {**EXPERTS, "shared_expert_intermediate_size": 48}),
    "qwen3_moe": ("Qwen3MoeConfig", {**EXPERTS, "head_dim": 16, "norm_topk_prob": True}),
}


@pytest.mark.parametrize("name", MODELS)
def test_logits_and_greedy_tokens_equal_those_of_transformers(name, tmp_path):
    torch.manual_seed(0)
    kind, options = MODELS[name]
    config = getattr(transformers, kind)(**(options if kind == "GPT2Config" else SIZES | options))
    config._attn_implementation = "eager"
    theirs = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.ndim == 1:  # norms and biases that do something
                parameter += 0.2 * torch.randn_like(parameter)
        theirs.save_pretrained(tmp_path, max_shard_size="100KB" if name == "llama" else "1GB")
        ids = torch.randint(0, 97, (1, 40))
        logits = theirs(ids).logits[0].numpy()
        sequence = ids[:, :20]
        for _ in range(64):
            best = theirs(sequence).logits[:, -1].argmax(-1, keepdim=True)
            sequence = torch.cat([sequence, best], 1)

    ours = read_decoder(tmp_path)
    for chunk in (40, 17, 1):
        found = logits_of(ours, ids[0].tolist(), chunk)
        assert numpy.abs(found - logits).max() < 1e-4
    greedy = list(LanguageModel(ours).tokens(ids[0, :20].tolist(), max_tokens=64))
    assert greedy == sequence[0, 20:].tolist()


def logits_of(decoder, ids, chunk):
    from tenon import int32, tensor

    blocks = list(reversed(range(-(-len(ids) // BLOCK))))
    pools, found = decoder.new_pools(len(blocks), BLOCK), []
    for first in range(0, len(ids), chunk):
        tokens = ids[first : first + chunk]
        positions = list(range(first, first + len(tokens)))
        slots = [blocks[place // BLOCK] * BLOCK + place % BLOCK for place in positions]
        rows = list(range(len(tokens)))
        numbers = (
            tokens,
            positions,
            slots,
            [0, len(tokens)],
            [blocks],
            [positions[-1] + 1],
            rows,
        )
        found.append(decoder(*(tensor(each, dtype=int32) for each in numbers), pools).numpy())
    return numpy.concatenate(found)
