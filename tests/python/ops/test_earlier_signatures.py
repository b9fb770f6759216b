# SPDX-License-Identifier: Apache-2.0
"""Programs of an earlier version, whose operators have another signature now."""

import numpy as np
import pytest
import tenon

THEN = """
namespace: aged
ops:
- op: scaled
  doc: "`x` times a number, plus another one."
  sig: "(Tensor x, *, float factor=2.0, float shift=0.0, str mode='plain') -> Tensor"
  kind: elementwise
  dtypes: {allow: float32}
  expr: x * factor + shift
"""
NOW = """
namespace: aged
ops:
- op: scaled
  doc: "`x` times a number, plus another one, times a third."
  sig: "(Tensor x, *, float again=1.0, float by=3.0, float shift=0.5, str mode='plain') -> Tensor"
  kind: elementwise
  dtypes: {allow: float32}
  expr: (x * by + shift) * again
  earlier:
  - {sig: "(Tensor x, *, float factor=2.0, float shift=0.0, str mode='plain') -> Tensor", renamed: {factor: by}%s}
"""


@pytest.fixture(scope="module")
def tmp_path(tmp_path_factory):
    """One folder, because a file that is loaded again replaces its operators, and another one may not."""
    return tmp_path_factory.mktemp("aged")


def exported(tmp_path, function):
    """A program of then, on disk."""
    (tmp_path / "aged.yaml").write_text(THEN)
    tenon.ops.load(tmp_path / "aged.yaml")
    program = tenon.export(function, (tenon.ones(3),), passes=())
    assert "aged::scaled(" in str(program)  # whole, not its parts
    program.save(tmp_path / "then.tenon")
    return np.asarray(program(tenon.arange(3.0)))


def loaded(tmp_path, now):
    (tmp_path / "aged.yaml").write_text(now)
    tenon.ops.load(tmp_path / "aged.yaml")
    return tenon.jit.load(tmp_path / "then.tenon")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tenon.ops.aged.scaled(x),
        lambda x: tenon.ops.aged.scaled(x, factor=5.0),
        lambda x: tenon.ops.aged.scaled(x, shift=0.5),  # a default of now
        lambda x: tenon.ops.aged.scaled(x, factor=3.0, shift=-1.0, mode="other"),
        lambda x: tenon.ops.aged.scaled(tenon.ops.aged.scaled(x), factor=4.0),
    ],
)
def test_calls_mean_what_they_meant(tmp_path, call):
    then = exported(tmp_path, call)
    program = loaded(tmp_path, NOW % "")
    np.testing.assert_array_equal(np.asarray(program(tenon.arange(3.0))), then)
    # What is saved now is of now.
    program.save(tmp_path / "now.tenon")
    again = tenon.jit.load(tmp_path / "now.tenon")
    np.testing.assert_array_equal(np.asarray(again(tenon.arange(3.0))), then)


def test_what_was_added_is_what_the_operator_says(tmp_path):
    then = exported(tmp_path, lambda x: tenon.ops.aged.scaled(x))
    program = loaded(tmp_path, NOW % ", with: {again: 10.0}")
    np.testing.assert_array_equal(np.asarray(program(tenon.arange(3.0))), then * 10)


def test_other_signatures_are_refused_as_before(tmp_path):
    exported(tmp_path, lambda x: tenon.ops.aged.scaled(x))
    other = NOW % ""
    with pytest.raises(
        ValueError, match=r"operator 'aged::scaled' has the signature .* export it again"
    ):
        loaded(tmp_path, other[: other.index("  earlier:")])
