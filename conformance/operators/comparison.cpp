// SPDX-License-Identifier: Apache-2.0
#include "operators/comparison.hpp"

#include <cstring>

namespace tenon::kit {
namespace {

// Sorting values that the dtype cannot tell apart has no single answer.
bool fits(const Sample& sample, int32_t dtype) {
  bool is_coarse =
      dtype == TENON_DTYPE_F8E4M3 || dtype == TENON_DTYPE_F8E5M2 || dtype == TENON_DTYPE_BOOL;
  return !is_coarse || sample.text.find(" s[") == std::string::npos;
}

bool compare(Engine& engine, const Sample& sample, int32_t dtype, Layout layout, Range range,
             const Closeness* closeness) {
  if (!fits(sample, dtype)) return false;
  Session& session = engine.session();
  std::string what = text(sample.text, ", ", dtype_name(dtype), ", ", layout_name(layout));
  session.step(what);
  Arguments made = make_arguments(engine, sample, dtype, layout, range);
  Answer want = engine.call(sample.op, made.cpu);
  if (!want.ok()) return false;
  Answer got = engine.call(sample.op, made.device);
  if (got.left_device()) return false;
  if (!session.expect(got.ok(), what + ": succeeds, as on the CPU",
                      text("code ", got.status, " (", status_name(got.status), "): ", got.error)))
    return true;
  for (size_t i = 0; i < want.outs.size(); ++i) {
    std::string problem = closeness ? difference(engine, want.outs[i], got.outs[i], *closeness)
                                    : difference(engine, want.outs[i], got.outs[i]);
    if (!session.expect(problem.empty(), what + ": the CPU's answer", problem)) break;
  }
  return true;
}

}  // namespace

bool compare_call(Engine& engine, const Sample& sample, int32_t dtype, Layout layout, Range range,
                  const Closeness* closeness) {
  const bool was_compared = compare(engine, sample, dtype, layout, range, closeness);
  engine.tally(was_compared);
  return was_compared;
}

void for_each_sample(
    Engine& engine, const Subject& subject,
    const std::function<void(const Sample&, Arguments&, const Answer& on_cpu)>& body,
    SampleKind kind) {
  for (const Sample& sample : samples_of(subject.op, kind)) {
    engine.session().step(sample.text);
    Arguments made = make_arguments(engine, sample, subject.dtypes[0]);
    Answer want = engine.call(sample.op, made.cpu);
    engine.tally(want.ok());
    if (!want.ok()) continue;
    body(sample, made, want);
    if (engine.session().subject_failed()) return;
  }
}

Tensor guarded_room(Engine& engine, const Tensor& like, unsigned char byte) {
  int64_t size = real_host()->dtype_size(like->dtype);
  Tensor image =
      engine.create(engine.cpu(), TENON_DTYPE_U8, {like->numel * size + 2 * kGuardBytes});
  std::memset(image->data, byte, static_cast<size_t>(image->numel));
  return engine.on(engine.device(), image);
}
Tensor inside(Engine& engine, const Tensor& room, const Tensor& like) {
  return engine.view(room, like->dtype, shape_of(like), dense_strides(shape_of(like)),
                     kGuardBytes / real_host()->dtype_size(like->dtype));
}

Answer call_afresh(Engine& engine, const Sample& sample, const Arguments& made, const Answer& like,
                   unsigned char byte) {
  if (real_host()->op_def(sample.op)->flags & TENON_OP_DATA_DEPENDENT)
    return engine.call(sample.op, made.device);
  Tensors given;
  for (const Tensor& out : like.outs)
    given.push_back(inside(engine, guarded_room(engine, out, byte), out));
  Answer answer = engine.call(sample.op, made.device, given);
  if (answer.ok()) answer.outs = given;
  return answer;
}

std::string bytes_of(Engine& engine, const Answer& answer) {
  std::string bytes;
  for (const Tensor& out : answer.outs) bytes += bytes_of(engine, out);
  return bytes;
}

}  // namespace tenon::kit
