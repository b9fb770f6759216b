// SPDX-License-Identifier: Apache-2.0
// Every `example` as a test.
#include "emit/emit.hpp"
#include "emit/python_text.hpp"
#include "support/text.hpp"

namespace tenon::codegen {

std::vector<OutputFile> emit_tests(const Package& package, const EmitOptions&) {
  std::string rows;
  for (const Operator* op : package.emitted)
    for (const Example& example : op->examples)
      rows +=
          cat("    (", python_string(cat(example.where.origin(), " ", example.text)), ",\n     ",
              python_string(python_call(example.call, package, op->name_space)), ",\n     ",
              python_value(example.value), ", ", example.approximate ? "True" : "False", "),\n");
  std::string text = generated_line(package.files, "#");
  text += R"("""The examples of the operator files, run."""

import math
import struct

import pytest
import tenon
from tenon import tensor

inf = math.inf
nan = math.nan


def single(number):
    return struct.unpack("f", struct.pack("f", number))[0]


def agree(actual, expected, approximate):
    if isinstance(expected, tuple):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected):
            agree(a, e, approximate)
        return
    if hasattr(actual, "tolist"):
        actual = actual.tolist()
    if isinstance(expected, list):
        assert isinstance(actual, list) and len(actual) == len(expected)
        for a, e in zip(actual, expected):
            agree(a, e, approximate)
        return
    assert type(actual) is type(expected), f"expected {expected!r}, got {actual!r}"
    if isinstance(expected, float) and math.isnan(expected):
        assert math.isnan(actual)
    elif approximate:
        assert math.isclose(actual, expected, rel_tol=1e-5, abs_tol=1e-6)
    elif isinstance(expected, float) and math.isfinite(expected):
        assert actual in (expected, single(expected))
    else:
        assert actual == expected


EXAMPLES = [
)";
  text += rows + R"(]


@pytest.mark.parametrize(
    "call, expected, approximate",
    [example[1:] for example in EXAMPLES],
    ids=[example[0] for example in EXAMPLES],
)
def test_example(call, expected, approximate):
    agree(eval(call), expected, approximate)
)";
  return {{"python/test_operator_examples.py", text}};
}

}  // namespace tenon::codegen
