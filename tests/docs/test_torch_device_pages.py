# SPDX-License-Identifier: Apache-2.0
"""The programs about PyTorch's device, of torch.md and at the end of vendors.md, on the guide's plugin, where PyTorch is
installed."""

import os
import re
from pathlib import Path

import pytest
from guide import ROOT, read
from test_snippets import run

LIBRARY = Path(ROOT) / "build" / "custom_device" / "libtenon_toy.so"


def library():
    given = os.environ.get("TENON_TEST_PLUGINS", "").split(os.pathsep)
    return next((each for each in given if "libtenon_toy" in each), str(LIBRARY))


def program(page, title):
    return re.search(rf'^```python title="{re.escape(title)}"\n(.*?)^```', read(page), re.M | re.S)[
        1
    ]


@pytest.fixture(autouse=True)
def needed():
    pytest.importorskip("torch", exc_type=ImportError)
    if not os.path.exists(library()):
        pytest.skip(f"{library()} has not been built")


def test_the_page_about_pytorch():
    text = program("torch.md", "device.py").replace("build/libtenon_toy.so", library())
    assert "device 'toy'" in run(text)


def test_the_readers_chip_trains(tmp_path):
    text = program("vendors.md", "train_with_pytorch.py").replace("bolt", "toy")
    load = f'import tenon\n\ntenon.plugins.load("{library()}")\n'
    printed = run(load + text, tmp_path)
    before, after = map(float, re.match(r"([\d.]+) to ([\d.]+) on toy:0", printed).groups())
    assert after < before / 2
    assert (tmp_path / "model.pt").exists()


def test_a_trainer_of_transformers_trains_on_the_readers_chip(tmp_path):
    pytest.importorskip("transformers", exc_type=ImportError)
    pytest.importorskip("accelerate", exc_type=ImportError)
    text = program("vendors.md", "train_with_transformers.py").replace("bolt", "toy")
    load = f'import tenon\n\ntenon.plugins.load("{library()}")\n'
    printed = run(load + text, tmp_path)
    before, after = map(float, re.search(r"([\d.]+) to ([\d.]+) on toy:0", printed).groups())
    assert after < before / 2
