# SPDX-License-Identifier: Apache-2.0
"""The reference of the ABI and the C++ SDK, from the comments of the headers.

A comment that begins in the first column describes the declarations up to the next blank line or the next
such comment. A banner (`==== Section 3: types ====`) becomes a heading.
"""

import html
import pathlib
import re

from . import slots

BANNER = re.compile(r"^(?:/\*|//) *[=-]{4,} *(.*?) *[=-]{3,}")
NAMED = (
    r"typedef struct (\w+)",
    r"^#define (\w+)",
    r"^(?:template.*\n)?(?:struct|class|enum class|union) (\w+)",
    r"^typedef [^;{]*?\b(\w+);",
    r"^typedef [^;{]*?\(\*(\w+)\)",
    r"^using (\w+)",
    r"^enum \{\s*(\w+)",
    r"\b(\w+)\([^;{]*\) *(?:const|noexcept)? *[;{]",
    r"^(?:inline |extern |constexpr )+[\w:<>*& ]+?\b(\w+)\b *[=;{]",
)


def comment_text(lines: list[str]) -> str:
    """A comment without its marks."""
    text = []
    for line in lines:
        line = re.sub(r"^(?:/\*+ ?|// ?| \*/? ?)", "", line)
        text.append(re.sub(r" *\*/$", "", line).rstrip())
    return "\n".join(text).strip("\n")


def prose(text: str) -> str:
    """Markdown of a comment. Indented text stays as it is laid out."""
    out, fenced = [], False
    for line in text.split("\n"):
        indented = line.startswith("  ") and not re.match(r" *[-*] ", line) and line.strip()
        if indented and not fenced and (not out or not out[-1].strip()):
            out.append("```text")
            fenced = True
        elif fenced and not line.startswith("  ") and line.strip():
            out.append("```")
            out.append("")
            fenced = False
        if fenced:
            out.append(line)
        else:
            out.append(html.escape(line.strip(), quote=False).replace("*", "\\*"))
            if line.strip().startswith("- "):
                out[-1] = out[-1].replace("\\*", "*")
    if fenced:
        out.append("```")
    # A list needs a blank line in front.
    return re.sub(r"(^(?!- )[^\n]+)\n(- )", r"\1\n\n\2", "\n".join(out), flags=re.M)


def without_body(code: str) -> str:
    """A function's declaration without what it does; types stay whole."""
    if re.match(
        r"(?:template[^\n]*\n)?(?:struct|class|enum|union|typedef|#define|namespace)", code
    ):
        return code
    begin = re.search(r"\)[^;{}]*\{\n", code)
    return code[: begin.start() + 1] + begin[0][1:-2].rstrip() + ";" if begin else code


def name_of(code: str) -> str | None:
    for pattern in NAMED:
        found = re.search(pattern, code, re.M)
        if found and found[1] not in ("if", "for", "while", "switch", "return", "sizeof"):
            return found[1]
    return None


def is_noise(line: str) -> bool:
    return bool(
        re.match(r"#(?:include|pragma|ifndef|ifdef|endif|else|if|undef)\b", line)
        or re.match(r"(?:namespace .*\{|\} *// *namespace.*|extern \"C\" \{|\}$)", line)
        or re.match(r"#define TENON_\w+_H_+$", line)
    )


def chunks(text: str):
    """Pairs of comment and code, and banners as (title, None)."""
    comment: list[str] = []
    code: list[str] = []
    inside, depth = False, 0

    def flush():
        if comment or code:
            yield comment_text(comment), "\n".join(code).strip("\n")
        comment.clear()
        code.clear()

    for line in text.split("\n"):
        if inside or (depth == 0 and line.startswith(("/*", "//"))):
            banner = not inside and BANNER.match(line)
            if banner:
                yield from flush()
                yield banner[1], None
                continue
            if code:
                yield from flush()
            comment.append(line)
            inside = (inside or line.startswith("/*")) and "*/" not in line
        elif depth == 0 and (not line.strip() or is_noise(line)):
            if line.strip() == "" or code:
                yield from flush()
        else:
            code.append(line)
            depth += line.count("{") + line.count("(") - line.count("}") - line.count(")")
    yield from flush()


def page(file: pathlib.Path, include: str) -> str:
    language = "c" if file.suffix == ".h" else "cpp"
    out = [f"# {include}", "", f"`#include <{include}>`", ""]
    first = True
    for comment, code in chunks(file.read_text(encoding="utf-8")):
        if code is None:
            out += ["", f"## {comment}", ""]
            continue
        comment = re.sub(r"SPDX-License-Identifier: Apache-2.0\n*", "", comment).strip("\n")
        name = name_of(code) if code else None
        if not comment and not name:
            continue
        if name:
            out += [f"### {name}", ""]
        elif not first and not code and not comment:
            continue
        if comment:
            out += [prose(comment), ""]
        if slots.is_table(code):
            out += slots.rendered(code)
        elif code:
            out += [f"```{language}", without_body(code), "```", ""]
        first = False
    return "\n".join(out)


def pages(folder: pathlib.Path) -> dict[str, str]:
    result, rows = {}, []
    for file in sorted([*folder.rglob("*.h"), *folder.rglob("*.hpp")]):
        include = f"tenon/{file.relative_to(folder)}"
        name = re.sub("[./]", "_", str(file.relative_to(folder)))
        result[f"reference/headers/{name}.md"] = page(file, include)
        text = comment_text(
            re.findall(r"^(?:/\*| \*|//).*", file.read_text(encoding="utf-8"), re.M)[:6]
        )
        text = re.sub(r"SPDX\S* Apache-2.0", "", text).strip()
        summary = re.split(r"(?<=\.)\s", " ".join(text.split()))[0].replace("|", "\\|")
        rows.append(f"| [`{include}`]({name}.md) | {html.escape(summary, quote=False)} |")
    result["reference/headers/index.md"] = (
        "# C ABI and C++ SDK\n\n`tenon/abi.h` is the contract, in C. The other headers make it convenient in "
        "C++; a plugin needs none of them. These pages are generated from the comments of the headers.\n\n"
        "| header | |\n|---|---|\n" + "\n".join(rows) + "\n"
    )
    return result
