# SPDX-License-Identifier: Apache-2.0
"""Tokenizers in GGUF files beside those that they came from."""

import functools
import json
import random

import pytest
from tenon.llm import ChatTemplate, LanguageModel, Tokenizer, load, save_gguf
from tenon.llm.loading.gguf_vocabulary import (
    _PATTERNS,
    _WITH_DIGITS,
    _splitter,
    metadata_of,
    tokenizer_json,
)
from test_gguf_models import decoder_of

tokenizers = pytest.importorskip("tokenizers")
SOURCES = [json.__file__]


def texts(count, seed=0):
    """Random texts of many scripts, spaces and digits, and what the trap lists of others name."""
    numbers = random.Random(seed)
    alphabets = [
        "abcdefgh tea sing the ing  ",
        "0123456789",
        " \n\t\r ",
        "ÄÖÜäöüßéèñçøå",
        "你好世界中文字符",
        "🤖🚀👩‍👩‍👧‍👦❤️",
        ".,;:!?'\"()[]{}<>/\\|@#$%^&*-_=+~`",
        "'s 't 're 've 'm 'll 'd I'LL",
        "Привет мир ЁЖ",
        "\u0301\u200d\ufeff\u00a0\u2028ﬁ①Ⅷ",
    ]
    yield from ("", " ", "  a", "a  ", "\n\n\n", "Hello, world! 12345", "▁▁x", "<s> </s>")
    for _ in range(count):
        pieces = [
            "".join(
                numbers.choice(numbers.choice(alphabets)) for _ in range(numbers.randint(1, 12))
            )
            for _ in range(numbers.randint(1, 6))
        ]
        yield numbers.choice(["", " "]).join(pieces)


@functools.cache
def trained(name, around=False):
    """A tokenizer of byte-level BPE, trained on sources that every Python has."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.Tokenizer.from_str(
        json.dumps(
            {
                "version": "1.0",
                "added_tokens": [],
                "pre_tokenizer": _splitter(name),
                "model": {"type": "BPE", "vocab": {}, "merges": []},
            }
        )
    ).pre_tokenizer
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600,
        show_progress=False,
        special_tokens=["<|begin|>", "<|im_end|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    made.train(SOURCES, trainer)
    if name == "qwen2":
        made.normalizer = tokenizers.normalizers.NFC()
    made.add_tokens([tokenizers.AddedToken("<tool>", normalized=False)])
    if around:
        made.post_processor = tokenizers.processors.TemplateProcessing(
            single="<|begin|> $A", special_tokens=[("<|begin|>", 0)]
        )
    given = json.loads(made.to_str())
    given["model"]["ignore_merges"] = name in ("llama-bpe", "tekken")
    return json.dumps(given)


@pytest.mark.parametrize("name", [*_PATTERNS, *_WITH_DIGITS])
def test_tokens_are_those_of_the_tokenizer(name):
    given = trained(name, around=True)
    fields = metadata_of(given, 700)
    expected = "smollm" if name in _WITH_DIGITS else name
    assert fields["tokenizer.ggml.pre"] == expected and len(fields["tokenizer.ggml.tokens"]) == 700
    read = Tokenizer(text=tokenizer_json(fields))
    before = Tokenizer(text=given)
    for text in texts(150):
        for special in (False, True):
            assert read.encode(text, special) == before.encode(text, special), text
        assert read.decode(read.encode(text)) == before.decode(before.encode(text))
    for text in ("<|begin|>a<|im_end|>", "x <tool> y"):
        assert read.encode(text) == before.encode(text)


def pieces():
    """A small vocabulary as SentencePiece makes them: scores fall as tokens were found later."""
    words = "▁t ▁a he in re on ▁the er ing ▁s ▁in at or ▁w ▁b st ou ▁c en ▁of ▁to an ion ▁and ent".split()
    letters = [*"▁etaoinshrdlucmfwygpbvkxqjz", ".", "é", "世"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words, *letters]
    kinds = [2, 3, 3, *[6] * 256, *[1] * (len(words) + len(letters))]
    scores = [*[0.0] * 259, *(-float(each) for each in range(len(words) + len(letters)))]
    return tokens, kinds, scores


def sentence_piece_tokens(text, tokens, kinds, scores, prefix=True):
    """SentencePiece's BPE by its definition: the best pair is merged until none is left."""
    indices = {token: place for place, token in enumerate(tokens) if kinds[place] == 1}
    symbols = list(("▁" if prefix and text else "") + text.replace(" ", "▁"))
    while True:
        best = None
        for at in range(len(symbols) - 1):
            place = indices.get(symbols[at] + symbols[at + 1])
            if place is not None and (best is None or scores[place] > scores[indices[best[1]]]):
                best = (at, symbols[at] + symbols[at + 1])
        if best is None:
            break
        symbols[best[0] : best[0] + 2] = [best[1]]
    made = []
    for symbol in symbols:
        if symbol in indices:
            made.append(indices[symbol])
        else:
            made += [tokens.index(f"<0x{byte:02X}>") for byte in symbol.encode()]
    return made


