# SPDX-License-Identifier: Apache-2.0
"""Pages that are written by hand: docs/ and the Markdown files beside the code, with links rewritten.

In the repository a link leads to a file. On the site it leads to the page made of that file; a link to
source code leads to the repository if TENON_REPOSITORY_URL names one, and becomes plain text otherwise.
"""

import os
import pathlib
import posixpath
import re
import subprocess

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
NAMES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "opdefs/README.md": "reference/operator_definitions.md",
}
# Text that programs read, and forms that a forge shows.
LEFT_OUT = ("sdk/templates/", ".github/", "codegen/tests/", "tests/docs/")


def page_of(path: str) -> str | None:
    """The page that a file of the repository becomes; None if it becomes none."""
    if path in NAMES:
        return NAMES[path]
    if path.startswith("sdk/include/tenon/"):
        header = path.removeprefix("sdk/include/tenon/")
        return f"reference/headers/{re.sub('[./]', '_', header)}.md"
    if not path.endswith(".md") or path.startswith(LEFT_OUT):
        return None
    page = path.removeprefix("docs/") if path.startswith("docs/") else f"project/{path}"
    return re.sub(r"README\.md$", "index.md", page)


def rewritten(text: str, path: str, known: set[str]) -> str:
    """The text of a file with its links as the site needs them."""
    page = page_of(path) or path
    repository = os.environ.get("TENON_REPOSITORY_URL")

    def link(match: re.Match) -> str:
        label, target = match.groups()
        if target.startswith(("http:", "https:", "#", "mailto:")):
            return match[0]
        target, _, anchor = target.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if file + "/README.md" in known:
            file += "/README.md"
        elif page_of(file) is None and file + "/abi.h" in known:
            file += "/abi.h"
        other = page_of(file)
        if other and file in known:
            relative = posixpath.relpath(other, posixpath.dirname(page) or ".")
            return f"[{label}]({relative}{'#' + anchor if anchor else ''})"
        return f"[{label}]({repository}/blob/main/{file})" if repository else label

    parts = re.split(r"(^```.*?^```)", text, flags=re.M | re.S)
    return "".join(p if p.startswith("```") else LINK.sub(link, p) for p in parts)


def pages(root: pathlib.Path, primitives_table: pathlib.Path) -> dict[str, str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    known = {path for path in listed if (root / path).exists()}
    result = {}
    for path in sorted(known):
        page = page_of(path)
        if not page or not path.endswith(".md") or path == "README.md":
            continue
        text = (root / path).read_text(encoding="utf-8")
        if path == "docs/primitives.md":
            text += "\n" + primitives_table.read_text(encoding="utf-8")
        result[page] = rewritten(text, path, known)
    return result
