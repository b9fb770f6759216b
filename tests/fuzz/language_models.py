# SPDX-License-Identifier: Apache-2.0
"""Damaged GGUF files, tokenizers, chat templates and requests: each is refused by an error that says why, or works.

    PYTHONPATH=build/release/python .venv/bin/python -m tests.fuzz.language_models --minutes 5 [--seed 1]
                                                                                  [--kinds gguf,tokenizer,template,http]

They are changed as bytes and as what they hold, and read in a process of its own, which uses what it could read: a model
generates, a tokenizer splits texts, a template makes a prompt, a server answers. What ends that process, takes longer
than ten seconds, raises an error of another kind or is answered with a status of 500 is written to --out.
"""

from __future__ import annotations

import copy
import json
import logging
import random
import struct
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from .damaged_files import NUMBERS, Campaign, arguments, damaged, serve, told, used
from .saved_models import slots

LLM = Path(__file__).resolve().parents[1] / "python" / "llm"
SUFFIXES = {"gguf": ".gguf", "tokenizer": ".json", "template": ".jinja", "http": ".http"}
TEXTS = ("", "a", "\ud800", "\x00", "é" * 50, "<|end|>", "x" * 3000, "𝔘𝔫", "\\p{L}+", "(a+)+$", "▁")
DEEP = "lists in lists"  # which json.dumps could not write, and readers must not follow to the end of the stack
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is 2 + 2?"},
    {"role": "assistant", "content": "4", "tool_calls": [{"function": {"name": "f", "arguments": {"x": [1]}}}]},
    {"role": "user", "content": [{"type": "text", "text": "and 3?"}]},
]  # fmt: skip
TEMPLATES = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}",
    "{{ bos_token }}{% set ns = namespace(system='') %}{% for m in messages %}{% if m['role'] == 'system' %}"
    "{% set ns.system = m['content'] | trim %}{% elif loop.index0 % 2 == 1 %}{{ '[INST] ' ~ ns.system ~ m['content'] "
    "~ ' [/INST]' }}{% else %}{{ ' ' + m['content'] + eos_token }}{% endif %}{% endfor %}",
    "{%- macro show(x, depth=0) %}{{ x | tojson(indent=depth) }}{%- endmacro %}{% for m in messages if m.tool_calls is "
    "defined %}{% for c in m.tool_calls %}{{ show(c.function.arguments, 2) }}{% endfor %}{% else %}none{% endfor %}"
    "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='role') | join(', ') | upper }}",
    "{% if messages | length > 99 %}{{ raise_exception('too many') }}{% endif %}{{ messages[0].content.replace('B', 'b')"
    ".split(' ') | reverse | join('-') }}{% for i in range(3) %}{{ i ** 2 - i // 2 }}{% break %}{% endfor %}",
)
PIECES = (
    "{{ ''.__class__.__mro__ }}", "{{ messages.append(1) }}", "{{ 'a' * 99999999 }}", "{{ [0] * 10 ** 9 }}",
    "{{ range(10 ** 9) | list }}", "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{{ 'a'.ljust(10 ** 9) }}", "{{ '%9999999d' % 1 }}", "{{ 9 ** 9 ** 9 }}", "{{ '{:>99999999}'.format(1) }}",
    "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}", "{% include 'x' %}", "{% import 'x' as y %}",
    "{{ messages | tojson(indent=10 ** 6) }}", "{{ self }}", "{{ cycler }}", "{{ lipsum(9999) }}", "{% raw %}",
    "{{ " + "(" * 300 + ")" * 300 + " }}", "{{ " + "-" * 3000 + "1 }}", "{{ 1" + "0" * 5000 + " }}",
    "{% if 1 %}" * 60 + "{% endif %}" * 60, "{% for i in x recursive %}{{ loop(x) }}{% endfor %}",
    "{{ messages | groupby('role') | list }}", "{{ messages | sort(attribute='content') }}", "{{ x.y.z }}",
    "{{ ('a' ~ 'b') | replace('', 'c' * 9) }}", "{% set messages = messages + messages %}", "{{ 1 / 0 }}", "{%", "}}",
)  # fmt: skip
CHAT = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
TOOL = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}},
}  # fmt: skip
REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("POST /v1/completions", {"model": "tiny", "prompt": "hello", "max_tokens": 5, "temperature": 0.5, "top_p": 0.9}),
    ("POST /v1/completions", {"model": "tiny", "prompt": [[1, 2], [3]], "n": 2, "stream": True, "logprobs": 2}),
    ("POST /v1/completions", {"model": "tiny", "prompt": ["a", "b"], "stop": ["x", "yz"], "seed": 3, "max_tokens": 3}),
    ("POST /v1/chat/completions", {**CHAT, "logprobs": True, "top_logprobs": 3, "logit_bias": {"5": 1.0}}),
    ("POST /v1/chat/completions", {**CHAT, "stream": True, "stream_options": {"include_usage": True}, "user": "me"}),
    ("POST /v1/chat/completions", {**CHAT, "tools": [TOOL], "tool_choice": "auto", "presence_penalty": 0.5}),
    ("POST /v1/chat/completions", {**CHAT, "response_format": {"type": "json_object"}, "min_p": 0.1, "top_k": 5}),
    ("POST /v1/responses", {"model": "tiny", "input": "hi", "instructions": "Be brief.", "max_output_tokens": 4}),
    ("POST /v1/responses", {"model": "tiny", "input": [{"role": "user", "content": "hi"}], "stream": True}),
    ("POST /v1/embeddings", {"model": "tiny", "input": ["a", "bc"], "encoding_format": "base64", "dimensions": 3}),
    ("POST /tokenize", {"prompt": "hello", "add_special_tokens": True}),
    ("POST /detokenize", {"tokens": [104, 105, 256]}),
    ("GET /v1/models/tiny", {}),
    ("GET /metrics", {}),
)  # fmt: skip


