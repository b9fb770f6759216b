# SPDX-License-Identifier: Apache-2.0
"""What a page names is there: paths, names of the package, targets of make, variables, rows of tests/areas.txt, rooms of a README.

Decisions and the changelog say what was, and are left out."""

import importlib
import pathlib
import re
import runpy
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
LEFT_OUT = ("docs/decisions/0", "CHANGELOG.md", "tests/abi/kept/", "tests/predictor/kept/")
# Files and names that pages make up, or that other projects have.
MADE_UP = {
    "acme.tenon.json": "a description that a reader writes",
    "derivatives.yaml": "a file of PyTorch",
    "ggml-cuda.cu": "a file of ggml",
    "native_functions.yaml": "a file of PyTorch",
    "plugins/on_demand": "a folder of an installation",
    "set_env.sh": "a file of CANN",
    "setup.py": "a file of a reader's package",
    "tenon.ops.acme": "a package that a reader makes",
    "tenon.ops.paddle_custom": "a namespace of a reader's operators",
    "tenon/signatures/pooling.h": "a header that the build writes",
    "tenon_plugin.json": "a description that a reader writes",
}


def tracked():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [path for path in listed.stdout.splitlines() if (ROOT / path).exists()]


@pytest.fixture(scope="module")
def tree():
    return Tree(tracked())


class Tree:
    """What there is to name."""

    def __init__(self, files):
        folders = {str(parent) for file in files for parent in pathlib.PurePosixPath(file).parents}
        self.files, self.paths = files, set(files) | folders
        self.tops = {path.split("/")[0] for path in self.paths} - {"."}
        self.basenames = {path.rpartition("/")[2] for path in files}

    def faults(self, page, text):
        for number, line in enumerate(text.splitlines(), 1):
            for fault in [*self.line_faults(page, line)]:
                yield f"{page}:{number}: {fault}"

    def line_faults(self, page, line):
        for link in re.findall(r"\]\(([^)#\s]+)[^)\s]*\)", re.sub(r"`[^`]*`", "", line)):
            is_generated = page.startswith("docs/") and link.startswith("reference/")
            if ":" not in link and not is_generated:
                target = (ROOT / page).parent / link
                if not target.exists():
                    yield f"a link to {link}, which is not there"
        for code in re.findall(r"`([^`]+)`", line):
            # A word with a slash is a path if it begins with a folder of the repository.
            for path in re.findall(r"(?<![\w./:<>$~{-])[\w.-]+(?:/[\w.+-]+)+(?![\w*/{<])", code):
                if path.split("/")[0] in self.tops and not is_made_up(path):
                    if path.rstrip(".") not in self.paths:
                        yield f"the path {path}, which is not there"
            if code.split("/")[0] in self.tops or is_made_up(code):
                continue
            is_file = re.fullmatch(r"[\w./-]+\.(py|cpp|hpp|h|cu|sh|yaml|cmake|pyi|inc)", code)
            if is_file and code.rpartition("/")[2] not in self.basenames:
                yield f"the file {code}, which is not there"


def is_made_up(name):
    return any(f"{name}/".startswith((f"{known}/", f"{known}.")) for known in MADE_UP)


def pages(files):
    for page in files:
        if page.endswith(".md") and not page.startswith(LEFT_OUT):
            yield page, (ROOT / page).read_text(encoding="utf-8")


def test_paths(tree):
    faults = [fault for page, text in pages(tree.files) for fault in tree.faults(page, text)]
    assert faults == [], "mend the pages, or say in MADE_UP what these are"


@pytest.mark.parametrize(
    "line",
    [
        "[a](nowhere.md)",
        "[a](../kernel_core/gone.cpp)",
        "see `kernel_core/gone.cpp`",
        "run `python tests/gone.py -k x`",
        "in `gone.cpp`",
    ],
)
def test_a_planted_path_is_found(tree, line):
    assert len([*tree.line_faults("docs/runtime.md", line)]) == 1
    assert [*tree.line_faults("docs/runtime.md", "`kernel_core/dispatch/call.cpp` `a/b`")] == []


