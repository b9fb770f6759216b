# SPDX-License-Identifier: Apache-2.0
"""Print how well language models foretell a text.

tenon perplexity qwen.gguf text.txt --context 512 --beside Qwen3-0.6B/
"""

import pathlib

from tenon.cli.errors import CommandError

HELP = "print the perplexity of a text under a language model"


def add_arguments(parser):
    parser.add_argument("path", help="a folder of Hugging Face, or a GGUF file")
    parser.add_argument("text", help="a file of text in UTF-8")
    parser.add_argument("--context", type=int, default=512, metavar="N", help="of windows (512)")
    parser.add_argument("--stride", type=int, metavar="N", help="between windows that overlap")
    parser.add_argument(
        "--activations",
        default="float",
        choices=("float", "int8", "float8"),
        help="what meets packed weights of the first model: int8 for blocks, float8 for float8 (float)",
    )
    parser.add_argument(
        "--kv-dtype",
        default="float32",
        choices=("float32", "bfloat16", "float16", "int8"),
        help="of the first model's keys and values (float32)",
    )
    parser.add_argument(
        "--beside",
        metavar="PATH",
        help="a second model: also prints the ratio, and how far probabilities are from its",
    )


def run(arguments):
    import tenon

    try:
        text = pathlib.Path(arguments.text).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"{arguments.text}: expected UTF-8: {error}") from None
    found, models = [], []
    for path in filter(None, (arguments.path, arguments.beside)):
        activations = arguments.activations if not found else "float"
        kv_dtype = arguments.kv_dtype if not found else "float32"
        model = tenon.llm.load(path, activations=activations)
        models.append(model)
        made = tenon.llm.perplexity(
            model, text, context=arguments.context, stride=arguments.stride, kv_dtype=kv_dtype
        )
        found.append(made.value)
        print(f"{path}: {made.value:.4f} +/- {made.standard_error:.4f} over {made.tokens} tokens")
    if len(found) == 2:
        print(f"ratio: {found[0] / found[1]:.5f}")
        sizes = {model.decoder.config.vocab_size for model in models}
        if arguments.stride is None and len(sizes) == 1:
            far = tenon.llm.divergence(
                *models, text, context=arguments.context, kv_dtype=arguments.kv_dtype
            )
            print(
                f"KL divergence: {far.mean:.6f} +/- {far.standard_error:.6f} nats, "
                f"same likeliest token: {far.same_top:.2%}"
            )
