# SPDX-License-Identifier: Apache-2.0
"""Serve a language model over HTTP with OpenAI's API.

tenon serve Qwen3-0.6B/ --port 8000
"""

import os
import pathlib

from tenon.cli.errors import USAGE, CommandError

HELP = "serve a language model over HTTP"


def add_arguments(parser):
    parser.add_argument("path", help="a folder of Hugging Face, or a GGUF file")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (8000)")
    parser.add_argument("--name", help="the model's name for clients; the folder's by default")
    parser.add_argument("--api-key", help="what clients must send; also TENON_API_KEY")
    parser.add_argument("--kv-cache", default="1GiB", help="memory of keys and values (1GiB)")
    parser.add_argument(
        "--kv-dtype",
        default="float32",
        choices=("float32", "bfloat16", "float16", "int8"),
        help="of keys and values (float32)",
    )
    parser.add_argument("--max-length", type=int, help="context; the model's by default")
    parser.add_argument("--max-sequences", type=int, default=32, help="that run at once (32)")
    parser.add_argument("--max-waiting", type=int, default=256, help="that may wait (256)")
    parser.add_argument(
        "--max-slowdown",
        type=float,
        default=1.8,
        help="times as long that prompts may make a step while others decode; inf: no bound (1.8)",
    )
    parser.add_argument(
        "--draft", help="guess tokens: 'lookup' in the text itself, or a smaller model's path"
    )
    parser.add_argument("--draft-tokens", type=int, help="of a guess (lookup: 8, a model: 4)")
    parser.add_argument("--threads", type=int, help="threads of the CPU; all by default")
    parser.add_argument(
        "--activations",
        default="float",
        choices=("float", "int8", "float8"),
        help="what meets packed weights: int8, which is faster, for blocks, float8 for float8 (float)",
    )


def run(arguments):
    import tenon

    try:
        from tenon.llm.server import Application, serve, served_model
    except ImportError as error:
        raise CommandError(
            f"serving needs more packages ({error}): pip install '.[serve]' in a checkout brings them"
        ) from None
    if not 0 <= arguments.port < 1 << 16:
        raise CommandError(f"--port: expected 0 to 65535, got {arguments.port}", USAGE)
    if arguments.threads is not None:
        tenon.set_num_threads(arguments.threads)
    draft = None
    count = () if arguments.draft_tokens is None else (arguments.draft_tokens,)
    if arguments.draft == "lookup":
        draft = tenon.llm.PromptLookup(*count)
    elif arguments.draft is not None:
        draft = tenon.llm.DraftModel(tenon.llm.load(arguments.draft), *count)
    name = arguments.name or pathlib.Path(arguments.path).resolve().name
    served = served_model(
        arguments.path,
        name,
        arguments.activations,
        kv_cache=arguments.kv_cache,
        dtype=arguments.kv_dtype,
        max_length=arguments.max_length,
        max_sequences=arguments.max_sequences,
        max_waiting=arguments.max_waiting,
        max_slowdown=arguments.max_slowdown,
        draft=draft,
    )
    key = arguments.api_key or os.environ.get("TENON_API_KEY")
    print(f"serving {name} on http://{arguments.host}:{arguments.port}", flush=True)
    serve(Application(served, api_key=key), arguments.host, arguments.port)
