# SPDX-License-Identifier: Apache-2.0
"""Writes the signatures of another library's calls, against which tenon-codegen checks the lines of opdefs/aten.

    python scripts/bridge_signatures.py > opdefs/aten/signatures.txt

Runs where PyTorch is installed; `core` marks the calls to which PyTorch breaks all others down. Calls that write (`add_`,
`add.out`) have the line of the one that does not, and are left out, as are those whose names begin with _ and that neither are core
nor have a line.
"""

from __future__ import annotations

import pathlib
import re
import sys
from typing import Any

_ATEN = pathlib.Path(__file__).resolve().parent.parent / "opdefs" / "aten"
_TYPES = {"number": "Scalar", "Device": "device", "NoneType": "none"}


def type_text(type_: str) -> str:
    """ "Tensor?[]" of "List[Optional[Tensor]]"."""
    for outer, sign in (("Optional", "?"), ("List", "[]")):
        if match := re.fullmatch(rf"{outer}\[(.*)\]", type_):
            return type_text(match[1]) + sign
    return _TYPES.get(type_, type_).replace(" ", "")


def signature_text(schema: Any, is_core: bool) -> str:
    parts: list[str] = []
    has_star = False
    for argument in schema.arguments:
        if argument.kwarg_only and not has_star:
            parts.append("*")
            has_star = True
        text = f"{type_text(str(argument.type))} {argument.name}"
        if argument.has_default_value():
            text += f"={argument.default_value!r}"
        parts.append(text)
    name = schema.name.partition("::")[2]
    if schema.overload_name:
        name += f".{schema.overload_name}"
    results = ", ".join(type_text(str(result.type)) for result in schema.returns)
    results = f"({results})" if len(schema.returns) != 1 else results
    return f"{'core ' if is_core else ''}{name}({', '.join(parts)}) -> {results}"


def lines_told() -> set[str]:
    told: set[str] = set()
    for path in _ATEN.glob("*.yaml"):
        told.update(re.findall(r"^  ([A-Za-z_0-9.]+)\(", path.read_text(), re.MULTILINE))
    return told


def main() -> int:
    import torch

    told = lines_told()
    texts: list[str] = []
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::"):
            continue
        packet = schema.name.partition("::")[2]
        name = f"{packet}.{schema.overload_name}" if schema.overload_name else packet
        writes = any(
            argument.alias_info and argument.alias_info.is_write for argument in schema.arguments
        )
        overloads = getattr(torch.ops.aten, packet, None)
        overload = getattr(overloads, schema.overload_name or "default", None)
        if writes or overload is None:
            continue
        is_core = torch.Tag.core in overload.tags
        gives_tensors = any("Tensor" in str(result.type) for result in schema.returns)
        if not gives_tensors and name not in told and torch.Tag.core not in overload.tags:
            continue  # functions of numbers that TorchScript calls
        if packet.startswith("_") and not is_core and name not in told:
            continue
        texts.append(signature_text(schema, is_core))
    print(
        f"# Signatures of ATen, from PyTorch {torch.__version__.split('+')[0]}, written by scripts/bridge_signatures.py."
    )
    print("\n".join(sorted(set(texts), key=lambda text: text.removeprefix("core "))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
