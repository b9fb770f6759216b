# SPDX-License-Identifier: Apache-2.0
"""The programs of torch_alias.md."""

import subprocess
import sys

from guide import blocks
from test_snippets import run

PAGE = "torch_alias.md"


def test_the_programs_of_the_page_run():
    run("\n".join(text for language, text in blocks(PAGE) if language == "python"))


def test_the_commands_of_the_page_run(tmp_path):
    (commands,) = [text for language, text in blocks(PAGE) if language == "sh"]
    (tmp_path / "package").mkdir()
    for name in ("train.py", "package/train.py"):
        (tmp_path / name).write_text(
            "import sys, torch\nprint(torch.ones(2).size(), sys.argv[1:])\n"
        )
    printed = []
    for line in commands.splitlines():
        command = [sys.executable, *line.split()[1:]]
        printed.append(
            subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        )
    assert printed == ["torch.Size([2]) ['--epochs', '3']\n", "torch.Size([2]) []\n"]
