# SPDX-License-Identifier: Apache-2.0
"""What guesses of tokens gain: an engine with PromptLookup beside the same without, on texts that repeat themselves.

    python drafts.py --model FOLDER [--threads 1] [--json results.json]

The network and texts are those of language_quality.py, kept in FOLDER by its `--model`. "repeated" is a passage of the
standard library twice and the beginning of it once more, which the model goes on with greedily; "fresh" the passage
alone. Both engines answer with the same tokens, or the program fails. They take turns, and medians count.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

import tenon
from _report import row_parser, write_rows
from tenon.llm import Engine, PromptLookup

ROUNDS, ANSWER, PASSAGE, BEGINNING = 7, 64, 64, 16


def seconds(engine: Engine, prompts: list[list[int]]) -> tuple[float, list]:
    async def ask(prompt: list[int]) -> list:
        stream = engine.stream(prompt, max_tokens=ANSWER, temperature=0.0, stop_tokens=())
        return [token async for token in stream]

    async def all_of_them() -> list:
        return [await ask(prompt) for prompt in prompts]

    began = time.perf_counter()
    answers = asyncio.run(all_of_them())
    return time.perf_counter() - began, answers


def main() -> None:
    parser = row_parser(__doc__, "two rounds")
    parser.add_argument("--model", type=Path, required=True, help="a folder of language_quality.py")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    tenon.set_num_threads(options.threads)
    model = tenon.llm.load(options.model / "model.gguf")
    tokens = model.tokenizer.encode((options.model / "test.txt").read_text())
    passages = [tokens[start : start + PASSAGE] for start in range(500, 500 + 8 * 1000, 1000)]
    texts = {
        "repeated": [passage * 2 + passage[:BEGINNING] for passage in passages],
        "fresh": passages,
    }
    rows = []
    with (
        Engine(model, kv_cache="256MiB") as plain,
        Engine(model, kv_cache="256MiB", draft=PromptLookup()) as guessing,
    ):
        for name, prompts in texts.items():
            found: dict[str, list[float]] = {"without": [], "with": []}
            drafted, accepted = guessing.drafted, guessing.accepted
            for _ in range(2 if options.quick else ROUNDS):
                took, expected = seconds(plain, prompts)
                found["without"].append(took)
                took, answers = seconds(guessing, prompts)
                found["with"].append(took)
                if answers != expected:
                    raise RuntimeError(f"{name}: answers with guesses are others")
            one, two = (statistics.median(each) for each in found.values())
            share = (guessing.accepted - accepted) / max(1, guessing.drafted - drafted)
            rows.append({"text": name, "without": one, "with": two, "accepted": share})
            print(
                f"{name}: {len(prompts) * ANSWER / one:.0f} tokens/s, with guesses "
                f"{len(prompts) * ANSWER / two:.0f}: {one / two:.2f} times; {share:.0%} were right",
                flush=True,
            )
    write_rows(options, rows)


if __name__ == "__main__":
    main()
