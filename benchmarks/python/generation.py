# SPDX-License-Identifier: Apache-2.0
"""Tokens a second of one sequence: `tenon.llm` beside llama.cpp, which the wheel `xllamacpp` has.

    python generation.py [--quick] [--threads 1] [--only 25M] [--formats f32,q8_0] [--clock cpu]
                         [--json results.json]
    python generation.py --start [--only 1B] [--formats q4_0]

Random Llamas of 25 and 125 million weights (a thousand million with `--only 1B`), written by `save_gguf` and read by both. A prompt of 256 tokens
is timed with one token behind it, and with 33; what these take more is the time of 32. Libraries take turns,
and the best of the rounds counts. "tenon int8" rounds what meets weights in blocks to 8 bits, as llama.cpp does.
On a machine that others use, too, `--clock cpu` takes the time of processors, of all threads, instead of the
clock's. `--start` tells how long a new process takes from its beginning to its first token, and what memory eight of
them share, of a file that has been read before.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tenon
from _report import row_parser, write_rows
from tenon.llm import Decoder, DecoderConfig, LanguageModel, Tokenizer
from tenon.llm.models import LayerOptions, Rotary

PROMPT, ANSWER = 256, 33
SIZES = {
    "25M": (384, 8, 16000),
    "125M": (768, 12, 32000),
    "1B": (2048, 20, 32000),
}  # width, layers, tokens


def model_of(width: int, layers: int, tokens: int) -> LanguageModel:
    rotary = Rotary(tuple(10000.0 ** (-2 * pair / 64) for pair in range(32)))
    config = DecoderConfig(
        vocab_size=tokens,
        hidden_size=width,
        intermediate_size=width * 8 // 3 // 32 * 32,
        layers=layers,
        heads=width // 64,
        kv_heads=width // 64,
        head_dim=64,
        max_positions=512,
        layer_options=(LayerOptions(rotary=rotary),) * layers,
        eos_token_ids=(0,),
        bos_token_id=1,
    )
    numbers = np.random.default_rng(0)
    weights = {
        name: tenon.from_numpy(numbers.normal(0, 0.05, shape).astype("float32"))
        for name, shape in config.weight_shapes().items()
    }
    # A token a number in hexadecimal: llama.cpp reads no file without a vocabulary.
    level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    names = {f"{number:x}.": number for number in range(tokens)}
    made = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": level,
        "decoder": level,
        "model": {"type": "BPE", "vocab": names, "merges": []},
    }
    return LanguageModel(Decoder(config, weights), Tokenizer(text=json.dumps(made)))


def tenon_call(path: str, activations: str = "float"):
    model = tenon.llm.load(path, activations=activations)

    def call(prompt: list[int], count: int) -> None:
        assert len(list(model.tokens(prompt, max_tokens=count, logit_bias={0: -100.0}))) == count

    return call


def llama_cpp_call(path: str, threads: int):
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path, settings.n_ctx, settings.n_parallel = path, 512, 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.verbosity = 0
    server = xllamacpp.Server(settings)

    def call(prompt: list[int], count: int) -> None:
        answer = server.handle_completions(
            {
                "prompt": prompt,
                "n_predict": count,
                "temperature": 0,
                "cache_prompt": False,
                "ignore_eos": True,
            }
        )
        assert answer["usage"]["completion_tokens"] == count, answer

    return call


# Prints how long its process has been there with the first token, and waits for a line.
STARTED = """
import sys, time, tenon
tenon.set_num_threads(int(sys.argv[2]))
model = tenon.llm.load(sys.argv[1], activations="int8")
next(iter(model.tokens([5, 12, 19], max_tokens=1)))
with open("/proc/self/stat") as file:
    began = int(file.read().rpartition(")")[2].split()[19])
with open("/proc/uptime") as file:
    print(float(file.read().split()[0]) - began / 100, flush=True)
sys.stdin.readline()
"""


def pss(process: int) -> int:
    """KiB, of which what is shared counts in parts."""
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise RuntimeError("no Pss in smaps_rollup")


def measure_start(path: str, threads: int) -> dict[str, float]:
    """Seconds to the first token (the median of five), and the memory of eight processes beside that of one."""

    def begin() -> tuple[subprocess.Popen, float]:
        command = [sys.executable, "-c", STARTED, path, str(threads)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return process, float(process.stdout.readline())

    def end(process: subprocess.Popen) -> None:
        process.communicate("\n")

    found = []
    for _ in range(6):
        process, seconds = begin()
        found.append(seconds)
        alone = pss(process.pid)
        end(process)
    eight = [begin()[0] for _ in range(8)]
    together = sum(pss(process.pid) for process in eight)
    for process in eight:
        end(process)
    return {
        "first token": statistics.median(found[1:]),  # the first has read the file
        "MiB of one": alone / 1024,
        "MiB of eight": together / 1024,
    }


def times(call, prompt: list[int], clock) -> tuple[float, float]:
    """Seconds of the prompt with one token, and with all of them."""
    start = clock()
    call(prompt, 1)
    middle = clock()
    call(prompt, ANSWER)
    return middle - start, clock() - middle


def main() -> None:
    parser = row_parser(__doc__, "the small model, two rounds")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="a size: 25M, 125M or 1B")
    parser.add_argument("--start", action="store_true", help="of new processes, without peers")
    parser.add_argument("--formats", default="f32,q8_0,q4_0", help="f32,q8_0,q4_0")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    options = parser.parse_args()
    rounds = 2 if options.quick else options.rounds
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    tenon.set_num_threads(options.threads)
    prompt = [5 + 7 * place % 900 for place in range(PROMPT)]
    rows = []
    for size, shape in SIZES.items():
        if options.only not in ("", size) or (options.quick and size != "25M"):
            continue
        if size == "1B" and not options.only:
            continue
        model = model_of(*shape)
        for form in options.formats.split(","):
            with tempfile.TemporaryDirectory() as folder:
                path = f"{folder}/model.gguf"
                tenon.llm.save_gguf(model, path, form)
                if options.start:
                    row = {"size": size, "format": form, **measure_start(path, options.threads)}
                    rows.append(row)
                    print(
                        f"{size} {form}: first token {row['first token']:.2f} s after the process, "
                        f"{row['MiB of one']:.0f} MiB, eight {row['MiB of eight']:.0f} MiB "
                        f"({row['MiB of eight'] / row['MiB of one']:.2f})",
                        flush=True,
                    )
                    continue
                calls = {"tenon": tenon_call(path)}
                if form not in ("f32", "f16", "bf16"):
                    calls["tenon int8"] = tenon_call(path, "int8")
                calls["llama.cpp"] = llama_cpp_call(path, options.threads)
                best = {name: (float("inf"), float("inf")) for name in calls}
                for _ in range(rounds):
                    for name, call in calls.items():
                        first, whole = times(call, prompt, clock)
                        best[name] = min(best[name][0], first), min(best[name][1], whole)
            for name, (first, whole) in best.items():
                rest = whole - first
                row = {
                    "size": size,
                    "format": form,
                    "library": name,
                    "threads": options.threads,
                    "clock": options.clock,
                    "prompt tokens/s": PROMPT / first,
                    "tokens/s": (ANSWER - 1) / rest,
                }
                rows.append(row)
                print(
                    f"{size:5} {form:5} {name:10} prompt {row['prompt tokens/s']:8.0f} tokens/s, "
                    f"then {row['tokens/s']:7.1f} tokens/s",
                    flush=True,
                )
    write_rows(options, rows)


if __name__ == "__main__":
    main()
