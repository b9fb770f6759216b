# SPDX-License-Identifier: Apache-2.0
"""The samples of the operator files, as tenon-codegen exports them to operators.json."""

import json
import math
import os
import zlib
from pathlib import Path

import numpy as np
import references
import tenon
from case import Case, as_dtype

_CONSTANTS = {"none": None, "true": True, "false": False, "inf": math.inf, "-inf": -math.inf}
NEVER = "the operator is defined without a gradient"


class Generators:
    """The random numbers of one sample: the same in every run, whatever other samples there are."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(zlib.crc32(seed.encode()))
        self.spreads = 0

    def normal(self, *shape):
        return np.asarray(self.rng.standard_normal(shape))

    def uniform(self, low, high, *shape):
        return np.asarray(self.rng.uniform(low, high, shape))

    def integers(self, low, high, *shape, dtype="int64"):
        return np.asarray(self.rng.integers(low, high, shape), dtype=dtype)

    def booleans(self, *shape):
        return np.asarray(self.rng.integers(0, 2, shape), dtype=bool)

    def spread(self, *shape):
        """Different numbers, at least 0.1 apart, and different from those of the sample's other
        spreads: maxima and orders are safe against small steps."""
        count = math.prod(shape)
        shift = 0.05 + 0.04 * self.spreads
        self.spreads += 1
        return (self.rng.permutation(count).reshape(shape) - count / 2) * 0.13 + shift

    def names(self):
        functions = ("normal", "uniform", "integers", "booleans", "spread")
        constants = {"array": np.array, "inf": math.inf, "nan": math.nan}
        return {name: getattr(self, name) for name in functions} | constants


class Reference:
    """A NumPy expression over the parameters' names as a function of the arguments."""

    def __init__(self, text, parameters, origin):
        self.text, self.origin = text, origin
        self.code = compile(text, origin, "eval")
        self.names = [p["name"] for p in parameters]
        self.defaults = {p["name"]: default(p["default"]) for p in parameters}

    def __call__(self, *args, **kwargs):
        named = (
            self.defaults | dict(zip(self.names, args, strict=False)) | kwargs
        )  # the rest have defaults
        named = {name: as_tuple(value) for name, value in named.items()}
        try:
            value = eval(self.code, {"np": np, "math": math, **references.FUNCTIONS, **named})
        except NameError as error:
            raise NameError(
                f"{self.origin}: reference `{self.text}`: expected np, math, functions of "
                f"tests/ops/references and the parameters {', '.join(self.names)}; {error}"
            ) from error
        if isinstance(value, (tuple, list)):
            return tuple(np.asarray(each) for each in value)
        return np.asarray(value)


def as_tuple(value):
    """Lists of numbers as NumPy takes axes and shapes."""
    is_numbers = isinstance(value, list) and not any(isinstance(v, np.ndarray) for v in value)
    return tuple(value) if is_numbers else value


def default(text):
    """The value of a default as the signature spells it; dtypes stay text."""
    if text is None or text in _CONSTANTS:
        return _CONSTANTS.get(text)
    try:
        return eval(text, {})
    except NameError:
        return text


def only_floating_dtype(operator):
    """The floating dtype of an operator that serves no other; None if there are more, or none."""
    served = [each for each in operator["dtypes"] if each.startswith(("float", "bfloat"))]
    return served[0] if len(served) == 1 else None


def case(operator, sample):
    name = operator["name"]
    names = Generators(sample["call"]).names()
    parameters = [p["name"] for p in operator["params"]]
    chosen = {}
    if operator["never_differentiable"]:
        chosen = {"grad": (), "why": NEVER}
    if sample["grad"] is not None:
        grad = tuple(parameters.index(each) for each in sample["grad"])
        chosen = {"grad": grad, "why": sample["why"]}
    chosen |= {key: sample[key] for key in ("rtol", "atol") if sample[key] is not None}
    if sample["reference"]:
        reference = Reference(sample["reference"], operator["params"], sample["origin"])
    else:
        reference = references.find(name)
    only = only_floating_dtype(operator)
    arguments = (eval(text, names) for text in sample["arguments"])
    return Case(
        name,
        tuple(as_dtype(value, only) if only else value for value in arguments),
        {key: eval(text, names) for key, text in sample["keywords"].items()},
        reference,
        label=sample["label"],
        dtype=sample["dtype"],
        only=only,
        smooth=sample["smooth"],
        **chosen,
    )


def read_operators():
    """The operators that Python has, by name."""
    build = os.environ.get("TENON_BUILD_DIR") or Path(tenon.__file__).resolve().parents[2]
    path = Path(build) / "gen" / "operators.json"
    if not path.exists():
        raise FileNotFoundError(
            f"tests/ops: expected the operator table of a build at {path}; set TENON_BUILD_DIR to "
            "a build folder"
        )
    operators = {}
    for operator in json.loads(path.read_text())["operators"]:
        operator["name"] = operator["name"].removeprefix("tenon::")
        if hasattr(tenon, operator["name"]):  # internal ones are for the conformance kit
            operators[operator["name"]] = operator
    return operators


OPERATORS = read_operators()
CASES = [case(operator, each) for operator in OPERATORS.values() for each in operator["samples"]]
REFERENCES = {each.op: each.reference for each in reversed(CASES) if each.reference}
