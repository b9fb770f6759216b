# SPDX-License-Identifier: Apache-2.0
"""What the process that reads damaged files may do, and a few damaged programs; more by `python -m tests.fuzz.programs`."""

import random
from argparse import Namespace

import pytest

from . import programs
from .damaged_files import REFUSALS, Campaign, Reader, damaged

ANGRY = """
import os, sys
from pathlib import Path
import tenon
from tests.fuzz.damaged_files import serve

def read(path):
    what = path.read_text()
    if what == "warn":  # more than a pipe holds
        sys.stderr.write("a warning\\n" * 100_000)
    if what == "end":
        sys.stderr.write("==ERROR: what a sanitizer says\\n")
        sys.stderr.flush()
        os.abort()
    if what == "bug":
        raise tenon.InternalError("a bug")
    if what == "refuse":
        raise ValueError("expected another file")
    if what == "silent":
        raise ValueError
    return "loaded"

serve(read, (ValueError, RuntimeError))
"""


@pytest.fixture
def reader(tmp_path, monkeypatch):
    (tmp_path / "angry.py").write_text(ANGRY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    made = Reader("angry")
    yield made
    made.close()


def test_what_becomes_of_a_file(reader, tmp_path):
    def said(what):
        path = tmp_path / what
        path.write_text(what)
        return reader.read(path)

    assert said("warn") == said("warn") == "loaded"
    assert said("refuse") == "refused ValueError"
    assert said("silent") == "raised without a text"
    assert said("bug") == "raised InternalError: a bug"
    ended = said("end")
    assert ended.startswith("ended the process (-6): ==ERROR: what a sanitizer says")
    assert said("warn") == "loaded"  # by a new process


def test_files_that_fail_are_kept(reader, tmp_path, capsys):
    campaign = Campaign("angry", Namespace(seed=3, out=tmp_path / "kept", count=3))

    def draw(folder, rng):
        path = folder / "file"
        path.write_text("refuse" if campaign.failures else "end")
        return path

    counts = campaign.run(draw, random.Random(0), 10)
    assert campaign.failures == 1 and counts["refused"] == 2 and campaign.end() == 1
    assert (tmp_path / "kept" / "3-1" / "file").read_text() == "end"
    assert "3-1/file: ended the process" in capsys.readouterr().out


def test_damaged_programs_are_refused_or_run(tmp_path):
    corpus, rng, path = programs.of_networks(), random.Random(1), tmp_path / "program.tenon"
    said = []
    for number in range(60):
        path.unlink(missing_ok=True)
        data = corpus[number % len(corpus)]
        path.write_bytes(data if number < 9 else programs.changed(data, corpus, rng))
        try:
            said.append(programs.read(path))
        except REFUSALS as error:
            assert str(error)
            said.append("refused")
    assert all(each.startswith("loaded") for each in said[:9])
    assert said.count("refused") > 20


def test_bytes_are_changed():
    rng = random.Random(0)
    assert sum(damaged(b"abcdefgh", rng) != b"abcdefgh" for _ in range(20)) > 15
    assert isinstance(damaged(b"", rng), bytes)
