# SPDX-License-Identifier: Apache-2.0
"""Files with packed weights: predictors map them, and have the bits of those that pack. What does not fit is packed anew or refused."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon.inference import Predictor

SIZE = 16


def layers():
    """A region, in which images stay NHWC (taps, depthwise, pointwise, Winograd), and behind it a convolution of its own, as no vectors hold 90 filters."""
    tenon.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 32, 5, stride=1, padding=2), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1, groups=32), nn.Hardswish(),
        nn.Conv2d(32, 64, 1), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
        nn.AvgPool2d(2), nn.Conv2d(64, 90, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(90, 5),
    ).eval()  # fmt: skip


PACKED = 5  # of the convolutions above


def image(batch=1, seed=1):
    return np.random.default_rng(seed).standard_normal((batch, 3, SIZE, SIZE)).astype("float32")


def result(predictor, x=None):
    return predictor.run({"x": image() if x is None else x})["y"].numpy()


def in_file(predictor):
    """How many packed weights executables read, and how many of them in the file."""
    line = next(x for x in predictor.explain().splitlines() if x.startswith("packed weights"))
    words = line.replace(",", "").split()
    return int(words[2]), int(words[-1])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same network in a file as exported, and in one with packed weights."""
    folder = tmp_path_factory.mktemp("packed")
    net = layers()
    with tenon.no_grad():
        x = tenon.from_numpy(image())
        tenon.export(lambda x: {"y": net(x)}, x).freeze().save(folder / "plain.tenon")
    predictor = Predictor(folder / "plain.tenon")
    predictor.save_optimized(folder / "packed.tenon")
    assert in_file(predictor) == (PACKED, 0)
    return folder / "plain.tenon", folder / "packed.tenon"


def header_of(path):
    data = Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def write(path, header, rest):
    """Tensors begin where they did: behind a header of 64 KiB."""
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 65536)
    path.write_bytes(len(text).to_bytes(8, "little") + text + rest)
    return path


def test_results_have_the_bits_of_packing(files):
    plain, packed = map(Predictor, files)
    for seed in range(3):
        x = image(seed=seed)
        np.testing.assert_array_equal(result(packed, x), result(plain, x), strict=True)
    assert in_file(packed) == (PACKED, PACKED) and in_file(plain) == (PACKED, 0)
    assert packed.program() == plain.program()


def test_clones_read_the_same_memory(files):
    original = Predictor(files[1])
    want = result(original)
    clones = [original.clone() for _ in range(3)]
    got = [None] * len(clones)

    def run(i):
        got[i] = result(clones[i])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(clones))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in got:
        np.testing.assert_array_equal(each, want)
    assert all(in_file(clone) == (PACKED, PACKED) for clone in clones)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="pages are counted by Linux")
def test_pages_are_the_files(files):
    """Packed weights are read-only, and nothing was written or copied; the weights behind them were never read."""
    predictor = Predictor(files[1])
    result(predictor)
    parts, rss = [], {}
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if words[0].count("-") == 1 and not words[0].endswith(":"):
            current = words[1] if words[-1] == str(files[1]) else None
            if current:
                parts.append(current)
                rss[current, len(parts)] = {}
        elif current:
            rss[current, len(parts)][words[0]] = words[1]
    assert parts == ["rw-p", "r--p", "rw-p"], parts
    assert all(each["Private_Dirty:"] == "0" for each in rss.values())
    # The last page of the packed ones may be no whole one, and the system maps 64 KiB around it and around what it reads next.
    assert rss["r--p", 2]["Rss:"] != "0" and int(rss["rw-p", 3]["Rss:"]) <= 128
    assert int(rss["rw-p", 3]["Size:"]) > 350
    header, _ = header_of(files[1])
    begin = min(each["data_offsets"][0] for name, each in header.items() if name.startswith("packed."))  # fmt: skip
    behind = [
        name
        for name, each in header.items()
        if name.startswith("leaf.") and each["data_offsets"][0] > begin
    ]
    assert len(behind) == PACKED


def test_files_are_deleted_and_replaced_while_they_are_open(files, tmp_path):
    path = tmp_path / "model.tenon"
    path.write_bytes(files[1].read_bytes())
    predictor = Predictor(path)
    other = tmp_path / "other"
    other.write_bytes(b"nothing" * 10000)
    os.replace(other, path)
    want = result(Predictor(files[0]))
    np.testing.assert_array_equal(result(predictor), want)
    predictor.save_optimized(path)  # over what lies there now
    path.unlink()
    np.testing.assert_array_equal(result(predictor), want)


