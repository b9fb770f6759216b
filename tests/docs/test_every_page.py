# SPDX-License-Identifier: Apache-2.0
"""Every page with programs has a test that runs them, and every decision says what became of it."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Pages with commands or programs, and the test that runs them.
TESTED = {
    "amp.md": "test_snippets.py",
    "array_api.md": "test_snippets.py",
    "autotuning.md": "test_snippets.py",
    "data.md": "test_snippets.py",
    "compat_namespaces.md": "test_snippets.py",
    "compiled_functions.md": "test_snippets.py",
    "control_flow.md": "test_snippets.py",
    "cpp_extension.md": "test_cpp_extension_guide.py",
    "distributed.md": "test_snippets.py",
    "distributions.md": "test_snippets.py",
    "dtypes.md": "test_snippets.py",
    "domains.md": "test_snippets.py",
    "from_paddle.md": "test_tutorial.py",
    "from_pytorch.md": "test_tutorial.py",
    "graphs.md": "test_snippets.py",
    "func.md": "test_snippets.py",
    "high_level.md": "test_snippets.py",
    "index.md": "test_tutorial.py",
    "inference.md": "test_snippets.py",
    "isolated.md": "test_snippets.py",
    "jax.md": "test_jax_page.py",
    "linalg.md": "test_snippets.py",
    "llm.md": "test_llm_page.py",
    "model_operators.md": "test_snippets.py",
    "onnx.md": "test_onnx_page.py",
    "operator_files.md": "test_snippets.py",
    "operators.md": "test_operator_guide.py",
    "overrides.md": "test_snippets.py",
    "paddle_compat.md": "test_snippets.py",
    "paddle_models.md": "test_paddle_models_page.py",
    "parameter_server.md": "test_snippets.py",
    "profiler.md": "test_snippets.py",
    "program_graphs.md": "test_snippets.py",
    "python_operators.md": "test_python_operators.py",
    "quantization.md": "test_snippets.py",
    "random.md": "test_snippets.py",
    "rewrites.md": "test_snippets.py",
    "runtime.md": "test_snippets.py",
    "serving.md": "test_snippets.py",
    "sparse.md": "test_snippets.py",
    "torch.md": "test_torch_page.py",
    "torch_alias.md": "test_torch_alias_page.py",
    "training.md": "test_snippets.py",
    "vendors.md": "test_vendor_guide.py",
}
NOT_RUN: dict[str, str] = {}


def pages():
    return sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def test_every_page_with_programs_is_tested():
    unknown = []
    for page in pages():
        programs = re.search(r"^```(?:python|sh)$", (DOCS / page).read_text(encoding="utf-8"), re.M)
        if programs and page not in TESTED | NOT_RUN and not page.startswith("tutorial/"):
            unknown.append(page)
    assert unknown == [], "name the test that runs the programs of these pages in TESTED"


@pytest.mark.parametrize("page", TESTED)
def test_the_test_reads_the_page(page):
    test = pathlib.Path(__file__).parent / TESTED[page]
    assert page in test.read_text(encoding="utf-8")


def test_decisions_have_a_status():
    numbers = [int(path.name[:4]) for path in (DOCS / "decisions").glob("[0-9]*.md")]
    assert len(numbers) == len(set(numbers))
    for path in (DOCS / "decisions").glob("[0-9]*.md"):
        text = path.read_text(encoding="utf-8")
        assert re.match(rf"# {int(path.name[:4])}\. ", text), path.name
        # A page without the line is accepted.
        if superseded := re.search(r"^Status: superseded by \[[^]]+\]\(([^)]+)\)", text, re.M):
            later = path.parent / superseded[1]
            assert f"({path.name})" in later.read_text(encoding="utf-8"), path.name


def test_the_index_of_decisions_has_each_page_once():
    index = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\d+)\]\((\d{4}[^)]+)\) \| (.+) \|$", index, re.M)
    listed = [name for _, name, _ in rows]
    pages_there = sorted(path.name for path in (DOCS / "decisions").glob("[0-9]*.md"))
    assert sorted(listed) == pages_there, "add a line to docs/decisions/README.md, by topic"
    for number, name, line in rows:
        assert int(number) == int(name[:4]), name
        text = (DOCS / "decisions" / name).read_text(encoding="utf-8")
        is_superseded = re.search(r"^Status: .*superseded by", text, re.M) is not None
        assert ("superseded by" in line) == is_superseded, name


def test_the_plot_of_calls_is_that_of_the_table():
    scripts = ROOT / "scripts" / "site_pages" / "calls_plot.py"
    scope: dict = {"__file__": str(scripts), "__name__": "calls_plot"}
    exec(compile(scripts.read_text(encoding="utf-8"), str(scripts), "exec"), scope)
    drawn = scope["drawn"]((DOCS / "performance.md").read_text(encoding="utf-8"))
    plot = (DOCS / "images" / "calls.svg").read_text(encoding="utf-8")
    assert drawn == plot, "run scripts/site_pages/calls_plot.py"
