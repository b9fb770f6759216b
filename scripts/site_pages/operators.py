# SPDX-License-Identifier: Apache-2.0
"""The reference of the operators, from what tenon-codegen writes, the YAML and the plugins of this build."""

import collections
import json
import pathlib
import re

import tenon
import yaml
from tenon._tensor import dtypes

LEVEL1 = "tests/primitives/libtenon_level1.so"  # a device whose only kernels are the primitives
ROUTES = {
    "native": "a kernel",
    "lowered": "a decomposition",
    "view": "a view, no kernel",
}
DEFINITIONS = "expr", "reduce", "decompose"
DTYPES = [name for name, row in dtypes.DTYPES.items() if row.kind != "storage"]


def table_text(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def formula(entry: dict) -> list[str]:
    """The lines of a definition that say what is computed."""
    lines = []
    for key in DEFINITIONS:
        value = entry.get(key)
        if value is None or value == "native":
            continue
        if isinstance(value, dict):
            lines += [f"{name}: {text}" for name, text in value.items()]
        elif isinstance(value, list):
            lines += [str(line) for line in value]
        else:
            lines.append(str(value))
        break  # a decomposition beside an expression says the same again
    return lines


def gradient(entry: dict) -> str | None:
    value = entry.get("grad")
    if not isinstance(value, dict):
        return None
    return "\n".join(
        f"d{name} = " + ("; ".join(map(str, rule)) if isinstance(rule, list) else str(rule))
        for name, rule in value.items()
    )


def ranges(dtypes: list[str]) -> str:
    """Names of dtypes in one line."""
    return "every dtype" if len(dtypes) == len(DTYPES) else ", ".join(dtypes)


def routes(device: str) -> dict[str, dict[str, list[str]]]:
    """For each operator the dtypes that go each way on a device."""
    result: dict = collections.defaultdict(lambda: collections.defaultdict(list))
    for dtype in DTYPES:
        for route, names in tenon.plugins.coverage(device, getattr(tenon, dtype)).items():
            for name in names:
                result[name][route].append(dtype)
    return result


def devices_text(name: str, tables: dict[str, dict]) -> list[str]:
    lines = []
    for title, table in tables.items():
        row = table[name] if name in table else {}
        shown = [
            f"{ROUTES[route]} ({ranges(dtypes)})"
            for route, dtypes in row.items()
            if route in ROUTES and dtypes
        ]
        lines.append(f"- On {title}: " + ("; ".join(shown) or "by its parts, or on the host"))
    return lines


def fenced(title: str, lines: list[str]) -> list[str]:
    return [title, "", "```text", *lines, "```", ""] if lines else []


def section(operator: dict, entry: dict, tables: dict[str, dict]) -> str:
    name = operator["name"].split("::")[1]
    lines = [f"## {name}", "", "```text", f"{name}{operator['signature']}", "```", ""]
    lines += [operator["doc"], ""]
    lines += fenced("Definition:", formula(entry))
    lines += fenced(
        "Example:" if len(operator["examples"]) == 1 else "Examples:", operator["examples"]
    )
    rule = gradient(entry)
    lines += fenced("Gradient:", rule.split("\n") if rule else [])
    lines.append(f"- Kind: {operator['kind']}" + (f"; in place: `{name}_`" * operator["in_place"]))
    if operator["dtypes"]:
        promoted = operator["compute"].startswith("promote")
        lines.append(
            f"- Dtypes: {ranges(operator['dtypes'])}"
            + "; arguments are promoted to a common dtype" * promoted
        )
    lines += devices_text(operator["name"], tables)
    if operator["kind"] == "composite":
        lines.append("- Gradient: through the operators that it consists of")
    elif not rule:
        lines.append("- Gradient: none")
    others = "; ".join(
        f"{where} " + ", ".join(f"`{n}`" for n in names)
        for where, names in operator["names"].items()
    )
    if others:
        lines.append(f"- Names elsewhere: {others}")
    return "\n".join(lines) + "\n"


def pages(root: pathlib.Path, build: pathlib.Path) -> dict[str, str]:
    model = json.loads((build / "gen" / "operators.json").read_text(encoding="utf-8"))
    entries = {}
    for file in sorted((root / "opdefs").glob("*.yaml")):
        for entry in yaml.safe_load(file.read_text(encoding="utf-8"))["ops"]:
            entries["tenon::" + entry["op"]] = entry
    tables = {"the CPU": routes("cpu")}
    if (build / LEVEL1).exists():
        tenon.plugins.load(str(build / LEVEL1))
        tables["a device with the primitives alone"] = routes("level1")
    families = collections.defaultdict(list)
    for operator in model["operators"]:
        if "internal" not in operator["tags"] and "primitive" not in operator["tags"]:
            families[operator["origin"].split(".")[0]].append(operator)
    result, index = {}, []
    for family, operators in sorted(families.items()):
        title = family.replace("_", " ").capitalize()
        body = [section(each, entries.get(each["name"], {}), tables) for each in operators]
        head = f"# {title}\n\nGenerated from `opdefs/{family}.yaml`; "
        head += "[Operator definitions](../operator_definitions.md) describes the notation.\n\n"
        result[f"reference/operators/{family}.md"] = head + "\n".join(body)
        for each in operators:
            name = each["name"].split("::")[1]
            summary = re.split(r"(?<=[.;:]) ", table_text(each["doc"]))[0]
            index.append((name, f"| [{name}]({family}.md#{name}) | {title} | {summary} |"))
    result["reference/operators/index.md"] = (
        f"# Operators\n\nTenon has {len(index)} public operators. Each is a function `tenon.NAME`, and a "
        "method of `tenon.Tensor` where the first parameter is a tensor.\n\n"
        "| operator | family | |\n|---|---|---|\n"
        + "\n".join(row for _, row in sorted(index))
        + "\n"
    )
    return result