def test_a_file_that_was_mapped_is_saved_again(files, tmp_path):
    Predictor(files[1]).save_optimized(tmp_path / "again.tenon")
    assert (tmp_path / "again.tenon").read_bytes() == files[1].read_bytes()


def test_addresses_of_an_ended_predictor_are_forgotten(files, tmp_path):
    """Another file may be mapped where one was before."""
    net = layers()
    with tenon.no_grad():
        for weight in net.parameters():
            weight.copy_(weight * 0.5)
        tenon.export(lambda x: {"y": net(x)}, tenon.from_numpy(image())).freeze().save(
            tmp_path / "half.tenon"
        )
    half = Predictor(tmp_path / "half.tenon")
    half.save_optimized(tmp_path / "half.packed.tenon")
    wants = [result(Predictor(files[0])), result(half)]
    assert not np.array_equal(*wants)
    for _ in range(4):
        for path, want in zip((files[1], tmp_path / "half.packed.tenon"), wants, strict=True):
            predictor = Predictor(path)
            np.testing.assert_array_equal(result(predictor), want)
            assert in_file(predictor) == (PACKED, PACKED)
            del predictor


def test_programs_of_python_read_them(files):
    program = tenon.jit.load(files[1])
    with tenon.no_grad():
        got = program(tenon.from_numpy(image()))["y"].numpy()
    np.testing.assert_array_equal(got, result(Predictor(files[0])))
    assert "one executable of cpu:0" in program.plan()
    assert "compiled when the program runs again" not in program.plan()


def test_open_sizes(tmp_path):
    net = layers()
    with tenon.no_grad():
        tenon.export(
            lambda x: {"y": net(x)},
            tenon.from_numpy(image(2)),
            dynamic_shapes=[{0: tenon.Dim("batch", max=8)}],
        ).freeze().save(tmp_path / "plain.tenon")
    plain = Predictor(tmp_path / "plain.tenon")
    plain.save_optimized(tmp_path / "packed.tenon")
    packed = Predictor(tmp_path / "packed.tenon")
    for batch in (2, 1, 5):
        np.testing.assert_array_equal(result(packed, image(batch)), result(plain, image(batch)))
    count, mapped = in_file(packed)
    assert count == mapped == in_file(plain)[0]


CHILD = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from test_packed_files import Predictor, in_file, result
plain, packed, folder = sys.argv[2:]
p, q = Predictor(plain), Predictor(packed)
np.testing.assert_array_equal(result(q), result(p))
count, mapped = in_file(q)
assert count > 0 and mapped == 0, (count, mapped)
q.save_optimized(folder + "/other.tenon")
own = Predictor(folder + "/other.tenon")
np.testing.assert_array_equal(result(own), result(p))
assert in_file(own) == (count, count), in_file(own)
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.uname().machine != "x86_64",
    reason="other processors have one instruction set",
)
def test_other_instruction_sets_pack_anew(files, tmp_path):
    """Both ways: a process with the plainest one reads the file and writes one, which this process reads."""
    if os.environ.get("TENON_CPU_ISA") == "baseline":
        pytest.skip("the other one is that of this process")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(Path(__file__).parent), *map(str, files), str(tmp_path)],
        env={**os.environ, "TENON_CPU_ISA": "baseline"}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    predictor = Predictor(tmp_path / "other.tenon")
    np.testing.assert_array_equal(result(predictor), result(Predictor(files[0])))
    assert in_file(predictor) == (PACKED, 0)


def test_other_versions_of_a_packing_pack_anew(files, tmp_path):
    header, rest = header_of(files[1])
    lines = header["__metadata__"]["tenon.packed"].splitlines()
    words = lines[1].split(" ")
    at = next(i for i, word in enumerate(words) if word.endswith(":"))
    lines[1] = " ".join([*words[:at], "0123456789abcdef:", *words[at + 1 :]])
    header["__metadata__"]["tenon.packed"] = "\n".join(lines)
    predictor = Predictor(write(tmp_path / "old.tenon", header, rest))
    np.testing.assert_array_equal(result(predictor), result(Predictor(files[0])))
    assert in_file(predictor) == (PACKED, PACKED - 1)


