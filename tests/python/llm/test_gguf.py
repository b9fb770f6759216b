# SPDX-License-Identifier: Apache-2.0
"""GGUF files, and files that claim to be."""

import random
import struct

import numpy
import pytest
from tenon.llm.loading.gguf import TYPES, GgufError, GgufFile


def text(value):
    content = value.encode()
    return struct.pack("<Q", len(content)) + content


def entry(name, dimensions, kind, offset):
    return text(name) + struct.pack(
        f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, kind, offset
    )


def file_of(path, entries, data, metadata=(), version=3, tensors=None, magic=b"GGUF"):
    head = magic + struct.pack("<IQQ", version, tensors or len(entries), len(metadata))
    head += b"".join(metadata) + b"".join(entries)
    path.write_bytes(head + bytes(-len(head) % 32) + data)
    return path


METADATA = [
    text("general.architecture") + struct.pack("<I", 8) + text("llama"),
    text("llama.block_count") + struct.pack("<II", 4, 7),
    text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("é"),
    text("scores") + struct.pack("<IIQ2f", 9, 6, 2, 0.5, -1.0),
]


def test_metadata_and_each_type_that_is_read(tmp_path):
    q8 = struct.pack("<e32b", 0.5, *range(-16, 16))
    q4 = struct.pack("<e16B", 2.0, *(low | (15 - low) << 4 for low in range(16)))
    parts = {
        "f32": ((3, 2), 0, struct.pack("<6f", *range(6))),
        "f16": ((2,), 1, struct.pack("<2e", 1.5, -2)),
        "bf16": ((2,), 30, struct.pack("<2H", 0x3F80, 0xC000)),
        "q8": ((32,), 8, q8),
        "q4": ((32, 1), 2, q4),
    }
    entries, data = [], b""
    for name, (dimensions, kind, content) in parts.items():
        entries.append(entry(name, dimensions, kind, len(data)))
        data += content + bytes(-len(content) % 32)
    with GgufFile(file_of(tmp_path / "a.gguf", entries, data, METADATA)) as file:
        assert file.metadata == {
            "general.architecture": "llama",
            "llama.block_count": 7,
            "tokens": ["a", "é"],
            "scores": [0.5, -1.0],
        }
        assert file.names() == list(parts) and file.shape("f32") == (2, 3)
        assert file.read("f32").tolist() == [[0, 1, 2], [3, 4, 5]]
        assert file.read("f16").tolist() == [1.5, -2] and file.read("bf16").tolist() == [1, -2]
        assert file.read("q8").tolist() == [n / 2 for n in range(-16, 16)]
        assert file.read("q4").tolist() == [
            [2.0 * (n - 8) for n in [*range(16), *range(15, -1, -1)]]
        ]


def test_numbers_equal_those_of_the_wheel(tmp_path):
    gguf = pytest.importorskip("gguf")
    values = numpy.random.default_rng(0).normal(0, 1, (6, 256)).astype(numpy.float32)
    writer = gguf.GGUFWriter(str(tmp_path / "a.gguf"), "llama")
    expected = {}
    numbers = numpy.random.default_rng(1)
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        if name in ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"):
            packed = gguf.quantize(values, kind)
        else:  # blocks of any bytes below 60, so that no scale is NaN
            elements, size = gguf.GGML_QUANT_SIZES[kind]
            packed = numbers.integers(0, 60, (6, 256 // elements * size), dtype=numpy.uint8)
        expected[name] = gguf.dequantize(packed, kind)
        writer.add_tensor(name, packed, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with GgufFile(tmp_path / "a.gguf") as file:
        for name, numbers in expected.items():
            assert file.kind(name) == name
            assert (file.read(name).numpy() == numbers).all(), name


@pytest.mark.parametrize(
    "given, message",
    [
        ({"magic": b"GGML"}, "expected 'GGUF' as its first bytes, got b'GGML'"),
        ({"version": 1}, "expected version 2 or 3"),
        ({"tensors": 1 << 62}, "tensors: expected at most"),
        ({"entries": [entry("w", (8,) * 5, 0, 0)]}, "at most 4 dimensions, got 5"),
        ({"entries": [entry("w", (1 << 63, 1 << 63), 0, 0)]}, "within the file's"),
        ({"entries": [entry("w", (1 << 63, 0), 0, 0)]}, "expected dimensions of at least 1, got"),
        ({"entries": [entry("w", (8,), 0, (1 << 64) - 32)]}, "within the file's"),
        ({"entries": [entry("w", (8,), 0, 8)]}, "an offset aligned to 32, got 8"),
        ({"entries": [entry("w", (8,), 8, 0)]}, "rows of a multiple of 32 numbers, got 8"),
        ({"entries": [entry("w", (8,), 77, 0)]}, "unknown type 77"),
        ({"entries": [entry("w", (8,), 0, 0)] * 2}, "tensor 'w' is there twice"),
        ({"metadata": [METADATA[0]] * 2}, "'general.architecture' is there twice"),
        (
            {"metadata": [struct.pack("<Q", 1 << 30)]},
            "metadata: expected at most|expected 1073741824",
        ),
        (
            {"metadata": [text("a") + struct.pack("<IIQ", 9, 4, 1 << 61)]},
            "an array: expected at most",
        ),
        (
            {"metadata": [text("a") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 6]},
            "4 arrays in",
        ),
        ({"metadata": [text("a") + struct.pack("<I", 13)]}, "unknown type 13 of metadata"),
        ({"metadata": [text("general.alignment") + struct.pack("<II", 4, 0)]}, "general.alignment"),
        (
            {"metadata": [struct.pack("<Q", 1) + b"\xff" + struct.pack("<II", 4, 0)]},
            "expected UTF-8",
        ),
    ],
)
def test_hostile_files(tmp_path, given, message):
    whole = {"entries": [entry("w", (8,), 0, 0)], "data": bytes(64), **given}
    with pytest.raises(GgufError, match=message):
        GgufFile(file_of(tmp_path / "a.gguf", **whole))


def test_types_that_are_not_read_are_named(tmp_path):
    path = file_of(tmp_path / "a.gguf", [entry("w", (256,), 16, 0)], bytes(256))
    with (
        GgufFile(path) as file,
        pytest.raises(GgufError, match="'w': expected one of F32, .* got IQ2_XXS"),
    ):
        file.read("w")


def test_cut_and_changed_files_are_refused_or_read(tmp_path):
    path = file_of(tmp_path / "a.gguf", [entry("w", (8,), 0, 0)], bytes(32), METADATA)
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(GgufError):
            GgufFile(path)
    numbers = random.Random(0)
    for _ in range(300):
        changed = bytearray(content)
        for _ in range(numbers.randint(1, 4)):
            changed[numbers.randrange(len(content))] = numbers.choice([0, 1, 127, 128, 255])
        path.write_bytes(changed)
        try:
            with GgufFile(path) as file:
                for name in file.names():
                    file.read(name)
        except GgufError:
            pass
