# SPDX-License-Identifier: Apache-2.0
"""What `tenon tune` starts on ranks: it runs a step of a recipe in one way, or measures the machine.

tenon run -n 4 -m tenon.distributed.planning.tuner.worker step train.py:recipe CONFIG RESULT
tenon run -n 4 -m tenon.distributed.planning.tuner.worker machine RESULT
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tenon

from ...calls import barrier
from ...world import destroy_process_group, get_rank, init_process_group
from ..calibration import calibrate
from ..machine import Machine
from .recipe import Config, Recipe
from .steps import build_step

_STEPS = 5  # that are timed, behind two


def load_recipe(place: str) -> Recipe:
    """Of "train.py:recipe": what the function of that name returns, or the object."""
    file, colon, name = place.rpartition(":")
    if not colon or not Path(file).is_file():
        raise ValueError(f"tune: expected FILE.py:NAME of a recipe, got {place!r}")
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(Path(file).resolve().parent))
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    recipe = found if isinstance(found, Recipe) or found is None else found()
    if not isinstance(recipe, Recipe):
        raise ValueError(
            f"tune: expected {name} of {file} to be a dist.Recipe or a function that returns one, got {type(recipe).__name__}"
        )
    return recipe


def measure_step(place: str, config: Config, timeout: float = 600.0) -> float:
    """Seconds of a step on processes of this machine: the median of several, of the slowest rank."""
    told = _run(config.ranks, ["step", place, json.dumps(vars(config))], timeout)
    return float(json.loads(told)["seconds"])


def measure_machine(ranks: int, timeout: float = 600.0) -> Machine:
    """As dist.calibrate() on so many processes of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "machine.json"
        file.write_text(_run(ranks, ["machine"], timeout), encoding="utf-8")
        return Machine.load(file)


def _run(ranks: int, words: list[str], timeout: float) -> str:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, "-m", "tenon", "run", "-n", str(ranks), "-m", __name__]
        done = subprocess.run(
            [*command, *words, str(result)],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"tune: {words[0]} on {ranks} ranks failed: {done.stderr[-2000:]}")
        return result.read_text(encoding="utf-8")


def _main(what: str, *words: str) -> None:
    init_process_group()
    result = Path(words[-1])
    if what == "machine":
        machine = calibrate()
        if get_rank() == 0:
            machine.save(result)
    else:
        tenon.manual_seed(0)
        step = build_step(load_recipe(words[0]), Config(**json.loads(words[1])))
        times = []
        for _ in range(2 + _STEPS):
            barrier()
            start = time.perf_counter()
            step()
            barrier()
            times.append(time.perf_counter() - start)
        if get_rank() == 0:
            seconds = sorted(times[2:])[_STEPS // 2]
            result.write_text(json.dumps({"seconds": seconds}), encoding="utf-8")
    destroy_process_group()


if __name__ == "__main__":
    _main(*sys.argv[1:])