# -- seeds and changes ------------------------------------------------------------------------------------------


def gguf_seeds() -> list[bytes]:
    """Small models of several architectures and formats."""
    from tenon.llm import ChatTemplate, LanguageModel, Tokenizer, save_gguf
    from test_gguf_models import decoder_of
    from tiny_model import byte_tokenizer

    made = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        for name, form in (
            ("llama", "q8_0"),
            ("gemma2", "q4_0"),
            ("qwen2_moe", "f16"),
            ("gpt2", "q5_1"),
        ):
            tokenizer = Tokenizer(text=json.dumps(byte_tokenizer()))
            model = LanguageModel(decoder_of(name), tokenizer, ChatTemplate(TEMPLATES[0]))
            save_gguf(model, path, form)
            made.append(path.read_bytes())
    return made


def changed_gguf(data: bytes, rng: random.Random) -> bytes:
    """Mostly in the header: weights may be anything."""
    array = bytearray(data)
    header = min(len(array), 12000)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(header)
        match rng.randrange(6):
            case 0:
                struct.pack_into("<Q", array, min(at, len(array) - 8), rng.choice(NUMBERS) % 2**64)
            case 1:
                struct.pack_into("<I", array, min(at, len(array) - 4), rng.choice(NUMBERS) % 2**32)
            case 2:
                head = damaged(bytes(array[:header]), rng)
                array[:header] = head
                header = len(head)
            case 3:
                del array[rng.randrange(len(array)) :]
                header = min(header, len(array))
                if header < 8:
                    break
            case 4:  # the number behind a name that is known
                names = [b"block_count", b"head_count", b"embedding_length", b"context_length", b"rope.",
                         b"expert_", b"token_type", b"merges", b"scores", b"alignment", b"vocab", b"eos_token"]  # fmt: skip
                found = array.find(rng.choice(names))
                if found >= 0:
                    place = min(found + rng.randrange(8, 48), len(array) - 8)
                    struct.pack_into("<I", array, place, rng.choice(NUMBERS) % 2**32)
            case _:
                array[at] = rng.randrange(256)
    return bytes(array)


