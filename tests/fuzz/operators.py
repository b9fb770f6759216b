# SPDX-License-Identifier: Apache-2.0
"""The operator table, as tenon-codegen writes it from opdefs/*.yaml."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import tenon
from tenon._tensor.dtypes import STORAGE


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str  # without the question mark: Tensor, Tensor[], int, int[], float, bool, Scalar, ...
    optional: bool  # may be None
    keyword_only: bool
    default: str | None  # the text of the schema
    dtypes: tuple[str, ...] | None  # where the parameter has a class of its own, as an index

    @property
    def required(self):
        return self.default is None

    @property
    def is_tensor(self):
        return self.type == "Tensor"


@dataclass(frozen=True)
class Operator:
    name: str
    kind: str
    signature: str
    compute: str
    dtypes: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    tags: frozenset[str]
    in_place: bool
    out_form: bool
    method: bool
    list_result: bool
    results: int
    samples: tuple[dict, ...] = ()  # as written in the operator's entry

    @property
    def is_random(self):
        return "random" in self.tags or self.name in RANDOM_COMPOSITES

    @property
    def has_float64(self):
        """Whether it also serves float64, which says what a narrower dtype should come near to."""
        return "float64" in self.dtypes or "float32" not in self.dtypes

    @property
    def tensors(self):
        return [p for p in self.parameters if p.type.startswith("Tensor")]


# Dtypes without arithmetic, whose arrays NumPy has not; and what is for them. tests/python/tensor/test_storage_dtypes.py
# and tests/ops/test_moves_or_refuses.py test these.
OF_STORAGE = {"pack", "unpack", "bitcast"}

# Composites have no tag of their own for the random operators that they call.
RANDOM_COMPOSITES = {
    "randperm",
    "bernoulli",
    "dropout",
    "dropout_add",
    "uniform_like",
    "normal_like",
    "multinomial",
    "sample_neighbors",
    "shuffle_batch",
    "tdm_sampler",
    "top_p_sampling",
}


def _build_folder():
    """The build whose package is imported, unless TENON_BUILD_DIR names another one."""
    if os.environ.get("TENON_BUILD_DIR"):
        return Path(os.environ["TENON_BUILD_DIR"])
    return Path(tenon.__file__).parents[2]


# The classes of dtypes that opdefs/README.md lists, as far as parameters use them.
CLASSES = {
    "bool": ("bool",),
    "floating": ("float32", "float64", "float16", "bfloat16"),
    "integer": ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64"),
}


def _dtypes_of_class(text):
    """The dtypes of `bool` or `bool|integer`; those of other classes by their own names."""
    return tuple(name for part in text.split("|") for name in CLASSES.get(part, (part,)))


def _parameter(entry):
    return Parameter(
        entry["name"],
        entry["type"].removesuffix("?"),
        entry["optional"],
        entry["keyword_only"],
        entry["default"],
        _dtypes_of_class(entry["dtypes"]) if entry["dtypes"] else None,
    )


@cache
def table():
    """Every public operator by its name, without the namespace."""
    path = _build_folder() / "gen" / "operators.json"
    if not path.exists():
        raise FileNotFoundError(
            f"tests.fuzz: expected the operator table of a build at {path}; set TENON_BUILD_DIR to "
            "a build folder"
        )
    operators = {}
    for entry in json.loads(path.read_text())["operators"]:
        if "internal" in entry["tags"]:
            continue
        name = entry["name"].removeprefix("tenon::")
        if name in OF_STORAGE:
            continue
        operators[name] = Operator(
            name,
            entry["kind"],
            entry["signature"],
            entry["compute"],
            tuple(dtype for dtype in entry["dtypes"] if dtype not in STORAGE),
            tuple(_parameter(p) for p in entry["params"]),
            frozenset(entry["tags"]),
            entry["in_place"],
            entry["out_form"],
            entry["method"],
            entry["list_result"],
            len(entry["results"]),
            tuple(sample for sample in entry["samples"] if not sample["made"]),
        )
    return operators
