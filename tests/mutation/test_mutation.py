# SPDX-License-Identifier: Apache-2.0
"""The machinery of the mutation run, on sources of a few lines. The run itself is tests/mutation/run."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import plan
import python_changes
import python_plan
import python_switches
import report
import spans
from changes import Change, call_changes_of, changes_of

import build

SOURCE = """\
// A sum; `for (;;)` in a comment is none.
namespace tenon {
constexpr int limit(int n) { return n + 1; }
template <class T>
T total(const T* x, int n, T* largest) {
  if (n < 0) return fail("n < 0");
  T sum = 0, top = x[0];
  for (int i = 0; i < n; ++i) {
    sum += x[i];
    top = std::max(top, x[i]);
  }
  each(n, [&](int i) { largest[i] = top; });
  return sum - 1;
}
}  // namespace tenon
"""


def pieces(text, kind):
    return [text[s.start : s.end] for s in spans.find_spans(text) if s.kind == kind]


def test_spans_are_found_in_functions_and_lambdas_only():
    assert pieces(SOURCE, "condition") == ["n < 0", "i < n"]
    assert pieces(SOURCE, "step") == ["++i"]
    assert pieces(SOURCE, "init") == ["0", "x[0]", "0"]
    assert pieces(SOURCE, "statement") == [
        "sum += x[i];",
        "top = std::max(top, x[i]);",
        "largest[i] = top;",
    ]
    assert pieces(SOURCE, "return") == ['return fail("n < 0");', "return sum - 1;"]
    assert {s.function for s in spans.find_spans(SOURCE)} == {"total"}


def test_blanking_keeps_every_place():
    text = "#define A \\\n  b\nf(\"a;b\", '{');  // ( \n/* [ \n */ g();\n"
    code = spans.blank(text)
    assert len(code) == len(text) and code.count("\n") == text.count("\n")
    assert code.split() == ['f("___",', "'_');", "g();"]


def new_texts(text, index=0):
    span = spans.find_spans(text)[index]
    return [plan.changed(text, span, change) for change in changes_of(text, span)]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("a = b + c;", ["a = b - c;", ";"]),
        ("a += b;", ["a -= b;", ";"]),
        ("a = x[i] * 2;", ["a = x[i] + 2;", "a = x[i] * 3;", "a = x[i + 1] * 2;", ";"]),
        ("a = std::min<int>(b, c);", ["a = std::max<int>(b, c);", ";"]),
        ("return -a;", ["return a;"]),
        ("return !a && b;", ["return !a || b;", "return a && b;"]),
        ("return true ? 0.5 : a;", ["return true ? (0.5 + 1) : a;", "return false ? 0.5 : a;"]),
        ('return fail("too few");', []),
        ("T* p = q;", []),
    ],
)
def test_changes_of_a_statement(statement, expected):
    assert new_texts(f"void f() {{ {statement} }}") == expected


def test_a_check_may_be_dropped():
    text = "int f(int n) { if (n < 1) return fail(n); return n; }"
    assert new_texts(text) == ["false", "n <= 1", "n < 2", "n < 0"]


def test_changes_of_a_gradient():
    text = "void f() { g = tenon::ops::multiply(scope, dout, tenon::ops::subtract(scope, x, y)); }"
    (span,) = spans.find_spans(text)
    found = {plan.changed(text, span, change) for change in call_changes_of(text, span)}
    assert found == {
        "g = tenon::ops::add(scope, dout, tenon::ops::subtract(scope, x, y));",
        "g = tenon::ops::multiply(scope, dout, 1);",
        "g = tenon::ops::multiply(scope, 1, tenon::ops::subtract(scope, x, y));",
        "g = tenon::ops::multiply(scope, dout, tenon::ops::add(scope, x, y));",
        "g = tenon::ops::multiply(scope, dout, tenon::ops::subtract(scope, x, 0));",
        "g = tenon::ops::multiply(scope, dout, tenon::ops::subtract(scope, y, x));",
    }


def tiny_tree(root):
    folder = root / "plugins/cpu/kernels"
    folder.mkdir(parents=True)
    (folder / "sum.cpp").write_text(SOURCE)
    return root


def test_the_draw_depends_on_the_seed_alone(tmp_path):
    root = tiny_tree(tmp_path)
    drawn = plan.draw(root, 1, 20)
    assert drawn == plan.draw(root, 1, 20)
    assert any(plan.draw(root, seed, 20) != drawn for seed in range(2, 9))
    assert len(drawn) == 1  # one for each function of a kernel's file
    assert plan.Mutant.from_json(drawn[0].as_json()) == drawn[0]


PROGRAM = """\
#include <cstdio>
int sum(const int* x, int n) {
  int total = 0;
  for (int i = 0; i < n; ++i) total += x[i];
  if (total > 100) return -1;
  return total;
}
int main() {
  const int x[] = {3, 4, 5};
  std::printf("%d", sum(x, 2));
}
"""


@pytest.mark.skipif(not shutil.which("g++"), reason="g++ is missing")
def test_one_build_serves_every_mutant(tmp_path):
    found = spans.find_spans(PROGRAM)
    options = [(s, c, plan.changed(PROGRAM, s, c)) for s in found for c in changes_of(PROGRAM, s)]
    wanted = {"i <= n": "12", "total -= x[i];": "-7", "total > 101": "7", "false": "7"}
    chosen = {}
    for span, change, after in options:
        if after in wanted and span not in {m.span for m in chosen.values()}:
            number = len(chosen) + 1
            chosen[number] = plan.Mutant(
                number, "kernel", "a.cpp", 1, span.function, "", "", after, span, change
            )
    assert len(chosen) == 3
    (tmp_path / "mutation.hpp").write_text(build.HEADER)
    (tmp_path / "mutants.c").write_text(build.LIBRARY_SOURCE)
    text = build.instrument(PROGRAM, list(chosen.values()), tmp_path / "mutation.hpp")
    assert text.count("\n") == PROGRAM.count("\n") + 2
    (tmp_path / "a.cpp").write_text(text)
    command = ["g++", "-x", "c", "mutants.c", "-x", "c++", "a.cpp", "-o", "a"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert build.numbers_in((tmp_path / "a").read_bytes()) == set(chosen)
    for number, mutant in [(0, None), *chosen.items()]:
        done = subprocess.run(
            ["./a"], cwd=tmp_path, capture_output=True, text=True, env={"TENON_MUTANT": str(number)}
        )
        assert done.stdout == (wanted[mutant.after] if mutant else "7")


LOG = """\
plugins/a.cpp:7:3: error: expected ';'
In function 'int _mm_insert(int)',
    inlined from 'int tenon::f()' at ROOT/plugins/b.hpp:5:12,
    inlined from 'int tenon::g()' at ROOT/plugins/b.hpp:9:1:
/usr/lib/immintrin.h:1:1: error: the last argument must be an immediate
"""


def test_errors_are_blamed_on_the_mutants_of_their_lines(tmp_path):
    copy = build.Copy(tmp_path / "checkout", tmp_path / "copy")
    copy.tree = copy.root
    mutants = []
    for file, lines in (("plugins/a.cpp", (6, 7)), ("plugins/b.hpp", (4, 5))):
        text = "x\n" * 12
        path = copy.checkout / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for line in lines:
            start = 2 * (line - 1)
            span = spans.Span("return", start, start + 1, "f")
            change = Change(start, start + 1, "y")
            number = 10 * len(file) + line
            mutants.append(
                plan.Mutant(number, "kernel", file, line, "f", "", "x", "y", span, change)
            )
    assert copy.blamed(mutants, LOG.replace("ROOT", str(copy.root))) == {137, 135}


def test_equivalent_mutants_are_read(tmp_path):
    path = tmp_path / "equivalent.txt"
    path.write_text("# Title\n\na.cpp\n- x < 1\n+ x <= 1\nwhy: x is never 1.\n")
    assert plan.read_equivalent(path) == {("a.cpp", "x < 1", "x <= 1"): "x is never 1."}
    assert plan.read_equivalent(tmp_path / "none.txt") == {}


def test_the_report_counts_failures_crashes_and_hangs(tmp_path):
    span, change = spans.Span("return", 0, 1, "f"), Change(0, 1, "")
    mutants = [
        plan.Mutant(n, "shape", "a.cpp", n, "f", "", "a < b", "a <= b", span, change)
        for n in range(1, 6)
    ]
    outcomes = ["failed", "crashed (SIGSEGV)", "hung", "survived", "not reached"]
    results = {n: {"number": n, "outcome": outcomes[n - 1]} for n in range(1, 6)}
    path = tmp_path / "report.md"
    assert report.write_report(path, mutants, results, [], {}, {7: "does not compile"}) == 3
    text = path.read_text()
    assert "3 of 5 mutants noticed." in text and "1 does not compile" in text
    assert text.index("## Missed") < text.index("not reached") < text.index("## Noticed")


PYTHON_SOURCE = '''\
import os
def scale(values, factor=2):
    """Multiplies; a > b in here is no code."""
    if factor < 0:
        raise ValueError(f"expected {factor + 1} > 0")
    result = [each * factor for each in values]
    result.append(max(values))
    return result
class Counter:
    def __init__(self):
        self.count = 0
    def __call__(self, by):
        self.count += by
        return (lambda x: x - by)(self.count)
'''


def test_changes_of_python_functions_leave_messages_and_docstrings_alone():
    found = python_changes.changes_of_module(PYTHON_SOURCE)
    described = {(c.function, PYTHON_SOURCE[c.start : c.end], c.new) for c in found}
    assert described == {
        ("scale", "factor < 0", "(factor <= 0)"),
        ("scale", "factor < 0", "False"),
        ("scale", "0", "(0 + 1)"),
        ("scale", "each * factor", "((each) + (factor))"),
        ("scale", "result.append(max(values))", "pass"),
        ("scale", "max(values)", "min(values)"),
        ("Counter.__init__", "0", "(0 + 1)"),
        ("Counter.__call__", "self.count += by", "pass"),
        ("Counter.__call__", "x - by", "((x) + (by))"),
    }
    assert all(python_changes.changed(PYTHON_SOURCE, each) for each in found)


def test_python_mutants_are_switched_on_in_functions_that_live(tmp_path, monkeypatch):
    (tmp_path / "counted.py").write_text(PYTHON_SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    import counted

    method, counter = counted.Counter.__call__, counted.Counter()
    assert counter(5) == 0
    mutants = [
        python_switches.PythonMutant(n, "nn", "counted.py", c.line, c.function, "", c.new, c)
        for n, c in enumerate(python_changes.changes_of_module(PYTHON_SOURCE), 1)
    ]
    by_text = {each.after: each for each in mutants}
    switches = python_switches.PythonSwitches(mutants, tmp_path, str(tmp_path / "reached"))
    switches._note(sys._getframe(), "call", None)  # a function of another file
    assert switches.take_reached() == []
    switches.record()
    try:
        counted.scale([1, 2])
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert {mutants[n - 1].function for n in switches.take_reached()} == {"scale"}
    switches.choose(0)
    assert counter(1) == 5
    switches.choose(by_text["((x) + (by))"].number)
    assert counter(1) == 8  # the object was there before
    assert method(counter, 0) == 7
    switches.choose(by_text["min(values)"].number)
    assert counted.scale([3, 4]) == [6, 8, 3]
    assert counter(1) == 7  # each choice starts from the source on disk


SCALING = "import counted; print(counted.scale([3, 4]))"


def test_processes_that_a_test_starts_take_part(tmp_path, monkeypatch):
    (tmp_path / "counted.py").write_text(PYTHON_SOURCE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("TENON_PYTHON_MUTANTS", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("counted", None)
    import counted

    mutants = [
        python_switches.PythonMutant(n, "nn", "counted.py", c.line, c.function, "", c.new, c)
        for n, c in enumerate(python_changes.changes_of_module(PYTHON_SOURCE), 1)
    ]
    plan_file = tmp_path / "plan.json"
    plan_file.write_text(json.dumps([each.as_json() for each in mutants]))
    files = str(tmp_path / "reached"), str(plan_file)
    switches = python_switches.PythonSwitches(mutants, tmp_path, *files)

    def interpreter():
        return subprocess.check_output([sys.executable, "-c", SCALING], text=True)

    def reached():
        return {mutants[n - 1].function for n in switches.take_reached()}

    switches.record()
    try:
        if not (child := os.fork()):
            counted.Counter()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert reached() == {"Counter.__init__"}
    assert interpreter() == "[6, 8, 4]\n" and reached() == {"scale"}
    monkeypatch.delenv("TENON_PYTHON_MUTANTS")  # which each mutant's own process would not have
    switches.choose(next(each.number for each in mutants if each.after == "min(values)"))
    assert interpreter() == "[6, 8, 3]\n"


def test_a_seed_draws_the_same_mutants_after_other_functions_came_or_moved(tmp_path):
    def drawn(root):
        return {(m.function, m.before, m.after) for m in python_plan.draw(root, 1, 40)}

    folder = tmp_path / python_plan.PACKAGE / "nn"
    folder.mkdir(parents=True)
    functions = [f"def f{i}(x):\n    return x + {i} if x < {i} else -x\n" for i in range(30)]
    (folder / "some.py").write_text("".join(functions))
    first = drawn(tmp_path)
    assert len(first) == round(1.5 * 0.27 * 40) and len({f for f, _, _ in first}) == len(first)
    (folder / "deep").mkdir()
    (folder / "some.py").rename(folder / "deep" / "other.py")
    assert drawn(tmp_path) == first
    functions.insert(3, "def other(x):\n    return x - 1\n")
    (folder / "deep" / "other.py").write_text("".join(functions))
    assert len(first - drawn(tmp_path)) <= 1
    known = {("deep", "x", "y"): ""}
    every = python_plan.draw(tmp_path, 1, 40)
    assert len(python_plan.choose(every, 40, known)) == round(0.27 * 40)
    assert every[0] not in python_plan.choose(every, 40, {every[0].key: "it changes nothing"})


def test_a_change_keeps_what_functions_close_over():
    source = "class A(B):\n    def f(self, x):\n        super().f(x)\n        return x + 1\n"
    changes = python_changes.changes_of_module(source)
    kept = {
        each.new
        for each in changes
        if python_switches.keeps_closures(source, python_changes.changed(source, each))
    }
    assert "pass" in {each.new for each in changes} and kept == {"((x) - (1))", "(1 + 1)"}
