# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/llm.md, on a tiny model."""

import json
import sys

import pytest
import tenon
from guide import ROOT, blocks

pytest.importorskip("tokenizers")
pytest.importorskip("jinja2")


def test_the_programs_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(f"{ROOT}/tests/python/llm")
    from tiny_model import folder_of

    folder = folder_of(tmp_path, width=64)  # whose rows are whole blocks
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    scope = {"tenon": tenon, "folder": folder}
    programs = [text for language, text in blocks("llm.md") if language == "python"]
    assert len(programs) == 4
    for program in programs:
        exec(program, scope)
    assert scope["model"].chat_prompt([{"role": "user", "content": "Hello"}]) == scope[
        "model"
    ].tokenizer.encode("user: Hello\n")
    assert len(capsys.readouterr().out) > 16
    sys.modules.pop("tiny_model", None)
