# SPDX-License-Identifier: Apache-2.0
"""Draws the plots of docs/performance.md from the results of a run.

    python _plots.py build/benchmarks docs/images

SVG, without a background; text and axes take the colour that the reader's theme gives them.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

INK = "#123456"  # stands for the theme's colour until the file is written
THEME = (
    "<style>svg{color:#24292f}@media(prefers-color-scheme:dark){svg{color:#c9d1d9}}"
    "text{font-family:sans-serif}</style>"
)
COLOURS = {  # of middling lightness, to be read on white and on black
    "tenon": "#e8590c",
    "numpy": "#3b8ed0",
    "torch": "#9a6dd7",
    "paddle": "#2f9e6e",
    "jax": "#c2930a",
    "onnxruntime": "#868e96",
    "limit": "#868e96",
}
MARKS = {"tenon": "o", "numpy": "s", "torch": "^", "paddle": "v", "jax": "D", "onnxruntime": "P"}
NAMES = {
    "tenon": "Tenon",
    "numpy": "NumPy",
    "torch": "PyTorch",
    "paddle": "Paddle",
    "jax": "JAX",
    "onnxruntime": "ONNX Runtime",
}


def style() -> None:
    ink = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    matplotlib.rcParams.update(dict.fromkeys(ink, INK))
    matplotlib.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "tenon",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "xtick.minor.size": 0,
            "ytick.minor.size": 0,
            "grid.color": "#868e96",
            "grid.alpha": 0.25,
            "legend.frameon": False,
            "lines.markersize": 4,
            "lines.linewidth": 1.4,
        }
    )


def save(figure, path: pathlib.Path) -> None:
    for axes in figure.axes:
        axes.minorticks_off()
    figure.savefig(path, transparent=True, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    text = path.read_text(encoding="utf-8").replace(INK, "currentColor")
    text = re.sub(r"(<svg [^>]*>)", r"\1" + THEME, text, count=1)
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")


def overhead(data: dict, path: pathlib.Path) -> None:
    """Time of a call on one element, a dot for each library."""
    rows = data["results"][::-1]
    figure, axes = pyplot.subplots(figsize=(7.2, 0.24 * len(rows) + 0.9), layout="constrained")
    for library in ("tenon", *(x for x in data["versions"] if x != "tenon")):
        points = [
            (row["seconds"][library]["median"] * 1e9, i)
            for i, row in enumerate(rows)
            if library in row["seconds"]
        ]
        if points:
            axes.plot(*zip(*points), MARKS[library], color=COLOURS[library], label=NAMES[library])
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [row["case"] for row in rows], family="monospace")
    axes.set_xlabel("nanoseconds for a call")
    figure.legend(loc="outside upper center", ncols=6)
    save(figure, path)


def scaling(data: dict, path: pathlib.Path) -> None:
    """Each sweep: time against n, both logarithmic."""
    sweeps: dict[str, list[dict]] = {}
    for row in data["results"]:
        sweeps.setdefault(row["group"], []).append(row)
    columns = 3
    lines = -(-len(sweeps) // columns)
    size = (8.4, 1.9 * lines + 0.4)
    figure, grid = pyplot.subplots(
        lines, columns, figsize=size, layout="constrained", squeeze=False
    )
    for axes in grid.flat[len(sweeps) :]:
        axes.axis("off")
    for axes, (name, rows) in zip(grid.flat, sweeps.items()):
        for library in ("tenon", "numpy", "torch"):
            points = [
                (row["parameters"]["n"], row["seconds"][library]["best"] * 1e6)
                for row in rows
                if library in row["seconds"]
            ]
            if points:
                axes.plot(
                    *zip(*points),
                    MARKS[library] + "-",
                    color=COLOURS[library],
                    label=NAMES[library],
                )
        axes.set_xscale("linear" if "dimensions" in name else "log")
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, high / 30), high)  # noise is not to look like growth
        axes.set_title(name, fontsize=9)
        axes.set_xlabel(data["exponents"].get(name, {}).get("unit", "n"), fontsize=8)
        axes.set_ylabel("us", fontsize=8)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    save(figure, path)


def memory_bound(data: dict, path: pathlib.Path) -> None:
    """Bytes moved in a second against size, for some operators, with the bandwidth measured beside them."""
    shown = ("add", "sum", "copy strided", "softmax", "layer_norm", "Adam")
    figure, grid = pyplot.subplots(2, 3, figsize=(8.4, 4.2), layout="constrained")
    for axes, name in zip(grid.flat, shown):
        rows = [
            row
            for row in data["results"]
            if row["case"].split(", ")[0] == name
            and row["parameters"]["threads"] == 1
            and row["parameters"]["layout"] == ("t" if name == "copy strided" else "c")
            and row["case"].count(",") <= (name == "copy strided")
        ]
        for library in ("tenon", "numpy", "torch"):
            points = [
                (row["parameters"]["elements"], row["work"]["amount"] / seconds["best"] / 1e9)
                for row in rows
                if (seconds := row["seconds"].get(library))
            ]
            if points:
                axes.plot(
                    *zip(*points),
                    MARKS[library] + "-",
                    color=COLOURS[library],
                    label=NAMES[library],
                )
        limit = [(row["parameters"]["elements"], row["limit"]["rate"] / 1e9) for row in rows]
        if limit:
            axes.plot(*zip(*limit), "--", color=COLOURS["limit"], label="bandwidth")
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_title(name + (" (transposed)" if name == "copy strided" else ""), fontsize=9)
        axes.set_xlabel("elements", fontsize=8)
        axes.set_ylabel("GB/s", fontsize=8)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4)
    save(figure, path)


def ratios(data: dict, path: pathlib.Path) -> None:
    """Tenon's time over each peer's, a bar for each row of a benchmark."""
    rows = [row for row in data["results"] if row.get("ratios")][::-1]
    peers = [x for x in data["versions"] if any(x in row["ratios"] for row in rows)]
    figure, axes = pyplot.subplots(figsize=(7.2, 0.2 * len(rows) + 0.9), layout="constrained")
    for peer in peers:
        points = [
            (row["ratios"][peer]["median"], i)
            for i, row in enumerate(rows)
            if peer in row["ratios"]
        ]
        axes.plot(*zip(*points), MARKS[peer], color=COLOURS[peer], label=f"to {NAMES[peer]}")
    axes.axvline(1, color=COLOURS["limit"], linestyle="--")
    axes.set_xscale("log")
    labels = [", ".join(filter(None, (row["case"], row["group"]))) for row in rows]
    axes.set_yticks(range(len(rows)), labels, fontsize=7)
    axes.set_xlabel("Tenon's time over the peer's: left of the line Tenon is faster")
    figure.legend(loc="outside upper center", ncols=4)
    save(figure, path)


PLOTS = {
    "overhead": overhead,
    "scaling": scaling,
    "memory_bound": memory_bound,
    "transcendentals": ratios,
    "products": ratios,
    "training_steps": ratios,
}


def main() -> None:
    results, images = map(pathlib.Path, sys.argv[1:])
    images.mkdir(parents=True, exist_ok=True)
    style()
    for name, plot in PLOTS.items():
        path = results / f"{name}.json"
        if path.exists():
            plot(json.loads(path.read_text(encoding="utf-8")), images / f"{name}.svg")
            print(f"docs/images/{name}.svg")


if __name__ == "__main__":
    main()
