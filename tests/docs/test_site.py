# SPDX-License-Identifier: Apache-2.0
"""The generators of the site: links, navigation, the headers' and the package's reference, the checker."""

import json
import pathlib
import sys

import pytest

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts"


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield
    for name in [name for name in sys.modules if name.startswith("site_pages")]:
        del sys.modules[name]


def test_links_lead_to_pages_of_the_site(monkeypatch):
    from site_pages.sources import rewritten

    known = {"docs/plugins.md", "opdefs/README.md", "sdk/include/tenon/abi.h", "plugins/cpu/a.cpp"}
    text = "[a](plugins.md#trust) [b](../opdefs/README.md) [c](../sdk/include/tenon/abi.h) [d](../plugins/cpu/a.cpp)"
    monkeypatch.delenv("TENON_REPOSITORY_URL", raising=False)
    assert rewritten(text, "docs/vendors.md", known) == (
        "[a](plugins.md#trust) [b](reference/operator_definitions.md) [c](reference/headers/abi_h.md) d"
    )
    monkeypatch.setenv("TENON_REPOSITORY_URL", "https://example.org/tenon")
    got = rewritten("[d](../plugins/cpu/a.cpp)", "docs/vendors.md", known)
    assert got == "[d](https://example.org/tenon/blob/main/plugins/cpu/a.cpp)"
    assert rewritten("```\n[x](y.md)\n```", "docs/vendors.md", known) == "```\n[x](y.md)\n```"


def test_a_page_that_no_section_has_is_an_error():
    from site_pages import navigation

    pages = [*navigation.names(navigation.WRITTEN), "reference/python/index.md"]
    tree = navigation.tree(pages)
    assert tree[0] == {"Home": ["index.md"]}
    assert {"Python": ["reference/python/index.md"]} in tree[3]["Reference"]
    with pytest.raises(SystemExit, match="no section has stray.md"):
        navigation.tree([*pages, "stray.md"])
    with pytest.raises(SystemExit, match="expected pages index.md"):
        navigation.tree([page for page in pages if page != "index.md"])


def test_comments_of_headers_become_pages(tmp_path):
    from site_pages.headers import page

    header = tmp_path / "a.hpp"
    header.write_text("""// SPDX-License-Identifier: Apache-2.0
// What the header has.
#pragma once
#include <vector>

/* ==== Section 1: sums ==== */

// The sum of two numbers,
// <rounded> once.
inline double sum(double x, double y) {
  return x + y;
}

struct Pair {  // two
  int first;

  int second;
};
""")
    text = page(header, "tenon/a.hpp")
    assert "What the header has." in text and "## Section 1: sums" in text
    assert "### sum\n\nThe sum of two numbers,\n&lt;rounded&gt; once.\n" in text
    assert "inline double sum(double x, double y);\n```" in text and "return" not in text
    assert (
        "### Pair\n\n```cpp\nstruct Pair {  // two\n  int first;\n\n  int second;\n};\n```" in text
    )


def test_a_table_of_functions_has_an_entry_for_each():
    from site_pages.slots import rendered

    table = r"""#define TENON_HOST_SLOTS(X) \
  /* -- errors ----- */ \
  /* Records `text*`; the first \
   * one wins. */ \
  X(void, fail, (tenon_err*, int32_t code)) \
  X(void, clear, (void))"""
    assert rendered(table) == [
        "**Errors**",
        "",
        "### host->fail",
        "",
        "```c",
        "void (*fail)(tenon_err*, int32_t code);",
        "```",
        "",
        "Records `text*`; the first one wins.",
        "",
        "### host->clear",
        "",
        "```c",
        "void (*clear)(void);",
        "```",
        "",
    ]


def test_long_signatures_have_a_line_for_each_parameter():
    from site_pages.python_reference import wrapped

    assert wrapped("f(x)") == "f(x)"
    long = "name(first: dict[str, int] = {'a': (1, 2)}, second: int = 2, *, third_parameter: bool = False) -> int"
    assert wrapped(long).split("\n") == [
        "name(",
        "    first: dict[str, int] = {'a': (1, 2)},",
        "    second: int = 2,",
        "    *,",
        "    third_parameter: bool = False,",
        ") -> int",
    ]


def test_dead_links_and_lost_pages_are_found(tmp_path):
    from site_pages.check_site import problems

    (tmp_path / "search").mkdir()
    docs = [{"location": "index.html"}, {"location": "a.html#part"}]
    (tmp_path / "search" / "search_index.json").write_text(json.dumps({"docs": docs}))
    (tmp_path / "index.html").write_text('<a href="a.html#part">a</a><a href="b.html">b</a>')
    (tmp_path / "a.html").write_text('<h2 id="part"></h2><a href="index.html#lost">x</a>')
    (tmp_path / "c.html").write_text("")
    assert problems(tmp_path.resolve()) == [
        "a.html: index.html#lost: the page has no such anchor",
        "index.html: b.html: there is no such file",
        "c.html: no page links to it",
        "c.html: the search does not know it",
    ]


def test_operators_of_phi_are_there_or_have_a_reason():
    from site_pages import phi_operators as phi

    page = phi.page()
    assert "| `matrix_nms` | `tenon.vision.ops.matrix_nms` |" in page
    assert "| `warpctc` | `tenon.nn.functional.ctc_loss` |" in page
    assert "| `depend` | not there: programs keep the order of what writes |" in page
    assert sum("not there" in line for line in page.splitlines()) == len(phi.ABSENT) <= 8
    names = {name for family in phi.FAMILIES.values() for name in family}
    assert set(phi.NAMES) <= names and set(phi.ABSENT) <= names
    for path in phi.NAMES.values():
        assert phi.find(path) is not None, path
    with pytest.raises(SystemExit, match="nothing is not there; give its name here, or the reason"):
        phi.ours("nothing")


def test_training_classes_are_there_or_have_a_reason():
    from site_pages import training_classes as classes

    torch, paddle = classes.pages().values()
    assert "| `Conv3d` | `tenon.nn.Conv3d` |" in torch
    assert "| `SparseAdam` | not there: there are no" in torch
    assert "| `Conv2DTranspose` | `tenon.nn.ConvTranspose2d` |" in paddle
    assert "| `StepDecay` | `tenon.optim.lr_scheduler.StepLR` |" in paddle
    for groups, reasons, translate in (
        (classes.GROUPS, classes.REASONS, str),
        (classes.PADDLE_GROUPS, classes.PADDLE_REASONS, classes.our_name),
    ):
        there = {
            name
            for _, module, names in groups
            for name in names
            if classes.find(f"{module}.{translate(name)}") is not None
        }
        assert not there & set(reasons), "what is there needs no reason"
    with pytest.raises(SystemExit, match="tenon.nn.Nothing is not there; give Nothing a reason"):
        classes.rows("tenon.nn", ["Nothing"], {}, str)