def value_of(rng: random.Random) -> Any:
    match rng.randrange(5):
        case 0:
            return rng.choice(NUMBERS) * rng.choice((1, -1))
        case 1:
            return rng.choice(TEXTS)
        case 2:
            return rng.choice(
                (None, True, False, [], {}, [[]], {"a": None}, 0.5, -1e-9, 1e308, -0.0)
            )
        case 3:
            return [rng.choice(TEXTS)] * rng.choice((1, 3, 70))
        case _:
            return rng.choice((DEEP, [[[[0]]]], {"a": {"a": {"a": 1}}}))


def changed_values(content: Any, rng: random.Random) -> str:
    """The JSON of a value some of whose parts are others."""
    content = copy.deepcopy(content)
    for _ in range(rng.randint(1, 3)):
        found = slots(content)
        if not found:
            break
        container, key = rng.choice(found[: 40 if rng.random() < 0.7 else None])
        other, from_key = rng.choice(found)
        match rng.randrange(5):
            case 0:
                del container[key]
            case 1:
                container[key] = copy.deepcopy(other[from_key])
            case 2 if isinstance(container, list):
                container.insert(key, value_of(rng))
            case 3 if isinstance(container, dict):
                container[rng.choice(TEXTS)] = value_of(rng)
            case _:
                container[key] = value_of(rng)
    return json.dumps(content).replace(json.dumps(DEEP), "[" * 5000 + "]" * 5000)