def test_packed_weights_of_another_size_are_not_read(files, tmp_path):
    """The form says another size than the bytes have."""
    header, rest = header_of(files[1])
    header["packed.0"]["data_offsets"][1] -= 64
    header["packed.0"]["shape"] = [header["packed.0"]["shape"][0] - 16]
    predictor = Predictor(write(tmp_path / "short.tenon", header, rest))
    np.testing.assert_array_equal(result(predictor), result(Predictor(files[0])))
    assert in_file(predictor) == (PACKED, PACKED - 1)


def test_weights_that_were_replaced_are_packed_anew(files, tmp_path):
    header, rest = header_of(files[1])
    lines = header["__metadata__"]["tenon.packed"].splitlines()
    rest = bytearray(rest)
    for line in lines[1:]:
        begin, end = header[f"leaf.{line.split()[0]}"]["data_offsets"]
        rest[begin:end] = (np.frombuffer(rest[begin:end], "float32") * np.float32(0.5)).tobytes()
    predictor = Predictor(write(tmp_path / "changed.tenon", header, bytes(rest)))
    got = result(predictor)
    assert in_file(predictor) == (PACKED, 0)
    header["__metadata__"].pop("tenon.packed")
    np.testing.assert_array_equal(
        got, result(Predictor(write(tmp_path / "x.tenon", header, bytes(rest))))
    )
    assert not np.array_equal(got, result(Predictor(files[0])))


def lines_changed(change):
    def changed(header):
        metadata = header["__metadata__"]
        metadata["tenon.packed"] = change(metadata["tenon.packed"])

    return changed


def set_offsets(begin, end):
    def changed(header):
        header["packed.0"]["data_offsets"] = [begin, end]

    return changed


BROKEN = {
    "version": (
        lines_changed(lambda text: text.replace("packed 1", "packed 2")),
        "line 1: expected 'tenon.packed 1', got 'tenon.packed 2'; a newer Tenon wrote it: make it anew with",
    ),
    "leaf": (
        lines_changed(lambda text: text.replace("\n", "\n99", 1)),
        "line 2: expected the index of a leaf, below",
    ),
    "no form": (lines_changed(lambda text: text + "\n0 - 12"), "line 7: expected two leaves, a sum and a form"),
    "too many": (
        lines_changed(lambda text: text + "\n0 - 12 form"),
        "line 7: expected a tensor 'packed.5', got none",
    ),
    "missing": (lambda header: header.pop("packed.2"), "line 4: expected a tensor 'packed.2', got none"),
    "outside": (set_offsets(0, 1 << 40), "line 2: 'packed.0' does not lie inside the file"),
    "unaligned": (set_offsets(4, 68), "line 2: expected 'packed.0' to be of float32 and aligned to 64 bytes"),
    "dtype": (
        lambda header: header["packed.0"].update(dtype="U8"),
        "line 2: expected 'packed.0' to be of float32 and aligned to 64 bytes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_damaged_is_refused(files, tmp_path, case):
    change, text = BROKEN[case]
    header, rest = header_of(files[1])
    change(header)
    path = write(tmp_path / "broken.tenon", header, rest)
    for load in (Predictor, tenon.jit.load):
        with pytest.raises(ValueError) as error:
            load(path)
        assert f"{path}: its packed weights, {text}" in str(error.value)


@pytest.mark.parametrize("left", [4, 5000, 200_000])
def test_what_is_cut_short_is_refused(files, tmp_path, left):
    path = tmp_path / "cut.tenon"
    path.write_bytes(files[1].read_bytes()[:left])
    with pytest.raises(ValueError, match="cut short|does not lie inside the file"):
        Predictor(path)


def test_what_cannot_be_saved_says_why(files, tmp_path):
    predictor = Predictor(files[0])
    with pytest.raises(LookupError, match=r"save: .*/none/x\.tenon: .*No such file"):
        predictor.save_optimized(tmp_path / "none" / "x.tenon")
    (tmp_path / "folder").mkdir()
    with pytest.raises(RuntimeError, match="folder: .*directory"):
        predictor.save_optimized(tmp_path / "folder")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_a_file_that_a_killed_process_has_left_is_in_nobodys_way(files, tmp_path):
    left = tmp_path / f"x.tenon.{os.getpid()}.0.tmp"
    left.write_bytes(b"a part")
    Predictor(files[0]).save_optimized(tmp_path / "x.tenon")
    np.testing.assert_array_equal(
        result(Predictor(tmp_path / "x.tenon")), result(Predictor(files[0]))
    )
    assert sorted(each.name for each in tmp_path.iterdir()) == ["x.tenon", left.name]
