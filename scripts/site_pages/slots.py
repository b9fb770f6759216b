# SPDX-License-Identifier: Apache-2.0
"""Tables of functions that a header lists as a macro, `#define NAME(X) ... X(result, name, (parameters))`."""

import re

BEGIN = re.compile(r"#define \w+_SLOTS\(X\)")


def is_table(code: str) -> bool:
    return bool(BEGIN.match(code))


def balanced(text: str, begin: int) -> int:
    """Where the bracket that opens at `begin` closes."""
    depth = 0
    for i in range(begin, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    raise ValueError(f"expected a closing bracket after {text[begin : begin + 40]!r}")


def entries(code: str):
    """("group", text), ("comment", text) and ("slot", result, name, parameters), in order."""
    text = re.sub(r" *\\\n(?:\s*\* (?=\S))?", "\n", code)
    text = re.sub(r"\s+", " ", BEGIN.sub("", text, count=1))
    at = 0
    while found := re.compile(r"/\*(.*?)\*/|X\(").search(text, at):
        if found[1] is not None:
            at = found.end()
            words = found[1].strip()
            group = re.match(r"-- (.*?) ?-*$", words)
            yield ("group", group[1]) if group else ("comment", words)
            continue
        end = balanced(text, found.end() - 1)
        result, name, parameters = text[found.end() : end].split(",", 2)
        yield "slot", result.strip(), name.strip(), parameters.strip()
        at = end + 1


def rendered(code: str) -> list[str]:
    """Markdown: a heading for each function, its declaration, and the comment in front of it."""
    lines, comment = [], []
    for kind, *rest in entries(code):
        if kind == "group":
            lines += [f"**{rest[0][:1].upper()}{rest[0][1:]}**", ""]
        elif kind == "comment":
            comment.append(rest[0])
        else:
            result, name, parameters = rest
            lines += [
                f"### host->{name}",
                "",
                "```c",
                declaration(result, name, parameters),
                "```",
                "",
            ]
            if comment:
                text = " ".join(comment).replace("<", "&lt;").replace("*", "\\*")
                lines += [re.sub(r"`([^`]*)`", lambda m: m[0].replace("\\*", "*"), text), ""]
            comment = []
    return lines


def declaration(result: str, name: str, parameters: str) -> str:
    line = f"{result} (*{name}){parameters};"
    if len(line) <= 90:
        return line
    inside = parameters[1:-1].split(", ")
    return f"{result} (*{name})(\n    " + ",\n    ".join(inside) + ");"
