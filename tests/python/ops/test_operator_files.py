# SPDX-License-Identifier: Apache-2.0
"""Operators from files, without a compiler: loading, replacing, refusals. That they compute what
compiled ones do is tested in tests/ops/test_interpreted.py."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest
import tenon

SWIGLU = """
namespace: {space}
ops:
- op: swiglu
  doc: "`silu(x) * y`."
  sig: (Tensor x, Tensor y) -> Tensor
  kind: elementwise
  dtypes: {{compute: promote_float, allow: floating}}
  expr: x * sigmoid(x) * y
  grad:
    x: "dout * y * sigmoid(x) * (1 + x * (1 - sigmoid(x)))"
    y: dout * x * sigmoid(x)
"""


@pytest.fixture
def write(tmp_path):
    """Writes an operator file; `entry` may be one operator without its first key."""

    def write(text, name="acme.yaml"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        return path

    return write


def refusal(kind, *paths):
    with pytest.raises(kind) as caught:
        tenon.ops.load(*paths)
    return str(caught.value)


def test_operators_are_functions_of_their_namespace(write):
    space = tenon.ops.load(write(SWIGLU.format(space="files_a")))
    x, y = tenon.tensor([1.0, -2.0]), tenon.tensor([3.0, 4.0])
    want = x * tenon.sigmoid(x) * y
    assert space.swiglu(x, y).tolist() == pytest.approx(want.tolist())
    assert tenon.ops.files_a.swiglu(x, 2.0).tolist() == pytest.approx((want / y * 2).tolist())
    assert "files_a::swiglu" in tenon.ops.names()
    assert "silu(x)" in space.swiglu.__doc__
    report = tenon.plugins.explain(space.swiglu)
    assert (report["route"], report["origin"]) == ("native", "acme.yaml:3")


def test_out_in_place_meta_and_gradients(write):
    space = tenon.ops.load(write(SWIGLU.format(space="files_b")))
    x, y = tenon.tensor([1.0, -2.0]), tenon.tensor([[3.0], [4.0]])
    want = (x * tenon.sigmoid(x) * y).tolist()
    out = tenon.zeros([2, 2])
    assert space.swiglu(x, y, out=out) is out and out.tolist() == want
    z = x.clone()
    assert space.swiglu_(z, 1.0) is z
    assert z.tolist() == pytest.approx((x * tenon.sigmoid(x)).tolist())
    assert tuple(space.swiglu(x.to("meta"), y.to("meta")).shape) == (2, 2)
    x.requires_grad = y.requires_grad = True
    space.swiglu(x, y).sum().backward()
    other = x.detach().clone()
    other.requires_grad = True
    (other * tenon.sigmoid(other) * y.detach()).sum().backward()
    assert x.grad.tolist() == pytest.approx(other.grad.tolist())
    assert tuple(y.grad.shape) == (2, 1)


def test_expressions_of_several_lines(write):
    space = tenon.ops.load(
        write("""
        namespace: files_lines
        ops:
        - op: bump
          doc: Lines with names, one of them a condition, and a polynomial.
          sig: (Tensor x, float width=1.0) -> Tensor
          kind: elementwise
          dtypes: {compute: promote_float, allow: floating}
          expr:
          - scale = 2 / width
          - t = x * scale
          - "near = polynomial(t, [1, 0.5, 0.25])"
          - is_near = abs(t) < 1
          - "is_near ? near : exp(t)"
        """)
    )
    got = space.bump(tenon.tensor([0.25, -0.25, 1.0]), 2.0)
    assert got.tolist() == pytest.approx([1.140625, 0.890625, 2.718281828])


def test_threads_call_and_others_load(write):
    path = write(SWIGLU.format(space="files_c"))
    space = tenon.ops.load(path)
    x = tenon.ones([50_000])
    problems = []

    def call():
        try:
            for _ in range(20):
                assert space.swiglu(x, 1.0).shape == x.shape
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    other = write(SWIGLU.format(space="files_c2"), "other.yaml")
    for _ in range(5):
        tenon.ops.load(other)
    for thread in threads:
        thread.join()
    assert not problems


# ---- several operators, steps, records ---------------------------------------------------------


def test_operators_call_each_other_and_every_loaded_one(write):
    space = tenon.ops.load(
        write(
            """
            namespace: files_d
            ops:
            - op: last_two
              doc: Two results by name.
              sig: (Tensor x, int n=1) -> (Tensor head, Tensor tail)
              kind: composite
              decompose:
                - rows = x.shape[0]
                - "cut = n < 0 ? rows + n : min(n, rows)"
                - "[narrow(x, 0, 0, cut), narrow(x, 0, cut, rows - cut)]"
            - op: swapped
              doc: The two, the other way round.
              sig: (Tensor x, *, int n=1, Tensor? extra=none) -> Tensor
              kind: composite
              decompose:
                - parts = last_two(x, n=n)
                - "extra == none ? concat([parts.tail, parts.head]) : concat([parts.tail, extra, parts.head])"
            - op: pieces
              doc: A list.
              sig: (Tensor x) -> Tensor[]
              kind: composite
              decompose: split(x, 2)
            """
        )
    )
    x = tenon.arange(5)
    assert space.last_two(x, 2).tail.tolist() == [2, 3, 4]
    assert space.swapped(x).tolist() == [1, 2, 3, 4, 0]
    assert space.swapped(x, n=-1, extra=tenon.tensor([9])).tolist() == [4, 9, 0, 1, 2, 3]
    assert [piece.tolist() for piece in space.pieces(tenon.arange(4))] == [[0, 1], [2, 3]]


def test_files_of_one_call_know_each_other(write):
    one = write(SWIGLU.format(space="files_e"), "one.yaml")
    two = write(
        """
        namespace: files_e
        ops:
        - op: twice
          doc: Twice.
          sig: (Tensor x) -> Tensor
          kind: composite
          decompose: swiglu(x, 2.0)
        """,
        "two.yaml",
    )
    assert "unknown operator `swiglu`" in refusal(ValueError, two)
    space = tenon.ops.load(two, one)
    x = tenon.tensor([1.0])
    assert space.twice(x).tolist() == space.swiglu(x, 2.0).tolist()


def test_tensors_held_to_one_dtype(write):
    space = tenon.ops.load(
        write(
            """
            namespace: files_o
            ops:
            - op: above
              doc: Of int64 alone.
              sig: (Tensor x, int limit=3) -> Tensor
              kind: elementwise
              dtypes: {x: int64, out: bool}
              expr: x > limit
            """
        )
    )
    assert space.above(tenon.tensor([1, 5])).tolist() == [False, True]
    with pytest.raises(TypeError, match="expected x of dtype int64, got float32"):
        space.above(tenon.tensor([1.0]))


# ---- replacing -----------------------------------------------------------------------------------

SCALE = """
namespace: {space}
ops:
- op: scale
  doc: Scaled.
  sig: (Tensor x{more}) -> Tensor
  kind: elementwise
  expr: x * {factor}
  grad: {{x: dout * {factor}}}
