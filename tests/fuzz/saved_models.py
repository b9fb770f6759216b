# SPDX-License-Identifier: Apache-2.0
"""Damaged models of Paddle (`.json`, `.pdmodel`, `.pdiparams`) and of PyTorch (`.pt2`): each raises an error or loads, and the
process lives.

    PYTHONPATH=build/release/python python -m tests.fuzz.saved_models --minutes 5 [--seed 1] [--kinds json,pdmodel,pdiparams,pt2]

The models are those that tests/python/bridges keeps. They are changed as bytes and as values of JSON, and read without either library
in a process of its own; those that load run on zeros. What ends that process, takes longer than ten seconds of a processor or raises an
error of another kind is written to --out. Run it on a build with AddressSanitizer to see more.
"""

from __future__ import annotations

import copy
import io
import json
import random
import sys
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

from .damaged_files import NUMBERS, Campaign, arguments, damaged, serve, told, used

BRIDGES = Path(__file__).resolve().parents[1] / "python" / "bridges"
KINDS = ("json", "pdmodel", "pdiparams", "pt2")
INPUTS: dict[str, list[tuple[str, tuple[int, ...]]]] = {
    "branch": [("float32", (3, 4))],
    "litenet": [("float32", (2, 3, 24, 24))],
    "net": [("float32", (2, 2, 4, 4)), ("float32", (4,))],
    "words": [("int64", (2, 5)), ("int64", (2,))],
}


def slots(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a value of JSON with each of its keys."""
    if not isinstance(value, (dict, list)):
        return []
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [(value, key) for key in keys] + [each for key in keys for each in slots(value[key])]


def changed_json(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return damaged(data, rng)
    content = json.loads(data)
    for _ in range(rng.randint(1, 3)):
        found = slots(content)
        if not found:
            break
        container, key = rng.choice(found)
        other, from_key = rng.choice(found)
        match rng.randrange(6):
            case 0:
                del container[key]
            case 1:
                container[key] = copy.deepcopy(other[from_key])
            case 2:
                container[key] = rng.choice(NUMBERS) * rng.choice((1, -1))
            case 3:
                container[key] = rng.choice((None, [], {}, "", True, 0.5, "1.relu", [[]]))
            case 4 if isinstance(container, list):
                container.insert(key, copy.deepcopy(container[key]))
            case _ if isinstance(container[key], str):
                container[key] = container[key][: rng.randint(0, 5)] + rng.choice(("", "_", "é"))
            case _:
                container[key] = copy.deepcopy(other[from_key])
    return json.dumps(content).encode()


def changed_archive(data: bytes, rng: random.Random) -> bytes:
    """Its JSON, or all of it."""
    if rng.random() < 0.2:
        return damaged(data, rng)
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        texts = [name for name in old.namelist() if name.endswith(".json")]
        chosen = rng.choice(texts)
        for name in old.namelist():
            part = old.read(name)
            if name == chosen:
                part = changed_json(part, rng)
            elif rng.random() < 0.03:
                part = damaged(part, rng)
            new.writestr(name, part)
    return file.getvalue()


# -- the process that loads -----------------------------------------------------------------------------------


def load(path: Path) -> Any:
    import tenon.paddle
    from tenon.torch import _archive_walk

    if path.suffix == ".pt2":
        return _archive_walk.load(str(path), name=None, gradients=False)
    model = path
    if path.suffix == ".pdiparams":  # of the model that lies beside it
        model = next(each for each in path.parent.iterdir() if each.suffix != ".pdiparams")
    return tenon.paddle.load(model, params=path.with_suffix(".pdiparams"))


def read(path: Path) -> str:
    import tenon

    program = load(path)
    inputs = [
        tenon.zeros(shape, dtype=getattr(tenon, dtype))
        for dtype, shape in INPUTS.get(path.stem, ())
    ]
    return used(lambda: program(*inputs))


def main() -> int:
    parser = arguments(str(__doc__), "build/fuzz-models")
    parser.add_argument("--kinds", default=",".join(KINDS), help="each gets its share of the time")
    options = parser.parse_args()
    if options.serve:
        return serve(read, (ValueError, NotImplementedError, MemoryError))
    models = [
        each
        for suffix in ("json", "pdmodel")
        for each in sorted(BRIDGES.glob(f"paddle_models/*.{suffix}"))
    ]
    archives = sorted(BRIDGES.glob("torch_models/*.pt2"))

    def draw(folder: Path, rng: random.Random, kind: str) -> Path:
        if kind == "pt2":
            model = rng.choice(archives)
            path = folder / model.name
            path.write_bytes(changed_archive(model.read_bytes(), rng))
            return path
        model = rng.choice([m for m in models if kind == "pdiparams" or m.suffix == f".{kind}"])
        weights = model.with_suffix(".pdiparams")
        (folder / model.name).write_bytes(model.read_bytes())
        (folder / weights.name).write_bytes(weights.read_bytes() if weights.exists() else b"")
        path = folder / f"{model.stem}.{kind}"
        changed = damaged if kind != "json" else changed_json
        path.write_bytes(changed(path.read_bytes(), rng))
        return path

    campaign, kinds = Campaign("tests.fuzz.saved_models", options), options.kinds.split(",")
    for kind in kinds:
        rng = random.Random(f"{kind} {options.seed}")
        counts = campaign.run(partial(draw, kind=kind), rng, options.minutes / len(kinds))
        print(f"{kind}: {told(counts)}; {campaign.failures} failed so far", flush=True)
    return campaign.end()


if __name__ == "__main__":
    sys.exit(main())