def is_there(name):
    """Whether `tenon.a.b` can be reached: attributes, or modules to be imported."""
    found, path = importlib.import_module("tenon"), "tenon"
    for part in name.split(".")[1:]:
        path += f".{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(path)
            except ImportError:
                return False
    return True


def test_names_of_the_package(tree):
    faults = []
    for page, text in pages(tree.files):
        for code in re.findall(r"`([^`\n]+)`", text):
            # Not `libtenon.so`, `tenon.operators` of an entry point, or the version line of a file.
            for name in re.findall(r"(?<![\w./:-])tenon(?:\.[a-zA-Z_]\w*)+", code):
                if name in ("tenon.operators", "tenon.program") or is_made_up(name):
                    continue
                if not is_there(name):
                    faults.append(f"{page}: {name}, in `{code}`")
    assert faults == []
    assert not is_there("tenon.nn.Gone") and not is_there("tenon.gone")


def test_variables_and_targets(tree):
    sources = "".join(
        (ROOT / file).read_text(encoding="utf-8", errors="replace")
        for file in tree.files
        if not file.endswith((".md", ".so", ".png", ".npz", ".bin"))
    )
    variables = set(re.findall(r"TENON_[A-Z0-9_]+", sources))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    heads = re.findall(r"^([a-z -]+):", makefile, re.M)
    targets = {target for head in heads for target in head.split()}
    faults = []
    for page, text in pages(tree.files):
        for name in set(re.findall(r"\bTENON_[A-Z0-9_]*[A-Z0-9]\b(?![*_])", text)) - variables:
            faults.append(f"{page}: {name} stands in no source")
        for target in set(re.findall(r"`make ([a-z-]+)", text)) - targets:
            faults.append(f"{page}: the Makefile has no `{target}`")
    assert faults == []


def test_rows_of_areas():
    faults = []
    for line in (ROOT / "tests" / "areas.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        prefix, *_, tests = (part.strip() for part in line.split("|"))
        named = [prefix, *(tests.split() if tests != "-" else [])]
        faults += [name for name in named if not (ROOT / name).exists()]
    assert faults == []


def folders_of(tree, folder):
    depth = folder.count("/") + 1 if folder else 0
    inside = [file for file in tree.files if not folder or file.startswith(f"{folder}/")]
    return {file.split("/")[depth] for file in inside if file.count("/") > depth}


@pytest.mark.parametrize("folder", ["conformance", "kernel_core", "plugins", "sdk", "tests"])
def test_a_readme_names_each_room(tree, folder):
    text = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    named = {name.strip("/").split("/")[0] for name in re.findall(r"`([\w./*]+)`", text)}
    missing = folders_of(tree, folder) - named
    assert missing == set(), f"say in {folder}/README.md what these hold"


def test_the_map_names_each_folder(tree):
    text = (ROOT / "docs" / "where_things_live.md").read_text(encoding="utf-8")
    missing = {name for name in folders_of(tree, "") if f"`{name}/`" not in text}
    assert missing == set(), "say in docs/where_things_live.md what these hold"


def test_words_that_are_replaced_stand_in_the_glossary(monkeypatch):
    """What scripts/words.py refuses, CONTRIBUTING.md lists, with what to write instead."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    words = runpy.run_path(str(ROOT / "scripts" / "words.py"))
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    left = "\n".join(row.split("|")[1] for row in text.splitlines() if row.count("|") == 4)
    for pattern, instead in words["WORDS"] + words["CODE_WORDS"]:
        assert re.search(pattern, left), f"{pattern} -> {instead} is in no row of the glossary"


def test_both_front_pages_say_what_is_missing():
    """README.md and the site's first page have one list."""

    def listed(page):
        text = (ROOT / page).read_text(encoding="utf-8")
        return re.search(r"## What is not there yet\n(.*?)\n\[What ran where\]", text, re.S)[1]

    assert listed("docs/index.md") == listed("README.md")
