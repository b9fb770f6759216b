# SPDX-License-Identifier: Apache-2.0
"""The programs of paddle_models.md, on models that Paddle has saved."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from guide import blocks

PAGE = "paddle_models.md"
MODELS = Path(__file__).parent.parent / "python" / "bridges" / "paddle_models"


def test_the_programs_of_the_page_run(tmp_path):
    for name in ("inference", "detector"):
        for ending in (".json", ".pdiparams"):
            shutil.copy(MODELS / f"litenet{ending}", tmp_path / f"{name}{ending}")
    for ending in (".json", ".pdiparams"):
        shutil.copy(MODELS / f"yolo{ending}", tmp_path)
    text = (tmp_path / "detector.json").read_text()
    (tmp_path / "detector.json").write_text(text.replace("[-1,3,24,24]", "[-1,3,-1,-1]"))
    programs = [text for language, text in blocks(PAGE) if language == "python"]
    assert len(programs) == 3
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(programs)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "inference.tenon").exists()