def tokenizer_seeds() -> list[Any]:
    import tokenizers
    from tenon.llm.loading.gguf import GgufFile
    from tenon.llm.loading.gguf_vocabulary import tokenizer_json
    from tiny_model import byte_tokenizer

    made = [byte_tokenizer()]
    trainers = tokenizers.trainers
    for model, trainer, before in (
        (tokenizers.models.BPE(), trainers.BpeTrainer(vocab_size=150, special_tokens=["<s>"]), "ByteLevel"),
        (tokenizers.models.Unigram(), trainers.UnigramTrainer(vocab_size=150, special_tokens=["<unk>"], unk_token="<unk>"), "Metaspace"),
        (tokenizers.models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]"]), "Whitespace"),
    ):  # fmt: skip
        tokenizer = tokenizers.Tokenizer(model)
        tokenizer.pre_tokenizer = getattr(tokenizers.pre_tokenizers, before)()
        if before != "Whitespace":
            tokenizer.decoder = getattr(tokenizers.decoders, before)()
        tokenizer.normalizer = tokenizers.normalizers.NFKC()
        tokenizer.train_from_iterator([str(__doc__), *TEMPLATES], trainer)
        made.append(json.loads(tokenizer.to_str()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        path.write_bytes(gguf_seeds()[0])
        with GgufFile(path) as file:
            made.append(json.loads(tokenizer_json(file.metadata) or "{}"))
    return made


def changed_template(rng: random.Random) -> str:
    text = rng.choice(TEMPLATES)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(4):
            case 0:
                text = damaged(text.encode(), rng).decode("utf-8", "ignore")
            case 1:
                text = text[:at] + rng.choice(PIECES) + text[at:]
            case 2:
                other = rng.choice(TEMPLATES)
                start = rng.randrange(len(other))
                text = text[:at] + other[start : start + rng.randint(1, 60)] + text[at:]
            case _:
                text = text[:at] + text[at + rng.randint(1, 30) :]
    return text


class Changes:
    """Draws a case of a kind: its bytes."""

    def __init__(self, kinds: list[str]) -> None:
        sys.path.insert(0, str(LLM))
        self.files = gguf_seeds() if "gguf" in kinds else []
        self.tokenizers = tokenizer_seeds() if "tokenizer" in kinds else []

    def draw(self, kind: str, rng: random.Random) -> bytes:
        if kind == "gguf":
            return changed_gguf(rng.choice(self.files), rng)
        if kind == "template":
            return changed_template(rng).encode("utf-8", "surrogatepass")
        if kind == "tokenizer":
            text = changed_values(rng.choice(self.tokenizers), rng).encode()
            return damaged(text, rng) if rng.random() < 0.15 else text
        line, body = rng.choice(REQUESTS)
        if rng.random() < 0.1:
            line = rng.choice(REQUESTS)[0]
        text = changed_values(body, rng).encode()
        return line.encode() + b"\n" + (damaged(text, rng) if rng.random() < 0.15 else text)


# -- the process that reads -------------------------------------------------------------------------------------


class Reader:
    """Uses a case, and says what became of it."""

    def __init__(self) -> None:
        sys.path.insert(0, str(LLM))
        self.client: Any = None

    def read(self, path: Path) -> str:
        return getattr(self, f"read_{path.suffix[1:]}")(path)

    def read_gguf(self, path: Path) -> str:
        import tenon

        model = tenon.llm.load(path)

        def generate() -> object:
            if model.tokenizer:
                return model.generate("ab", max_tokens=2)
            return list(model.tokens([1, 2], max_tokens=2))

        return used(generate, (ValueError, NotImplementedError, FloatingPointError, IndexError))

    def read_json(self, path: Path) -> str:
        from tenon.llm import Tokenizer

        tokenizer = Tokenizer(path)
        texts = ("hello world", "", "é𝔘 <|end|>\n\t", "ab" * 200)
        return used(
            lambda: [tokenizer.decode(tokenizer.encode(text)) for text in texts], (ValueError,)
        )

    def read_jinja(self, path: Path) -> str:
        from tenon.llm import ChatTemplate

        text = path.read_bytes().decode("utf-8", "surrogatepass")
        template = ChatTemplate(text, {"bos_token": "<s>", "eos_token": "</s>"})
        template.render(MESSAGES, tools=[TOOL])
        return "loaded"

    def read_http(self, path: Path) -> str:
        if self.client is None:
            from tenon.llm import ChatTemplate, Engine
            from tenon.llm.server import Application, ServedModel
            from test_server import Client, decode, encode
            from tiny_decoder import TinyDecoder

            engine = Engine(TinyDecoder(), kv_cache="2MiB", max_sequences=8, max_waiting=64)
            template = ChatTemplate(TEMPLATES[0])
            served = ServedModel("tiny", engine, encode, decode, template.render, takes_tools=True)
            self.client = Client(Application(served))
        line, _, body = path.read_bytes().partition(b"\n")
        method, _, where = line.decode().partition(" ")
        status, headers, answer = self.client(method, where, raw=body)
        if status >= 500 and status != 501:
            return f"answered {status}: {answer[:300]!r}"
        if status >= 400:
            error = json.loads(answer)["error"]
            return "refused" if error["message"] else "answered an error without a text"
        if b'"internal_error"' in answer:
            return f"answered an error in a stream: {answer[-300:]!r}"
        return "loaded"


def main() -> int:
    parser = arguments(str(__doc__), "build/fuzz-llm")
    parser.add_argument("--kinds", default=",".join(SUFFIXES), help="each gets the minutes")
    options = parser.parse_args()
    if options.serve:
        logging.disable(logging.CRITICAL)
        return serve(Reader().read, (ValueError, NotImplementedError, MemoryError))
    kinds = options.kinds.split(",")
    if not set(kinds) <= set(SUFFIXES):
        parser.error(f"--kinds: expected some of {', '.join(SUFFIXES)}, got {options.kinds}")
    changes = Changes(kinds)

    def draw(folder: Path, rng: random.Random, kind: str) -> Path:
        path = folder / f"case{SUFFIXES[kind]}"
        path.write_bytes(changes.draw(kind, rng))
        return path

    campaign = Campaign("tests.fuzz.language_models", options)
    for kind in kinds:
        rng = random.Random(f"{kind} {options.seed}")
        counts = campaign.run(partial(draw, kind=kind), rng, options.minutes)
        print(f"{kind}: {told(counts)}; {campaign.failures} failed so far", flush=True)
    return campaign.end()


if __name__ == "__main__":
    sys.exit(main())
