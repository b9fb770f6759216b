# SPDX-License-Identifier: Apache-2.0
"""The programs of jax.md, where JAX is installed."""

import pytest
from guide import blocks
from test_snippets import run

PAGE = "jax.md"


def test_the_programs_of_the_page_run(tmp_path, monkeypatch):
    pytest.importorskip("jax", exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    programs = [text for language, text in blocks(PAGE) if language == "python"]
    assert len(programs) == 2
    run("\n".join(programs))
