# SPDX-License-Identifier: Apache-2.0
"""The programs of torch.md, where PyTorch is installed."""

import pytest
from guide import blocks
from test_snippets import run

PAGE = "torch.md"


def test_the_programs_of_the_page_run():
    pytest.importorskip("torch", exc_type=ImportError)
    programs = [text for language, text in blocks(PAGE) if language == "python"]
    assert len(programs) == 3
    # The name is found where the package is installed, and not in a build tree.
    printed = run("\n".join(programs).replace('backend="tenon"', "backend=tenon.torch.backend"))
    assert "3 calls of 2 kinds became 3 steps; 4 tensors of 232 bytes are shared" in printed
