// SPDX-License-Identifier: Apache-2.0
#include "fold_scales.hpp"

namespace acme {
namespace {

constexpr char kMultiply[] = "tenon::multiply";

// Is the step x * number?
bool scales(const tenon::GraphEditor& program, uint32_t step, uint32_t& x, double& number) {
  return program.calls(step, kMultiply) && program.tensor(step, 0, x) &&
         program.number(step, 1, number);
}

}  // namespace

void fold_scales(tenon::GraphEditor& program) {
  for (uint32_t step = 0; step < program.steps(); ++step) {
    uint32_t scaled = 0, x = 0;
    double outer = 0, inner = 0;
    if (!scales(program, step, scaled, outer)) continue;
    const uint32_t first = program.maker(scaled);
    if (first == tenon::GraphEditor::kNoStep || !scales(program, first, x, inner)) continue;
    if (program.value(scaled).uses != 1 || program.value(x).is_written) continue;

    const uint32_t result = program.result(step);
    const uint32_t folded = program.insert_call(step, kMultiply, {x, tenon::boxed(inner * outer)});
    // Two integers may have made a product of another dtype than one floating number does.
    if (program.value(folded).dtype != program.value(result).dtype) {
      program.remove(step);
      continue;
    }
    program.replace(result, folded);
    program.remove(step + 1);  // the call that was inserted is `step` now
    program.remove(first);
    --step;  // what stood behind the removed step has moved up; the product may fold again
  }
}

}  // namespace acme
