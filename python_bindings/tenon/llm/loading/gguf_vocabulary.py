# SPDX-License-Identifier: Apache-2.0
"""Vocabularies of GGUF files as tokenizers of the library `tokenizers`, and back.

Two models are known. "gpt2" is byte-level BPE, with merges and the name of a pattern that splits texts
into words. "llama" is SentencePiece's BPE: a score for each token, the pairs that make the token of the
highest score are merged first, and bytes that no token has are tokens of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_NORMAL, _UNKNOWN, _CONTROL, _USER, _UNUSED, _BYTE = range(1, 7)
_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_CASED = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s|%s"
)
_ENDINGS = r"| ?[^\s\p{L}\p{N}]+%s|\s*[\r\n]+|\s+(?!\S)|\s+"
_LETTERS = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|"
# tokenizer.ggml.pre: the patterns that published tokenizers of this name split by; "" is the pattern of
# GPT-2, which the library has by itself.
_PATTERNS = {
    "gpt-2": "",
    "llama-bpe": _LETTERS + r"\p{N}{1,3}" + _ENDINGS % r"[\r\n]*",
    "qwen2": _LETTERS + r"\p{N}" + _ENDINGS % r"[\r\n]*",
    "tekken": _CASED % ("", "", r"\p{N}") + _ENDINGS % r"[\r\n/]*",
    "gpt-4o": _CASED % (f"{_CONTRACTIONS}?", f"{_CONTRACTIONS}?", r"\p{N}{1,3}")
    + _ENDINGS % r"[\r\n/]*",
}
_OTHER_NAMES = {
    "default": "gpt-2",
    "olmo": "gpt-2",
    "phi-2": "gpt-2",
    "mpt": "gpt-2",
    "llama3": "llama-bpe",
    "llama-v3": "llama-bpe",
    "deepseek-r1-qwen": "qwen2",
    "llama4": "gpt-4o",
}
_IGNORES_MERGES = ("llama-bpe", "tekken")
_WITH_DIGITS = ("smollm", "starcoder", "refact", "command-r")  # each digit, then GPT-2's pattern
_SPACE = "\u2581"  # SentencePiece's mark of a space


def tokenizer_json(metadata: Mapping[str, Any]) -> str | None:
    """The tokenizer.json of a file's vocabulary; None if the file has none. Raises ValueError for what is
    wrong with it."""
    kind = metadata.get("tokenizer.ggml.model")
    if kind is None or kind == "none":
        return None
    if kind not in ("gpt2", "llama"):
        raise ValueError(f"tokenizer.ggml.model: expected 'gpt2' or 'llama', got {kind!r:.60}")
    tokens = _texts(metadata, "tokens")
    vocabulary = {token: place for place, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens):
        raise ValueError(
            f"tokenizer.ggml.tokens: expected different texts, got {len(vocabulary)} of {len(tokens)}"
        )
    kinds = metadata.get("tokenizer.ggml.token_type", [_NORMAL] * len(tokens))
    if not isinstance(kinds, list) or len(kinds) != len(tokens):
        raise ValueError(f"tokenizer.ggml.token_type: expected {len(tokens)} numbers")
    make = _byte_level if kind == "gpt2" else _sentence_piece
    made = {
        "version": "1.0",
        "added_tokens": _added_tokens(tokens, kinds),
        **make(metadata, tokens, kinds, vocabulary),
        "post_processor": _around(metadata, tokens, kind == "llama"),
    }
    return json.dumps(made)


def _texts(metadata: Mapping[str, Any], name: str) -> list[str]:
    found = metadata.get(f"tokenizer.ggml.{name}")
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise ValueError(f"tokenizer.ggml.{name}: expected a list of texts, got {found!r:.60}")
    return found


def _flag(metadata: Mapping[str, Any], name: str, default: bool) -> bool:
    value = metadata.get(f"tokenizer.ggml.{name}", default)
    if not isinstance(value, bool):
        raise ValueError(f"tokenizer.ggml.{name}: expected true or false, got {value!r:.60}")
    return value


def _added_tokens(tokens: Sequence[str], kinds: Sequence[int]) -> list[dict[str, Any]]:
    """Tokens that are found in a text before it is split."""
    return [
        {
            "id": place,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind in (_CONTROL, _UNKNOWN),
        }
        for place, (token, kind) in enumerate(zip(tokens, kinds))
        if kind in (_CONTROL, _UNKNOWN, _USER) and token
    ]


def _around(metadata: Mapping[str, Any], tokens: Sequence[str], adds_bos: bool) -> Any:
    """What puts BOS and EOS around a text."""
    adds_bos = adds_bos or metadata.get("tokenizer.ggml.pre") in ("llama-bpe", "llama3", "llama-v3")
    around: list[list[str]] = [[], []]
    for side, name, default in ((0, "bos", adds_bos), (1, "eos", False)):
        place = metadata.get(f"tokenizer.ggml.{name}_token_id")
        if not _flag(metadata, f"add_{name}_token", default and place is not None):
            continue
        if type(place) is not int or not 0 <= place < len(tokens):
            raise ValueError(
                f"tokenizer.ggml.{name}_token_id: expected 0 to {len(tokens) - 1}, got {place!r:.60}"
            )
        around[side].append(tokens[place])
    if around == [[], []]:
        return None

    def special(names: Sequence[str], part: int) -> list[dict[str, Any]]:
        return [{"SpecialToken": {"id": name, "type_id": part}} for name in names]

    def sequence(name: str, part: int) -> list[dict[str, Any]]:
        middle = [{"Sequence": {"id": name, "type_id": part}}]
        return [*special(around[0], part), *middle, *special(around[1], part)]

    indices = {token: place for place, token in enumerate(tokens)}
    return {
        "type": "TemplateProcessing",
        "single": sequence("A", 0),
        "pair": [*sequence("A", 0), *sequence("B", 1)],
        "special_tokens": {
            name: {"id": name, "ids": [indices[name]], "tokens": [name]}
            for name in {*around[0], *around[1]}
        },
    }


def _byte_level(
    metadata: Mapping[str, Any],
    tokens: Sequence[str],
    kinds: Sequence[int],
    vocabulary: dict[str, int],
) -> dict[str, Any]:
    name = metadata.get("tokenizer.ggml.pre", "default")
    name = _OTHER_NAMES.get(name, name) if isinstance(name, str) else name
    if name not in _PATTERNS and name not in _WITH_DIGITS:
        known = sorted({*_PATTERNS, *_OTHER_NAMES, *_WITH_DIGITS})
        raise ValueError(
            f"tokenizer.ggml.pre: expected one of {', '.join(known)}, got {name!r:.60}: texts would be "
            "split otherwise than the model was trained on"
        )
    merges = []
    for merge in _texts(metadata, "merges"):
        left, _, right = merge[1:].partition(" ")  # a piece may begin with a space
        pair = [merge[:1] + left, right]
        if not right or any(piece not in vocabulary for piece in (*pair, "".join(pair))):
            raise ValueError(f"tokenizer.ggml.merges: expected two tokens, got {merge!r:.60}")
        merges.append(pair)
    return {
        "normalizer": {"type": "NFC"} if name == "qwen2" else None,
        "pre_tokenizer": _splitter(name),
        "decoder": _BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "ignore_merges": name in _IGNORES_MERGES,
            "vocab": vocabulary,
            "merges": merges,
        },
    }


_BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}


def _splitter(name: str) -> dict[str, Any]:
    if name in _WITH_DIGITS:
        digits = {"type": "Digits", "individual_digits": True}
        return {"type": "Sequence", "pretokenizers": [digits, _BYTE_LEVEL]}
    if not _PATTERNS[name]:
        return _BYTE_LEVEL
    split = {
        "type": "Split",
        "pattern": {"Regex": _PATTERNS[name]},
        "behavior": "Isolated",
        "invert": False,
    }
    return {"type": "Sequence", "pretokenizers": [split, {**_BYTE_LEVEL, "use_regex": False}]}


def _sentence_piece(
    metadata: Mapping[str, Any],
    tokens: Sequence[str],
    kinds: Sequence[int],
    vocabulary: dict[str, int],
) -> dict[str, Any]:
    if metadata.get("tokenizer.ggml.precompiled_charsmap"):
        raise ValueError("tokenizer.ggml.precompiled_charsmap: expected none with model 'llama'")
    if _flag(metadata, "remove_extra_whitespaces", False):
        raise ValueError("tokenizer.ggml.remove_extra_whitespaces: expected false")
    scores = metadata.get("tokenizer.ggml.scores")
    if (
        not isinstance(scores, list)
        or len(scores) != len(tokens)
        or not all(isinstance(score, (int, float)) and score == score for score in scores)
    ):
        raise ValueError(f"tokenizer.ggml.scores: expected {len(tokens)} numbers")
    unknown = next((token for token, kind in zip(tokens, kinds) if kind == _UNKNOWN), None)
    prefixes = _flag(metadata, "add_space_prefix", True)
    space = {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE}
    prefix = {"type": "Prepend", "prepend": _SPACE}
    back = [
        {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        *([{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefixes else []),
    ]
    return {
        "normalizer": {"type": "Sequence", "normalizers": [prefix, space]} if prefixes else space,
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": back},
        "model": {
            "type": "BPE",
            "unk_token": unknown,
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": vocabulary,
            "merges": _merges(tokens, kinds, scores),
        },
    }


def _merges(
    tokens: Sequence[str], kinds: Sequence[int], scores: Sequence[float]
) -> list[list[str]]:
    """The pairs of tokens that make a token, those of the highest score first."""
    indices = {
        token: place
        for place, (token, kind) in enumerate(zip(tokens, kinds))
        if kind in (_NORMAL, _USER)
    }
    found = []
    for token, place in indices.items():
        if len(token) > 256:
            raise ValueError(
                f"tokenizer.ggml.tokens: expected at most 256 characters, got {len(token)} at {place}"
            )
        for cut in range(1, len(token)):
            left, right = indices.get(token[:cut]), indices.get(token[cut:])
            if left is not None and right is not None:
                found.append((-scores[place], place, left, right))
    found.sort()
    return [[tokens[left], tokens[right]] for _, _, left, right in found]


def metadata_of(tokenizer: str, size: int) -> dict[str, Any]:
    """The fields of a GGUF file for a tokenizer.json, filled up to `size` tokens. Raises ValueError if
    they would mean another tokenizer."""
    given = json.loads(tokenizer)
    model = given["model"]
    if model.get("type") != "BPE":
        raise ValueError(
            f"save_gguf: expected a tokenizer of model BPE, got {model.get('type')}; llama.cpp has no "
            "other that is read here"
        )
    if any(model.get(name) for name in ("continuing_subword_prefix", "end_of_word_suffix")):
        raise ValueError("save_gguf: the tokenizer marks parts of words, which GGUF cannot say")
    vocabulary = dict(model["vocab"])
    vocabulary.update({each["content"]: each["id"] for each in given.get("added_tokens") or []})
    most = max(vocabulary.values(), default=-1) + 1
    if most > size:
        raise ValueError(f"save_gguf: expected at most the model's {size} tokens, got {most}")
    tokens, kinds = [f"[PAD{place}]" for place in range(size)], [_UNUSED] * size
    for token, place in vocabulary.items():
        tokens[place], kinds[place] = token, _NORMAL
    for each in given.get("added_tokens") or []:
        kinds[each["id"]] = _CONTROL if each["special"] else _USER
    merges = [
        tuple(each.split(" ", 1)) if isinstance(each, str) else tuple(each)
        for each in model["merges"]
    ]
    fields: dict[str, Any] = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": kinds}
    if model.get("byte_fallback"):
        fields.update(_scored_fields(given, tokens, kinds, merges))
    else:
        fields["tokenizer.ggml.model"] = "gpt2"
        fields["tokenizer.ggml.pre"] = _name_of_splitter(given)
        fields["tokenizer.ggml.merges"] = [" ".join(pair) for pair in merges]
    _add_around(fields, given, vocabulary)
    return fields


def _name_of_splitter(given: Mapping[str, Any]) -> str:
    for name in (*_PATTERNS, *_WITH_DIGITS):
        normalizer = {"type": "NFC"} if name == "qwen2" else None
        ignores = name in _IGNORES_MERGES
        if (
            _same(given.get("pre_tokenizer"), _splitter(name))
            and given.get("normalizer") == normalizer
            and bool(given["model"].get("ignore_merges")) == ignores
        ):
            return name
    raise ValueError(
        "save_gguf: the tokenizer splits texts in a way that has no name in GGUF files: "
        f"{json.dumps(given.get('pre_tokenizer')):.200}"
    )


def _same(given: Any, known: Any) -> bool:
    """Whether two splitters split alike; offsets do not matter to tokens."""
    if isinstance(given, dict) and isinstance(known, dict):
        if given.get("type") == "Sequence" and len(given.get("pretokenizers", [])) == 1:
            return _same(given["pretokenizers"][0], known)
        names = (given.keys() | known.keys()) - {"trim_offsets"}
        return all(_same(given.get(name), known.get(name)) for name in names)
    if isinstance(given, list) and isinstance(known, list):
        return len(given) == len(known) and all(map(_same, given, known))
    return given == known


def _scored_fields(
    given: Mapping[str, Any], tokens: list[str], kinds: list[int], merges: list[tuple[str, ...]]
) -> dict[str, Any]:
    """Scores that rank tokens as the merges do."""
    ranks: dict[str, int] = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault("".join(pair), rank)
    for place, token in enumerate(tokens):
        if kinds[place] == _NORMAL and len(token) == 6 and token.startswith("<0x"):
            kinds[place] = _BYTE
        if token == given["model"].get("unk_token"):
            kinds[place] = _UNKNOWN
    scores = [-float(ranks.get(token, len(merges))) for token in tokens]
    prefixes = "Prepend" in json.dumps(given.get("normalizer"))
    fields = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.add_space_prefix": prefixes,
    }
    tokens_and_kinds = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": kinds}
    made = json.loads(tokenizer_json({**fields, **tokens_and_kinds}) or "{}")
    again = [tuple(pair) for pair in made["model"]["merges"]]
    order = [["".join(pair) for pair in each] for each in (again, merges)]
    same = set(again) == set(merges) and order[0] == order[1]
    if not same or any(made[part] != given.get(part) for part in ("normalizer", "pre_tokenizer")):
        raise ValueError(
            "save_gguf: the tokenizer's merges cannot be said as scores of tokens, as llama.cpp has them"
        )
    return fields


def _add_around(
    fields: dict[str, Any], given: Mapping[str, Any], vocabulary: Mapping[str, int]
) -> None:
    processor = given.get("post_processor") or {}
    parts = processor.get("processors", [processor])
    before: list[str] = []
    after: list[str] = []
    for part in parts:
        if part.get("type") == "TemplateProcessing":
            seen = before
            for each in part["single"]:
                if "Sequence" in each:
                    seen = after
                else:
                    seen.append(each["SpecialToken"]["id"])
        elif part.get("type") not in (None, "ByteLevel"):
            raise ValueError(
                f"save_gguf: a tokenizer's '{part['type']}' has no place in GGUF files"
            )
    if len(before) > 1 or len(after) > 1:
        raise ValueError("save_gguf: expected one token before and behind a text at most")
    for name, found in (("bos", before), ("eos", after)):
        fields[f"tokenizer.ggml.add_{name}_token"] = bool(found)
        if found:
            fields[f"tokenizer.ggml.{name}_token_id"] = vocabulary[found[0]]
