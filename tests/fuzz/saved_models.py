# SPDX-License-Identifier: Apache-2.0
"""Damaged models of Paddle (`.json`, `.pdmodel`, `.pdiparams`) and of PyTorch (`.pt2`): each raises an error or loads, and the
process lives.

    PYTHONPATH=build/release/python python -m tests.fuzz.saved_models --minutes 5 [--seed 1] [--kinds json,pdmodel,pdiparams,pt2]

The models are those of tests/python/bridges/paddle_models, and a `.pt2` file that PyTorch writes, where it is installed. They are
changed as bytes and as values of JSON, and read without either library in a process of its own; those that load run on zeros. What ends
that process, takes longer than ten seconds or raises an error of another kind is written to --out. Run it on a build with
AddressSanitizer to see more.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import random
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.fuzz.onnx_models import GIBIBYTES, NUMBERS, Loader, damaged

KEPT = Path(__file__).resolve().parents[1] / "python" / "bridges" / "paddle_models"
KINDS = ("json", "pdmodel", "pdiparams", "pt2")
REFUSALS = (
    ValueError,
    TypeError,
    IndexError,
    NotImplementedError,
    OverflowError,
    MemoryError,
    RuntimeError,
)


def archive() -> bytes | None:
    """A program that PyTorch has exported; None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None

    class Net(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.body = torch.nn.Sequential(
                torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU()
            )
            self.head = torch.nn.Linear(12, 4)
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x: Any, *, bias: Any) -> Any:
            self.count.add_(1)
            y = self.head(self.body(x).flatten(1))
            values, indices = (y + bias).max(1)
            return {"y": y[:, 1:], "rest": [values, indices, self.count]}

    file = io.BytesIO()
    batch = {0: torch.export.Dim("batch", max=8)}
    exported = torch.export.export(
        Net().eval(),
        (torch.randn(2, 2, 4, 4),),
        {"bias": torch.randn(4)},
        dynamic_shapes={"x": batch, "bias": None},
    )
    torch.export.save(exported.run_decompositions(), file)
    return file.getvalue()


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
    import tenon
    from tenon.torch import _archive_walk

    if path.suffix == ".pt2":
        return _archive_walk.load(str(path), name=None, gradients=False)
    model = path
    if path.suffix == ".pdiparams":  # of the model that lies beside it
        model = next(each for each in path.parent.iterdir() if each.suffix != ".pdiparams")
    return tenon.paddle.load(model, params=path.with_suffix(".pdiparams"))


def serve() -> None:
    """Loads the file that each line names; a line back says what became of it."""
    import resource

    import tenon
    import tenon.paddle

    if "libasan" not in Path("/proc/self/maps").read_text():  # which reserves more than any limit
        resource.setrlimit(resource.RLIMIT_AS, (GIBIBYTES << 30, GIBIBYTES << 30))
    tenon.set_num_threads(1)
    for line in sys.stdin:
        try:
            program = load(Path(line.strip()))
            said = "loaded"
            try:
                program(*(tenon.zeros(each) for each in SHAPES.get(Path(line.strip()).stem, ())))
            except REFUSALS:
                said = "loaded, and its run was refused"
        except (ValueError, NotImplementedError, MemoryError) as error:
            said = f"refused {type(error).__name__}" if str(error) else "raised without a text"
        except Exception as error:
            said = f"raised {type(error).__name__}: {error}".replace("\n", " ")
        print(said, flush=True)


SHAPES: dict[str, list[tuple[int, ...]]] = {
    "branch": [(3, 4)],
    "litenet": [(2, 3, 24, 24)],
    "net": [(2, 2, 4, 4), (4,)],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--out", default="build/fuzz-models", help="where failures are written")
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    rng = random.Random(options.seed)
    models = [*sorted(KEPT.glob("*.json")), *sorted(KEPT.glob("*.pdmodel"))]
    kept = archive()
    kinds = [kind for kind in options.kinds.split(",") if kind != "pt2" or kept is not None]
    if kept is None and "pt2" in options.kinds:
        print("PyTorch is not installed: no .pt2 file is read")
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    loader, failures = Loader("tests.fuzz.saved_models"), 0
    counts: Counter[str] = Counter()
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            kind = rng.choice(kinds)
            for each in Path(folder).iterdir():
                each.unlink()
            if kind == "pt2":
                assert kept is not None
                path = Path(folder) / "net.pt2"
                path.write_bytes(changed_archive(kept, rng))
            else:
                model = rng.choice(
                    [m for m in models if kind == "pdiparams" or m.suffix == f".{kind}"]
                )
                weights = model.with_suffix(".pdiparams")
                data = weights.read_bytes() if weights.exists() else b""
                path = Path(folder) / f"{model.stem}.{kind}"
                (Path(folder) / model.name).write_bytes(model.read_bytes())
                (Path(folder) / f"{model.stem}.pdiparams").write_bytes(data)
                changed = damaged if kind != "json" else changed_json
                path.write_bytes(changed(path.read_bytes(), rng))
            said = loader.load(path)
            if said.split()[0].rstrip(",") in ("loaded", "refused"):
                counts[f"{kind} {said.split()[0].rstrip(',')}"] += 1
                continue
            failures += 1
            saved = out / f"{options.seed}-{failures}"
            saved.mkdir(exist_ok=True)
            for each in Path(folder).iterdir():
                (saved / each.name).write_bytes(each.read_bytes())
            print(f"{saved / path.name}: {said}", flush=True)
    print(
        ", ".join(f"{count} {what}" for what, count in sorted(counts.items())), f"{failures} failed"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
