# SPDX-License-Identifier: Apache-2.0
"""Writes the signatures of Paddle's operators, against which tenon-codegen checks the lines of opdefs/paddle.

    python scripts/paddle_signatures.py > opdefs/paddle/signatures.txt

Runs where Paddle is installed: its header of C++ functions has each operator's parameters, in the order and by the names of saved
programs. Operators that write (`relu_`) have the line of the one that does not; passes backward and operators without a line that
train or communicate are left out.
"""

from __future__ import annotations

import pathlib
import re
import sys

_FOLDER = pathlib.Path(__file__).resolve().parent.parent / "opdefs" / "paddle"
_FUNCTION = re.compile(r"^PADDLE_API (.+?) ([a-z][a-z0-9_]*)\((.*)\);$", re.MULTILINE)
_TYPES = {
    "Tensor": "Tensor",
    "paddle::optional<Tensor>": "Tensor?",
    "std::vector<Tensor>": "Tensor[]",
    "paddle::optional<std::vector<Tensor>>": "Tensor[]?",
    "IntArray": "IntArray",  # numbers, or a tensor of them
    "Scalar": "Scalar",  # a number, or a tensor of it
    "phi::Scalar": "Scalar",
    "DataType": "dtype",
    "Place": "place",
    "DataLayout": "str",
    "std::string": "str",
    "float": "float",
    "double": "float",
    "int": "int",
    "int64_t": "int",
    "bool": "bool",
}
# Structure of programs, which the header does not have, and operators whose parameters saved programs name otherwise.
_MORE = (
    "full_int_array(int[] value, dtype dtype, place place=None) -> Tensor",
    "shape64(Tensor input) -> Tensor",
    "assign_value(int[] shape, dtype dtype, Scalar[] values, place place=None) -> Tensor",
    "full_with_tensor(Tensor value, IntArray shape, dtype dtype) -> Tensor",
    "deformable_conv(Tensor x, Tensor offset, Tensor filter, Tensor? mask, int[] strides, int[] paddings, int[] dilations, "
    "int deformable_groups, int groups, int im2col_step) -> Tensor",
    "pow(Tensor x, Scalar y) -> Tensor",
    "mul(Tensor x, Tensor y, int x_num_col_dims=1, int y_num_col_dims=1) -> Tensor",  # of Paddle 2
    "assign_out(Tensor x, Tensor output) -> Tensor",
)


def parts_of(text: str) -> list[str]:
    """Between the commas outside of brackets."""
    parts: list[str] = []
    depth, begin = 0, 0
    for at, letter in enumerate(text + ","):
        depth += (letter in "<{(") - (letter in ">})")
        if letter == "," and depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
    return [part for part in parts if part]


def default_of(text: str, type_: str) -> str:
    """As Python writes it."""
    text = text.strip()
    if type_ == "place":
        return "None"
    if type_ == "dtype":
        name = text.rpartition("::")[2].lower()
        return "None" if name == "undefined" else repr(name)
    if text.startswith("{"):
        return f"[{', '.join(text[1:-1].replace(' ', '').split(',')) if text[1:-1] else ''}]"
    if text in ("true", "false"):
        return text.capitalize()
    return re.sub(r"(?<=[0-9.])f$", "", text)


def parameter_of(text: str) -> str | None:
    declared, has_default, default = text.partition("=")
    type_, _, name = declared.strip().rpartition(" ")
    type_ = type_.removeprefix("const ").rstrip("&").strip()
    listed = re.fullmatch(r"std::vector<(.*)>", type_)
    kind = _TYPES.get(type_)
    if kind is None and listed and listed[1] in _TYPES:
        kind = _TYPES[listed[1]] + "[]"
    if kind is None:
        return None
    shown = f"{kind} {name}"
    if kind.endswith("?"):
        return f"{shown}=None"
    return f"{shown}={default_of(default, kind)}" if has_default else shown


def signatures(header: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for results, name, parameters in _FUNCTION.findall(header):
        if name.endswith(("_", "_grad")) and name.rstrip("_") not in found and "_grad" in name:
            continue
        listed = [each for each in parts_of(parameters) if " predefined_out" not in each]
        described = [parameter_of(each) for each in listed]
        if None in described or name.endswith("_"):
            continue
        count = results.count("Tensor")
        result = "Tensor[]" if "vector" in results and count == 1 else "Tensor"
        shown = result if count == 1 else f"({', '.join(['Tensor'] * count)})"
        found.setdefault(name, f"{name}({', '.join(filter(None, described))}) -> {shown}")
    return found


def main() -> int:
    import paddle

    header = pathlib.Path(paddle.sysconfig.get_include()) / "paddle/phi/api/include/api.h"
    found = signatures(header.read_text())
    for each in _MORE:
        found[each.partition("(")[0]] = each
    print(
        f"# Signatures of Paddle's operators, from Paddle {paddle.__version__}, written by scripts/paddle_signatures.py."
    )
    print("\n".join(found[name] for name in sorted(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
