# SPDX-License-Identifier: Apache-2.0
"""Write a language model as one GGUF file, its matrices in blocks of small integers.

tenon quantize Qwen3-0.6B/ qwen.gguf --format q8_0
"""

HELP = "write a language model as a GGUF file"


def add_arguments(parser):
    parser.add_argument("path", help="a folder of Hugging Face, or a GGUF file")
    parser.add_argument("output", help="the GGUF file to write")
    parser.add_argument(
        "--format",
        default="q8_0",
        help="q8_0, q4_0, q4_1, q5_0, q5_1, q2_K to q6_K, iq4_nl, iq4_xs, f16, bf16 or f32 (q8_0)",
    )


def run(arguments):
    import tenon

    model = tenon.llm.load(arguments.path)
    counts = tenon.llm.save_gguf(model, arguments.output, arguments.format)
    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    print(f"{arguments.output}: {shown}")
