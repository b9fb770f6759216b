# SPDX-License-Identifier: Apache-2.0
"""The reference of the Python package, from docstrings and signatures."""

import importlib
import inspect
import re
import types

import tenon

MODULES = """tenon tenon.nn tenon.nn.functional tenon.nn.init tenon.nn.utils tenon.nn.utils.rnn
tenon.nn.utils.parametrize tenon.optim tenon.optim.lr_scheduler tenon.optim.swa_utils
tenon.metrics tenon.amp tenon.amp.debug tenon.profiler tenon.autograd tenon.data tenon.io
tenon.io.safetensors tenon.random tenon.jit tenon.jit.rewrites tenon.runtime tenon.runtime.memory
tenon.runtime.ipc tenon.plugins tenon.distributions
tenon.vision.transforms tenon.vision.transforms.functional tenon.vision.models
tenon.vision.datasets tenon.vision.ops tenon.audio tenon.audio.functional tenon.audio.transforms tenon.text
tenon.geometric tenon.sparse tenon.func tenon.llm tenon.array_api tenon.collective tenon.testing tenon.utils
tenon.utils.cpp_extension tenon.compat.paddle""".split()
Operator = type(tenon.ops.add)


def signature(thing) -> str:
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return "(...)"
    text = re.sub(r"'([\w.\[\], |]+)'", r"\1", text)  # annotations that are kept as text
    return re.sub(r"^\((?:self|cls)(?:, )?", "(", text).replace(" -> None", "")


def wrapped(code: str) -> str:
    """A signature of more than 80 columns with one parameter a line."""
    if len(code) <= 80 or "(" not in code:
        return code
    head, _, rest = code.partition("(")
    parts, depth, begin = [], 0, 0
    for i, sign in enumerate(rest):
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0:
            parts.append(rest[begin:i])
            return f"{head}(\n" + "".join(f"    {p.strip()},\n" for p in parts) + rest[i:]
        if sign == "," and depth == 0:
            parts.append(rest[begin:i])
            begin = i + 1
    return code


def doc(thing) -> str:
    return inspect.cleandoc(getattr(thing, "__doc__", None) or "")


def block(title: str, code: str, text: str, level: int) -> list[str]:
    return ["#" * level + f" {title}", "", "```python", wrapped(code), "```", "", prose(text), ""]


def prose(text: str) -> str:
    """Indented parts of a docstring are programs."""
    out, inside = [], False
    for line in text.split("\n"):
        if line.startswith("    ") and not inside and (not out or not out[-1].strip()):
            out.append("```python")
            inside = True
        elif inside and line.strip() and not line.startswith("    "):
            while out and not out[-1].strip():
                out.pop()
            out += ["```", ""]
            inside = False
        out.append(line[4:] if inside else line.replace("<", "&lt;"))
    return "\n".join(out + ["```"] * inside)


def is_ours(thing) -> bool:
    return (getattr(thing, "__module__", None) or "").startswith("tenon")


def belongs(thing, module: str) -> bool:
    """Not a class of another module that this one only uses."""
    return module == "tenon" or thing.__module__.startswith(module)


def methods(cls) -> list[str]:
    """Those that the class itself defines, and that have something to say."""
    lines = []
    for name, member in sorted(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        text = doc(member)
        if isinstance(member, property) or inspect.isgetsetdescriptor(member):
            lines += [f"- **`{name}`**" + (f": {first(text)}" if text else "")]
        elif callable(member):
            # Methods of the extension begin their text with the signature.
            head, _, rest = text.partition("\n")
            shown = signature(member)
            if shown == "(...)" and re.match(rf"{name}\(.*", head):
                shown, text = head[len(name) :], rest.strip()
            if text:  # what has none is the usual `forward` or `extra_repr` of a module
                lines += [f"- **`{name}{shown}`**: {first(text)}"]
    return lines


def first(text: str) -> str:
    """The first paragraph, in one line."""
    return " ".join(text.strip().split("\n\n")[0].split()).replace("<", "&lt;")


def public(module: types.ModuleType) -> list[str]:
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    return sorted(names, key=str.lower)


def page(name: str) -> str:
    module = importlib.import_module(name)
    classes, functions, operators, values = [], [], [], []
    for each in public(module):
        thing = getattr(module, each, None)
        if isinstance(thing, types.ModuleType):
            continue
        if isinstance(thing, Operator):
            operators.append(each)
        elif inspect.isclass(thing) and is_ours(thing) and belongs(thing, name):
            head = "" if issubclass(thing, (BaseException, tenon.Tensor)) else signature(thing)
            classes += block(each, f"class {each}{head}", doc(thing), 3)
            classes += [*methods(thing), ""]
        elif callable(thing) and (is_ours(thing) or inspect.isbuiltin(thing)):
            text = doc(thing)
            head, _, rest = text.partition("\n")
            shown = signature(thing)
            if shown == "(...)" and head.startswith(each + "("):
                shown, text = head[len(each) :], rest.strip()
            functions += block(each, f"{each}{shown}", text, 3)
        elif isinstance(thing, tenon.dtype):
            values.append(f"`{each}`")
    out = [f"# {name}", "", prose(doc(module)), ""]
    if values:
        out += ["## Dtypes", "", ", ".join(values), ""]
    if classes:
        out += ["## Classes", "", *classes]
    if functions:
        out += ["## Functions", "", *functions]
    if operators:
        out += [
            "## Operators",
            "",
            "[The reference of the operators](../operators/index.md) describes them: ",
        ]
        out[-1] += ", ".join(f"`{each}`" for each in operators) + "."
    return "\n".join(out) + "\n"


def pages() -> dict[str, str]:
    rows, result = [], {}
    for name in MODULES:
        result[f"reference/python/{name}.md"] = page(name)
        text = first(doc(importlib.import_module(name)))
        rows.append(f"| [`{name}`]({name}.md) | {re.split(r'(?<=[.])[ ]', text)[0]} |")
    result["reference/python/index.md"] = (
        "# Python package\n\nThese pages are generated from the docstrings. Operators, which are functions of "
        "`tenon` and methods of `tenon.Tensor`, have [a reference of their own](../operators/index.md).\n\n"
        "| module | |\n|---|---|\n" + "\n".join(rows) + "\n"
    )
    return result
