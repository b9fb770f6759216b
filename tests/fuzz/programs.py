# SPDX-License-Identifier: Apache-2.0
"""Damaged files of programs (`.tenon`): each is refused by an error that says why, or runs.

    PYTHONPATH=build/release/python TENON_BUILD_DIR=build/release .venv/bin/python -m tests.fuzz.programs --minutes 5 [--seed 1]

The programs are the samples of every operator, packed weights among them, half of their tensors data of the file, and some with branches,
loops, open sizes, writes and packed filters. They are changed as bytes, in the header, in the text, and in the integers that they hold. A process of its
own reads each by `tenon.jit.load` and by the predictor, and runs it on ones. What ends that process, takes longer than ten seconds
of a processor, or raises an error of another kind is written to --out. Run it on a build with AddressSanitizer to see more.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import re
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

from .damaged_files import NUMBERS, REFUSALS, Campaign, arguments, damaged, serve, told, used
from .saved_models import changed_json

OPS = Path(__file__).resolve().parents[1] / "ops"
LARGEST = 1 << 20  # elements of inputs that a program is run on
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|%\d+|[A-Za-z_][\w.:]*|-?\d[\w.+-]*|.', re.S)
INPUT = re.compile(r"^input %\d+: (\w+)\[([^\]]*)\]", re.M)
DIMENSION = re.compile(r"^dimension (\w+) from .* at (\d+)", re.M)
DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "uint8",
    "int8",
    "bool",
    "complex64",
)
TEXT, PACKED = "tenon.program", "tenon.packed"
UNSUITABLE = (NotImplementedError, ValueError, TypeError, RuntimeError)
File = tuple[dict[str, Any], bytes]


# -- seeds and changes ------------------------------------------------------------------------------------------


def of_operators() -> list[bytes]:
    """A program of one call for each sample of an operator: its first tensor is an input, the others are data of the file."""
    import tenon

    sys.path.insert(0, str(OPS))
    from case import results_of
    from running import arguments
    from samples import CASES

    files = []
    for case in CASES:
        args, kwargs = arguments(case, "cpu", "float32")
        first = next((i for i, each in enumerate(args) if isinstance(each, tenon.Tensor)), None)

        def function(*inputs, case=case, args=args, kwargs=kwargs, first=first):
            given = list(args)
            if inputs:
                given[first] = inputs[0]
            return results_of(getattr(tenon, case.op)(*given, **kwargs))

        inputs = () if first is None else (args[first],)
        # Some depend on data, or return what is no tensor.
        with contextlib.suppress(*UNSUITABLE), tenon.no_grad():
            files.append(saved(tenon.export(function, inputs).optimize(("freeze",))))
    return files


def of_networks() -> list[bytes]:
    """Branches, loops, open sizes, writes in place, layers whose filters are packed."""
    import tenon
    from tenon import nn

    tenon.manual_seed(0)
    x, image = tenon.randn(3, 4), tenon.randn(2, 3, 12, 12)
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 8, 3, groups=2)
    ).eval()
    perceptron = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)).eval()
    batch = tenon.Dim("batch", max=16)
    state = tenon.ones(4)
    blocks = tenon.quantize_blocks(tenon.randn(8, 64), "q4_0")
    columns, offsets = tenon.tensor([0, 2, 1]), tenon.tensor([0, 2, 2, 3])

    def branches(x):
        y = x
        while y.abs().sum() > 1:
            y = y / 4 if y.max() > 4 else y / 2
        return y

    def rows(x):
        return tenon.jit.scan(lambda sum, row: (sum + row, sum.exp()), tenon.zeros(4), x)

    def writes(x):
        y = x * 2
        y[1] += 1
        y[:, 2:].mul_(3)
        state.add_(y.sum(0))
        return y.transpose(0, 1).reshape(2, 6), state * 1

    def sparse(x):
        return tenon.csr_matmul(offsets, columns, tenon.ones(3), x)

    def packed(x):
        return tenon.linear_blocks(x, blocks, "q4_0", activations="int8")

    programs = []
    with tenon.no_grad():
        programs += [
            tenon.export(net, image).freeze(numerics="fast"),
            tenon.export(perceptron, x, dynamic_shapes=[{0: batch}]).freeze(),
            tenon.export(
                lambda x: (x.reshape(-1, 2).sum(1), x[1:]), x, dynamic_shapes=[{0: batch}]
            ),
            *(tenon.export(each, x) for each in (branches, rows, writes, sparse)),
            tenon.export(packed, tenon.randn(2, 64)).optimize(("freeze",)),
            tenon.export(nn.LSTM(4, 5), tenon.randn(6, 2, 4)).freeze(),
        ]
    region = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3, groups=32), nn.Conv2d(32, 64, 1), nn.ReLU(), nn.Conv2d(64, 64, 3)
    ).eval()  # fmt: skip
    with tenon.no_grad():
        packed_files = [
            with_packed_weights(programs[0]),
            with_packed_weights(tenon.export(region, image).freeze()),
        ]
    return [saved(program) for program in programs] + packed_files


def with_packed_weights(program: Any) -> bytes:
    """As Predictor.save_optimized() writes it."""
    from tenon import inference

    with tempfile.TemporaryDirectory() as folder:
        plain, packed = f"{folder}/plain.tenon", f"{folder}/packed.tenon"
        program.save(plain)
        inference.Predictor(plain).save_optimized(packed)
        return Path(packed).read_bytes()


def saved(program: Any) -> bytes:
    with tempfile.NamedTemporaryFile(suffix=".tenon") as file:
        program.save(file.name)
        return Path(file.name).read_bytes()


def parts_of(data: bytes) -> File:
    """The header and what follows it."""
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def whole(header: bytes, rest: bytes) -> bytes:
    header += b" " * (-(len(header) + 8) % (65536 if PACKED.encode() in header else 8))
    return len(header).to_bytes(8, "little") + header + rest


def changed(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """With one kind of change or several."""
    if rng.random() < 0.1:
        return damaged(data, rng)
    header, rest = parts_of(data)
    if rng.random() < 0.7:
        other = parts_of(rng.choice(others))[0]["__metadata__"][TEXT]
        header["__metadata__"][TEXT] = changed_text(header["__metadata__"][TEXT], other, rng)
    if PACKED in header["__metadata__"] and rng.random() < 0.5:
        text = header["__metadata__"][PACKED]
        header["__metadata__"][PACKED] = changed_text(text, text, rng)
    if rng.random() < 0.3:
        rest = changed_numbers(header, rest, rng)
    text = json.dumps(header).encode()
    return whole(changed_json(text, rng) if rng.random() < 0.2 else text, rest)


def changed_text(text: str, other: str, rng: random.Random) -> str:
    """Lines of another program, other words in a line, or a few bytes."""
    lines = text.splitlines(keepends=True)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        match rng.randrange(8):
            case 0:
                back = rng.randrange(len(lines))
                lines[at], lines[back] = lines[back], lines[at]
            case 1:
                lines[at] = rng.choice(other.splitlines(keepends=True))
            case 2:
                lines.insert(at, rng.choice((lines[rng.randrange(len(lines))], lines[at])))
            case 3 if len(lines) > 1:
                del lines[at]
            case 4:
                lines[at] = damaged(lines[at].encode(), rng).decode("utf-8", "replace")
            case _:
                lines[at] = changed_line(lines[at], text, rng)
    return "".join(lines)


def changed_line(line: str, text: str, rng: random.Random) -> str:
    words = WORD.findall(line)
    chosen = [
        i
        for i, word in enumerate(words)
        if word.strip() and (word[0] in '%"-' or word[0].isalnum())
    ]
    if not chosen:
        return line
    at = rng.choice(chosen)
    word = words[at]
    if word in DTYPES:
        words[at] = rng.choice(DTYPES)
    elif word[0] == "%" and len(word) > 1:
        words[at] = f"%{max(0, int(word[1:]) + rng.randint(-3, 3))}"
    elif word[0].isdigit() or word[0] == "-":
        number = rng.choice(NUMBERS) * rng.choice((1, -1))
        words[at] = str(
            rng.choice(
                (number, rng.randint(-2, 9), "0.5", "nan", "true", "none", "%0", "[]", "[1, 2]")
            )
        )
    else:
        words[at] = rng.choice(WORD.findall(rng.choice(text.splitlines() or [""])) or ["x"])
    return "".join(words)


def changed_numbers(header: dict[str, Any], rest: bytes, rng: random.Random) -> bytes:
    """Some of the integers that the file holds are others: indices, offsets, blocks."""
    leaves = [
        each
        for name, each in header.items()
        if name.startswith("leaf.") and each["dtype"][0] in "IUB"
    ]
    data = bytearray(rest)
    for leaf in rng.sample(leaves, min(len(leaves), 2)):
        begin, end = leaf["data_offsets"]
        size = max(1, int(re.sub(r"\D", "", leaf["dtype"]) or 8) // 8)
        for _ in range(rng.randint(1, 3)):
            if end - begin >= size:
                at = begin + size * rng.randrange((end - begin) // size)
                number = rng.choice(
                    (rng.choice(NUMBERS), rng.randint(0, 9), 2**64 - rng.randint(1, 9))
                )
                data[at : at + size] = struct.pack("<Q", number)[:size]
    return bytes(data)


# -- the process that reads -------------------------------------------------------------------------------------


def ones_for(text: str) -> list[Any] | None:
    """Inputs as a program's text has them; None where these are too many."""
    import tenon

    sizes = {name: int(size) for name, size in DIMENSION.findall(text)}
    made = []
    for dtype, shape in INPUT.findall(text):
        axes = [each.strip() for each in shape.split(",") if each.strip()]
        extents = [int(each) if each.isdigit() else sizes.get(each, 1) for each in axes]
        if math.prod(extents) > LARGEST:
            return None
        made.append(tenon.ones(extents, dtype=getattr(tenon, dtype)))
    return made if sum(each.numel() for each in made) <= LARGEST else None


def read(path: Path) -> str:
    """By both readers. The predictor refuses programs that write into what clones share."""
    import tenon
    from tenon import inference

    program = tenon.jit.load(path)
    inputs = ones_for(str(program))
    if inputs is None:
        return "loaded, and not run: its inputs are large"

    def predict() -> object:
        predictor = inference.Predictor(path, threads=1)
        return predictor.run(dict(zip(predictor.inputs, inputs, strict=False)))

    return max(used(lambda: program._native.run(inputs)), used(predict))


def main() -> int:
    parser = arguments(str(__doc__), "build/fuzz-programs")
    options = parser.parse_args()
    if options.serve:
        return serve(read, REFUSALS)
    networks = of_networks()
    corpus = of_operators() + networks

    def draw(folder: Path, rng: random.Random) -> Path:
        path = folder / "program.tenon"
        path.write_bytes(
            changed(rng.choice(networks if rng.random() < 0.2 else corpus), corpus, rng)
        )
        return path

    campaign = Campaign("tests.fuzz.programs", options)
    counts = campaign.run(draw, random.Random(options.seed), options.minutes)
    print(f"{len(corpus)} programs: {told(counts)}, {campaign.failures} failed")
    return campaign.end()


if __name__ == "__main__":
    sys.exit(main())
