# SPDX-License-Identifier: Apache-2.0
"""Print what a language model answers, as it comes.

tenon generate Qwen3-0.6B/ "Why is the sky blue?" --max-tokens 64 --temperature 0.7 --seed 1
"""

HELP = "print what a language model answers"


def add_arguments(parser):
    parser.add_argument("path", help="a folder of Hugging Face, or a GGUF file")
    parser.add_argument("prompt")
    parser.add_argument("--max-tokens", type=int, default=128, metavar="N")
    parser.add_argument("--chat", action="store_true", help="put the prompt in the chat template")
    parser.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end before it")
    # None: what the folder's generation_config.json recommends
    parser.add_argument("--temperature", type=float, help="0 takes the likeliest token")
    parser.add_argument("--top-k", type=int)
    parser.add_argument("--top-p", type=float)
    parser.add_argument("--min-p", type=float)
    parser.add_argument("--repetition-penalty", type=float)
    parser.add_argument("--seed", type=int)
    parser.add_argument(
        "--activations",
        default="float",
        choices=("float", "int8", "float8"),
        help="what meets packed weights: int8, which is faster, for blocks, float8 for float8 (float)",
    )


def run(arguments):
    import tenon

    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")
    given = {name: getattr(arguments, name) for name in names}
    sampling = {name: value for name, value in given.items() if value is not None}
    model = tenon.llm.load(arguments.path, activations=arguments.activations)
    prompt = arguments.prompt
    if arguments.chat:
        prompt = model.chat_prompt([{"role": "user", "content": prompt}])
    for piece in model.stream(
        prompt, max_tokens=arguments.max_tokens, stop=arguments.stop, **sampling
    ):
        print(piece, end="", flush=True)
    print()
