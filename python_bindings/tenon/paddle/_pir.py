# SPDX-License-Identifier: Apache-2.0
"""Reader of Paddle 3's `.json` files, which hold programs of PIR, `base_code.version` 4."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from tenon.paddle._blocks import (
    MOST_AXES,
    MOST_VALUES,
    Block,
    Input,
    Key,
    Operator,
    SavedModel,
    ValueType,
)
from tenon.paddle._lines import PARAMETERS

_VERSION: Final = 4
_DTYPES: Final = {
    "bool": "bool",
    "ui8": "uint8",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
}
# Attributes that say nothing of a value: names of layers, and where a program for training keeps its notes.
_NOTES: Final = frozenset(
    "struct_name stop_gradient persistable op_role chunk_id dist_attr".split()
)
_NOT_SAVED: Final = (
    "non_persistable"  # how names end of parameters that the file of weights does not have
)


def read(text: bytes, name: str) -> SavedModel:
    """ValueError: it is none, or of another version."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: expected JSON, {error}") from None
    try:
        return _Reader(name).model(content)
    except (LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(
            f"{name}: expected a program of PIR, found a part that is none: {error!r}"
        ) from None


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._values = 0
        self._parameters: list[Input] = []
        self._inputs: list[Input] = []
        self._outputs: list[tuple[int, str, Key]] = []

    def model(self, content: Any) -> SavedModel:
        base = content.get("base_code", {}) if isinstance(content, dict) else {}
        if base.get("magic") != "pir":
            raise ValueError(
                f'{self._name}: expected "base_code": {{"magic": "pir"}}, got {base!r}'
            )
        if base.get("version") != _VERSION:
            raise ValueError(
                f"{self._name}: expected version {_VERSION} of PIR's format, got {base.get('version')!r}; "
                f"save the model with Paddle 3.0 or newer"
            )
        (region,) = content["program"]["regions"]
        (block,) = region["blocks"]
        body = self._block(block)
        for each in (*self._inputs, *self._parameters):
            if not isinstance(each.name, str):
                raise ValueError(f"{self._name}: expected a text as a name, got {each.name!r}")
        return SavedModel(
            self._name,
            body,
            self._inputs,
            [(name, key) for _, name, key in sorted(self._outputs, key=lambda each: each[0])],
            sorted(self._parameters, key=lambda each: each.name.encode()),
        )

    def _block(self, block: Any) -> Block:
        body = Block([self._key(each["#"]) for each in block["args"]])
        for each in block["ops"]:
            kind = each["#"]
            if kind == "p":
                self._add_parameter(each)
                continue
            dialect, _, short = kind.partition(".")
            if dialect == "2" and short == "yield":
                body.results = [self._key(operand["%"]) for operand in each["I"]]
                continue
            operator = self._operator(each, kind, short)
            if short == "data":
                self._add_input(operator)
            elif short == "fetch":
                (key,) = operator.uses()
                column = operator.attributes["col"]
                self._outputs.append((int(column), str(operator.attributes["name"]), key))
            else:
                body.operators.append(operator)
        return body

    def _key(self, number: Any) -> int:
        if type(number) is not int:
            raise ValueError(f"{self._name}: expected a number as a value's, got {number!r}")
        self._values += 1
        if self._values > MOST_VALUES:
            raise ValueError(
                f"{self._name}: expected at most {MOST_VALUES} values and uses of them"
            )
        return number

    def _add_parameter(self, each: Any) -> None:
        if str(each["A"][3]).endswith(_NOT_SAVED):
            return  # nothing that counts once a model is trained, as the state of dropout in a recurrent layer
        type_ = self._type(each["O"]["TT"])
        if type_ is None:
            raise ValueError(f"{self._name}: expected a tensor as parameter {each['A'][3]!r}")
        self._parameters.append(Input(each["A"][3], type_, self._key(each["O"]["%"])))

    def _add_input(self, operator: Operator) -> None:
        (type_,) = operator.types
        if type_ is None or type_.shape is None:
            raise ValueError(
                f"{self._name}: expected a tensor as input {operator.attributes['name']!r}"
            )
        self._inputs.append(Input(operator.attributes["name"], type_, operator.results[0]))

    def _operator(self, each: Any, label: str, short: str) -> Operator:
        kind = f"builtin.{short}" if label.startswith("0.") else short.removesuffix("_")
        attributes = {
            attribute["N"]: self._attribute(attribute["AT"])
            for attribute in each["A"]
            if attribute["N"] not in _NOTES
        }
        operands = [self._key(operand["%"]) for operand in each["I"]]
        regions = [
            self._block(block) for region in each.get("regions", ()) for block in region["blocks"]
        ]
        written = operands[0] if short.endswith("_") and operands and kind != "batch_norm" else None
        if kind == "assign_out":  # into its second argument
            written = operands[1]
        return Operator(
            kind,
            short,
            _named(kind, operands, attributes),
            attributes,
            [self._key(result["%"]) for result in each["O"]],
            [self._type(result["TT"]) for result in each["O"]],
            regions,
            written,
        )

    def _type(self, type_: Any) -> ValueType | None:
        """Of a tensor; None: of a list of them, or nothing."""
        if not isinstance(type_, dict) or type_.get("#") != "0.t_dtensor":
            return None
        dtype, shape = type_["D"][0]["#"], tuple(type_["D"][1])
        found = _DTYPES.get(dtype.removeprefix("0.t_"))
        if found is None:
            raise ValueError(
                f"{self._name}: expected one of the dtypes {', '.join(_DTYPES.values())}, got {dtype!r}"
            )
        if len(shape) > MOST_AXES or any(
            type(size) is not int or size >= 1 << 63 for size in shape
        ):
            raise ValueError(f"{self._name}: expected a shape, got {shape!r}")
        return ValueType(found, tuple(max(size, -1) for size in shape))

    def _attribute(self, value: Any) -> Any:
        kind = value["#"].partition(".")[2].removeprefix("a_")
        data = value.get("D")
        if kind == "array":
            return [self._attribute(item) for item in data]
        if kind == "dtype":
            return _dtype_text(data)
        if kind == "place":
            return None
        if kind in ("f32", "f64"):
            return float(data)  # infinities are texts
        return data


def _dtype_text(text: str) -> str | None:
    """None: that of the argument."""
    return None if text.lower().startswith("undefined") else text.lower()


def _named(kind: str, operands: Sequence[int], attributes: Any) -> dict[str, Any]:
    """Operands by their parameters: first those that are tensors, then those that may be numbers and are no attributes."""
    keys = [None if key == 0 else key for key in operands]
    if kind in ("if", "while") and keys:
        return {"cond": keys[0], "init": keys[1:]}
    if kind not in PARAMETERS:
        return {str(index): key for index, key in enumerate(keys)}
    parameters = PARAMETERS[kind]
    names = [each.name for each in parameters if each.type.startswith("Tensor")]
    names += [
        each.name
        for each in parameters
        if each.type in ("IntArray", "Scalar") and each.name not in attributes
    ]
    if len(keys) != len(names):
        if len(keys) > len(names):
            return {str(index): key for index, key in enumerate(keys)}
        names = names[: len(keys)]
    return dict(zip(names, keys, strict=True))