@pytest.mark.parametrize("prefix", [True, False])
def test_scores_decide_what_is_merged(prefix):
    tokens, kinds, scores = pieces()
    fields = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.add_space_prefix": prefix,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    read = Tokenizer(text=tokenizer_json(fields))
    for text in texts(150):
        if "<s>" in text:
            continue
        expected = sentence_piece_tokens(text, tokens, kinds, scores, prefix)
        assert read.encode(text, special=False) == expected, text
        assert read.encode(text) == [1, *expected]  # such a model begins with BOS unless told
        if "▁" not in text:
            assert read.decode(expected) == text
    assert read.encode("<s>the</s>", special=False)[0] == 1
    # And back: the same fields.
    again = metadata_of(read.to_json(), len(tokens))
    assert again["tokenizer.ggml.model"] == "llama"
    assert again["tokenizer.ggml.add_space_prefix"] is prefix
    same = Tokenizer(text=tokenizer_json(again))
    for text in texts(100, seed=1):
        assert same.encode(text) == read.encode(text)


def test_a_file_has_all_that_a_text_needs(tmp_path):
    template = ChatTemplate(
        "{% for m in messages %}{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}"
    )
    decoder = decoder_of("qwen3")
    given = trained("qwen2")
    fields = json.loads(given)
    kept = {token: place for token, place in fields["model"]["vocab"].items() if place < 255}
    fields["model"]["vocab"] = kept
    fields["model"]["merges"] = []
    fields["added_tokens"] = [each for each in fields["added_tokens"] if each["id"] < 255]
    model = LanguageModel(decoder, Tokenizer(text=json.dumps(fields)), template)
    save_gguf(model, tmp_path / "a.gguf")
    read = load(tmp_path / "a.gguf")
    messages = [{"role": "user", "content": "hi"}]
    assert read.chat_prompt(messages) == model.chat_prompt(messages)
    assert read.decoder.config.eos_token_ids == (1,)  # <|im_end|>, though no field says so
    assert read.generate("abc", max_tokens=4) == model.generate("abc", max_tokens=4)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda given: given["model"].update(type="Unigram"), "expected a tokenizer of model BPE"),
        (
            lambda given: given.update(pre_tokenizer={"type": "Whitespace"}),
            "splits texts in a way that has no name",
        ),
        (
            lambda given: given["model"].update(continuing_subword_prefix="##"),
            "marks parts of words",
        ),
        (
            lambda given: given.update(post_processor={"type": "BertProcessing"}),
            "'BertProcessing' has no place",
        ),
        (
            lambda given: given["model"].update(byte_fallback=True),
            "merges cannot be said as scores|tokenizer",
        ),
    ],
)
def test_tokenizers_that_gguf_cannot_say(change, message):
    given = json.loads(trained("gpt-2"))
    change(given)
    with pytest.raises(ValueError, match=message):
        metadata_of(json.dumps(given), 700)


def test_too_many_tokens_for_the_model():
    with pytest.raises(ValueError, match="expected at most the model's 10 tokens, got"):
        metadata_of(trained("gpt-2"), 10)


@pytest.mark.parametrize("prefix", [True, False])
def test_tokens_are_those_of_sentencepiece(prefix, tmp_path):
    library = pytest.importorskip("sentencepiece")
    library.SentencePieceTrainer.train(
        input=SOURCES[0],
        model_prefix=str(tmp_path / "m"),
        vocab_size=700,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=prefix,
        minloglevel=2,
    )
    model = library.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    count = model.get_piece_size()
    kinds = [
        2 if model.is_unknown(n) else 3 if model.is_control(n) else 6 if model.is_byte(n) else 1
        for n in range(count)
    ]
    fields = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [model.id_to_piece(n) for n in range(count)],
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.scores": [model.get_score(n) for n in range(count)],
        "tokenizer.ggml.add_space_prefix": prefix,
        "tokenizer.ggml.add_bos_token": False,
    }
    read = Tokenizer(text=tokenizer_json(fields))
    for text in texts(400):
        if "<s>" in text or not text:
            continue
        assert read.encode(text) == model.encode(text), text