"""


def test_an_edited_file_replaces_its_operators(write):
    path = write(SCALE.format(space="files_f", factor=2, more=""))
    space = tenon.ops.load(path)
    x = tenon.tensor([1.0], requires_grad=True)
    recorded = space.scale(x)
    write(SCALE.format(space="files_f", factor=3, more=", int unused=0"))
    tenon.ops.load(path)
    assert space.scale(x.detach(), 1).tolist() == [3.0]
    # What was recorded goes on with what it began with.
    recorded.backward()
    assert x.grad.tolist() == [2.0]
    again = space.scale(x)
    x.grad = None
    again.backward()
    assert x.grad.tolist() == [3.0]


def test_unloaded_operators_are_gone_and_come_again(write):
    path = write(SCALE.format(space="files_n", factor=2, more=""))
    space = tenon.ops.load(path)
    scale = space.scale
    definer = tenon.plugins.explain(scale)["definer"].split()[0]
    tenon.plugins.unload(definer)
    with pytest.raises(Exception, match="unloaded"):
        scale(tenon.tensor([1.0]))
    assert tenon.ops.load(path).scale(tenon.tensor([1.0])).tolist() == [2.0]


def test_a_gradient_that_went_with_the_edit_is_gone(write):
    path = write(SCALE.format(space="files_g", factor=2, more=""))
    space = tenon.ops.load(path)
    write(SCALE.format(space="files_g", factor=2, more="").split("  grad")[0])
    tenon.ops.load(path)
    with pytest.raises(Exception, match="no gradient"):
        space.scale(tenon.tensor([1.0], requires_grad=True)).backward()


def test_a_file_that_does_not_load_leaves_what_was(write):
    path = write(SCALE.format(space="files_h", factor=2, more=""))
    space = tenon.ops.load(path)
    write(SCALE.format(space="files_h", factor="y", more=""))
    assert "unknown name `y`" in refusal(ValueError, path)
    assert space.scale(tenon.tensor([1.0])).tolist() == [2.0]


def test_callers_notice_another_signature(write):
    path = write(SCALE.format(space="files_i", factor=2, more=""))
    tenon.ops.load(path)
    caller = """
    namespace: files_i2
    ops:
    - op: twice
      doc: Twice.
      sig: (Tensor x) -> Tensor
      kind: composite
      decompose: files_i::scale(x)
    """
    space = tenon.ops.load(write(caller, "caller.yaml"))
    assert space.twice(tenon.tensor([1.0])).tolist() == [2.0]
    write(SCALE.format(space="files_i", factor=2, more=", int n=0"))
    tenon.ops.load(path)
    with pytest.raises(RuntimeError, match="has another signature than when this expression"):
        space.twice(tenon.tensor([1.0]))


def test_clashes_name_both_places(write):
    one = write(SCALE.format(space="files_j", factor=2, more=""), "one.yaml")
    two = write(SCALE.format(space="files_j", factor=3, more=""), "two.yaml")
    tenon.ops.load(one)
    text = refusal(ValueError, two)
    assert text == (
        f"{two}:3: `files_j::scale` is already defined at one.yaml:3; rename one of the two, or "
        "unload the other"
    )


# ---- refusals ------------------------------------------------------------------------------------

HEAD = "namespace: files_x\nops:\n- op: one\n  doc: One.\n"

REFUSED = {
    "native shape": (
        "  sig: (Tensor x) -> Tensor\n  kind: kernel\n  shape: native\n  decompose: x\n",
        "7: `one`: `shape: native` is C++; build the package: tenon new-op",
    ),
    "no decomposition": (
        "  sig: (Tensor x) -> Tensor\n  kind: kernel\n  shape: same(x)\n",
        "3: `one`: it has no `decompose`, so its kernel is C++; build the package: tenon new-op",
    ),
    "native decomposition": (
        "  sig: (Tensor x) -> Tensor\n  kind: composite\n  decompose: native\n",
        "3: `one`: `decompose: native` is C++; build the package: tenon new-op",
    ),
    "kernels": (
        "  sig: (Tensor x) -> Tensor\n  kind: kernel\n  shape: same(x)\n  decompose: sin(x)\n"
        "  dtypes: {allow: floating}\n  kernels: {cpu: [float32]}\n",
        "10: `one`: `kernels` are C++; build the package: tenon new-op",
    ),
    "view": (
        "  sig: (Tensor x) -> Tensor\n  kind: view\n  shape: native\n",
        "3: `one`: a view's shape rule is C++; build the package: tenon new-op",
    ),
    "combine": (
        "  sig: (Tensor x, int[]? axis=none) -> Tensor\n  kind: reduction\n"
        "  shape: reduce(x, axis)\n  dtypes: {allow: floating}\n"
        '  reduce: {init: 0, combine: "hypot(a, b)"}\n',
        "9: reduce: without a compiler `combine` is a + b, a * b, max(a, b), min(a, b), a || b or "
        "a && b, got `hypot(a, b)`; write a `decompose`, or build the package: tenon new-op",
    ),
    "unknown operator": (
        "  sig: (Tensor x) -> Tensor\n  kind: composite\n  decompose: sinn(x)\n",
        "7: decompose: unknown operator `sinn`; did you mean `sin`?",
    ),
    "circle": (
        "  sig: (Tensor x) -> Tensor\n  kind: composite\n  decompose: one(x)\n",
        "7: decompose: `one` is made of itself (one -> one); express one of them by others",
    ),
    "large number": (
        "  sig: (Tensor x) -> Tensor\n  kind: elementwise\n  expr: x + 99999999999999999999\n",
        "7: expr: `99999999999999999999` does not fit into 64 bits",
    ),
    "deep": (
        f"  sig: (Tensor x) -> Tensor\n  kind: elementwise\n  expr: {'(' * 10_000}x\n",
        "7: expr: nested more than 200 deep",
    ),
    "deeper": (
        f"  sig: (Tensor x) -> Tensor\n  kind: elementwise\n  expr: {'-' * 100_000}x\n",
        "7: expr: nested more than 200 deep",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_where_and_what_to_do(write, name):
    entry, text = REFUSED[name]
    path = write(HEAD + entry)
    got = refusal(ValueError, path)
    assert got.startswith(f"{path}:{text}"), got


def test_refusals_of_whole_files(write, tmp_path):
    missing = tmp_path / "missing.yaml"
    assert refusal(ValueError, missing) == f"{missing}:1: cannot read this file"
    assert "expected at least one operator file, got none" in refusal(ValueError)
    host = write(SWIGLU.format(space="tenon"))
    assert refusal(ValueError, host) == (
        f"{host}:3: the namespace `tenon` is the host's own; choose another one"
    )
    odd = write(SWIGLU.format(space="A-b"))
    assert f"{odd}:1: `namespace`: expected a name like `acme`" in refusal(ValueError, odd)
    assert ":1: not valid YAML" in refusal(ValueError, write("[" * 5000))
    with pytest.raises(TypeError):
        tenon.ops.load(3)


def test_circles_across_files_end_with_an_error(write):
    """`outer` is made of `inner`, and then a new `inner` of `outer`."""
    entry = """
    namespace: {space}
    ops:
    - op: {op}
      doc: Circle.
      sig: (Tensor x) -> Tensor
      kind: composite
      decompose: {decompose}
    """
    inner = write(entry.format(space="files_k", op="inner", decompose="sin(x)"), "inner.yaml")
    outer = write(
        entry.format(space="files_k2", op="outer", decompose="files_k::inner(x)"), "outer.yaml"
    )
    tenon.ops.load(inner)
    space = tenon.ops.load(outer)
    write(entry.format(space="files_k", op="inner", decompose="files_k2::outer(x)"), "inner.yaml")
    tenon.ops.load(inner)
    with pytest.raises(RuntimeError, match="operators call each other too deep"):
        space.outer(tenon.tensor([1.0]))


def test_hostile_numbers_do_not_trap(write):
    space = tenon.ops.load(
        write(
            """
            namespace: files_l
            ops:
            - op: full_of
              doc: Numbers at the border.
              sig: (Tensor x, int a, int b) -> Tensor
              kind: composite
              decompose: "full([3], a // b + a % b + (a << b) + (a >> b) + a * b - b + int(1e300))"
            - op: too_long
              doc: A list that would fill the memory.
              sig: (Tensor x, int n) -> Tensor
              kind: composite
              decompose: reshape(x, repeat(1, n))
            """
        )
    )
    x = tenon.tensor([1.0])
    low = -(2**63)
    for a, b in [(low, -1), (low, low), (5, 0), (2**63 - 1, 64), (1, 2**62), (-1, -(2**62))]:
        assert tuple(space.full_of(x, a, b).shape) == (3,)
    with pytest.raises(ValueError, match="expected a list of at most 65536 elements"):
        space.too_long(x, 2**62)


def test_the_interpreter_is_loaded_for_the_first_file_only(write):
    path = write(SWIGLU.format(space="files_m"))
    program = f"""
import tenon
def loaded():
    return any(p["name"] == "interpreter" and p["state"] == "loaded" for p in tenon.plugins.list())
tenon.add(1, 2)
assert not loaded()
tenon.ops.load({str(path)!r})
assert loaded()
"""
    subprocess.run([sys.executable, "-c", program], check=True, env=dict(os.environ))
