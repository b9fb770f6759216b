# SPDX-License-Identifier: Apache-2.0
"""Where a model is cut."""

from __future__ import annotations

from collections.abc import Sequence

from tenon import Tensor
from tenon.nn import Module, Sequential

Part = tuple[str, Module]  # with the name that it has in the model


def parts_of(model: Module, prefix: str = "") -> list[Part]:
    """The modules that a model runs one behind the other."""
    if not isinstance(model, Sequential) or type(model).forward is not Sequential.forward:
        return [(prefix, model)]
    parts = []
    for name, child in model.named_children():
        parts += parts_of(child, f"{prefix}.{name}" if prefix else name)
    return parts


def cut(
    model: Module | Sequence[Module], split: Sequence[str] | None, stages: int
) -> list[list[Part]]:
    """The parts of each stage: in front of those that `split` names, or into runs of parts such that the largest number
    of parameters of a stage is small. A list has a module for each stage."""
    if not isinstance(model, Module):
        if split is not None or len(model) != stages:
            raise ValueError(
                f"pipeline: expected a list of {stages} modules, one for each stage, without split=, got {len(model)}"
            )
        return [[(str(stage), module)] for stage, module in enumerate(model)]
    parts = parts_of(model)
    if len(parts) < stages:
        raise ValueError(
            f"pipeline: expected a Sequential of {stages} modules at least, one for each stage, got "
            f"{type(model).__name__} with {len(parts)}; give a list of modules, one for each stage"
        )
    if split is None:
        begins = _balanced([_size_of(module) for _, module in parts], stages)
    else:
        names = [name for name, _ in parts]
        # "blocks.2" may be a Sequential itself: its first part.
        begins = [
            next((i for i, name in enumerate(names) if f"{name}.".startswith(f"{cut}.")), -1)
            for cut in split
        ]
        if len(split) != stages - 1 or -1 in begins or [0, *begins] != sorted({0, *begins}):
            raise ValueError(
                f"pipeline: expected split to name {stages - 1} modules, at which stages 1 to {stages - 1} begin, in "
                f"their order, out of {', '.join(names[1:])}; got {list(split)}"
            )
    bounds = [0, *begins, len(parts)]
    return [parts[bounds[i] : bounds[i + 1]] for i in range(stages)]


def _size_of(module: Module) -> int:
    return sum(p.numel() for p in {id(p): p for p in module.parameters()}.values())


def _balanced(sizes: list[int], stages: int) -> list[int]:
    """Where stages 1, 2, ... begin, so that the largest is as small as it can be."""
    count = len(sizes)
    sums = [0]
    for size in sizes:
        sums.append(sums[-1] + size + 1)  # of parts without parameters, few are better, too
    # best[k][i]: the largest stage when the first i parts make k stages, and where the last of them begins
    best = [[(0, 0)] * (count + 1) for _ in range(stages + 1)]
    for i in range(1, count + 1):
        best[1][i] = (sums[i], 0)
    for k in range(2, stages + 1):
        for i in range(k, count + 1):
            best[k][i] = min(
                (max(best[k - 1][j][0], sums[i] - sums[j]), j) for j in range(k - 1, i)
            )
    begins = []
    end = count
    for k in range(stages, 1, -1):
        end = best[k][end][1]
        begins.append(end)
    return begins[::-1]


class Stage(Module):
    """Parts of a model, run one behind the other."""

    def __init__(self, index: int, parts: list[Part]) -> None:
        super().__init__()
        self.index, self.names = index, [name for name, _ in parts]
        for place, (_, module) in enumerate(parts):
            self.add_module(f"part{place}", module)

    def forward(self, *args: Tensor) -> tuple[Tensor, ...]:
        result = args
        for module in self.children():
            given = module(*result)
            result = tuple(given) if isinstance(given, (tuple, list)) else (given,)
            wrong = next((x for x in result if not isinstance(x, Tensor)), None)
            if wrong is not None or not result:
                raise TypeError(
                    f"pipeline: expected {type(module).__name__} of stage {self.index} to return a tensor or several, "
                    f"got {type(wrong).__name__ if result else 'none'}"
                )
        return result

    def model_name(self, name: str) -> str:
        """The name in the model of what is called `name` here."""
        place, _, rest = name.partition(".")
        prefix = self.names[int(place.removeprefix("part"))]
        return f"{prefix}.{rest}" if prefix else rest
