// SPDX-License-Identifier: Apache-2.0
// Results at the ends of dtypes, in memory that was used before, for positions that do not exist,
// and numbers that are drawn.
#include <tenon/primitives.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "operators/comparison.hpp"
#include "operators/special.hpp"
#include "operators/stream_work.hpp"

namespace tenon::kit {
namespace {

int64_t elements(const Sample& sample) {
  int64_t most = 0;
  for (const Argument& argument : sample.arguments)
    if (const auto* tensor = std::get_if<TensorSpec>(&argument)) {
      int64_t count = 1;
      for (int64_t extent : tensor->shape) count *= extent;
      most = std::max(most, count);
    }
  return most;
}

// Memory of a result holds what it was used for before. As floats, these bytes are a large number
// and NaN: what is added to them, or multiplied with 0, shows.
void dirty(Session& session) {
  constexpr int64_t kMaxElements = 70'000;
  constexpr size_t kMaxSamples = 3;
  Engine engine(session);
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    if (subject.def().flags & (TENON_OP_DATA_DEPENDENT | TENON_OP_COMPOSITE)) return;
    std::vector<Sample> samples = samples_of(subject.op, SampleKind::kGeneral);
    samples.resize(std::min(samples.size(), kMaxSamples));
    for (const Sample& sample : samples_of(subject.op, SampleKind::kLarge))
      if (elements(sample) <= kMaxElements && samples.size() <= kMaxSamples)
        samples.push_back(sample);
    for (const Sample& sample : samples) {
      session.step(sample.text + ", into memory that was used before");
      Arguments made = make_arguments(engine, sample, subject.dtypes[0]);
      Answer want = engine.call(sample.op, made.cpu);
      for (unsigned char byte : {0x7b, 0xff}) {
        Answer got = want.ok() ? call_afresh(engine, sample, made, want, byte) : want;
        engine.tally(got.ok());
        if (!got.ok()) continue;  // ops.values tells
        for (size_t i = 0; i < want.outs.size(); ++i) {
          std::string problem = difference(engine, want.outs[i], got.outs[i]);
          if (!session.expect(problem.empty(),
                              text(sample.text, ": the CPU's answer, in memory whose bytes were 0x",
                                   std::hex, int{byte}),
                              problem, "write every element of the result, and read none before"))
            return;
        }
      }
    }
  });
  engine.conclude();
}

void integers(Session& session) {
  Engine engine(session);
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    for (int32_t dtype : subject.dtypes)
      if (is_integer(dtype))
        for (const Sample& sample : samples_of(subject.op, SampleKind::kInteger)) {
          compare_call(engine, sample, dtype);
          if (session.subject_failed()) return;
        }
  });
  engine.conclude();
}

// Ties and subnormal numbers of float16 and bfloat16, to the last bit.
void halves(Session& session) {
  constexpr Closeness kExact{.relative = 0, .keeps_subnormal = true, .keeps_zero_sign = false};
  Engine engine(session);
  auto compare = [&](const Subject& subject) {
    const bool converts = subject.name == "cast" || subject.name == "primitive_copy";
    for (int32_t dtype : {TENON_DTYPE_F16, TENON_DTYPE_BF16}) {
      const bool is_served =
          std::find(subject.dtypes.begin(), subject.dtypes.end(), dtype) != subject.dtypes.end();
      if (!is_served && !converts) continue;
      for (const Sample& sample : samples_of(subject.op, SampleKind::kHalf)) {
        if (!is_served &&
            engine.call(sample.op, make_arguments(engine, sample, dtype).device).left_device())
          continue;  // it converts to others
        const SpecialRule* rule = special_rule(function_of(sample));
        compare_call(engine, sample, dtype, Layout::kContiguous, Range::kSmall,
                     rule ? &rule->closeness : &kExact);
        if (session.subject_failed()) return;
      }
    }
  };
  for_each_subject(engine, Route::kNative, compare);
  if (session.failures() == 0) for_each_subject(engine, Route::kLowered, compare);
  engine.conclude();
}

// A call that draws `count` numbers.
std::string drawing(const std::string& op, int64_t count) {
  if (op == "primitive_random") return text(op, " ", count, " D");
  if (op == "randint") return text(op, " 0 1000000 (", count, ") T D");
  return text(op, " (", count, ") 0.0 1.0 T D");
}

void random(Session& session) {
  static const char kFix[] =
      "take seed and offset from host->random_reserve at every call, and reserve as many blocks as "
      "the call uses: docs/random.md";
  constexpr uint64_t kSeed = 7, kOffset = 5;
  struct Drawn {
    const char* op;
    std::vector<int32_t> dtypes;
  };
  static const Drawn kDrawn[] = {
      {"primitive_random", {TENON_DTYPE_I64}},
      {"uniform", {TENON_DTYPE_F32, TENON_DTYPE_F64, TENON_DTYPE_F16, TENON_DTYPE_BF16}},
      {"normal", {TENON_DTYPE_F32}},
      {"randint", {TENON_DTYPE_I64, TENON_DTYPE_I32}}};
  Engine engine(session);
  subjects(engine);  // absent without kernels
  for (const Drawn& drawn : kDrawn) {
    const tenon_op* op = host->op_find(drawn.op);
    if (!op || !session.begin(drawn.op)) continue;
    for (int32_t dtype : drawn.dtypes)
      for (int64_t count : {1, 3, 4, 5, 8, 1001, 4099}) {
        if (session.subject_failed()) break;
        const Sample sample = parse_sample(drawing(drawn.op, count));
        const std::string what = text(sample.text, ", ", dtype_name(dtype));
        session.step(what);
        Arguments made = make_arguments(engine, sample, dtype);
        for (tenon_device_id device : {engine.cpu(), engine.device()})
          host->random_set(device, kSeed, kOffset);
        const Answer want = engine.call(op, made.cpu), got = engine.call(op, made.device);
        const bool is_compared = want.ok() && !got.left_device();
        engine.tally(is_compared);
        if (!is_compared) break;
        if (!session.expect(got.ok(), what + " succeeds, as on the CPU", got.error)) break;
        uint64_t seed = 0, after = 0, wanted = 0;
        host->random_get(engine.cpu(), &seed, &wanted);
        host->random_get(engine.device(), &seed, &after);
        const Answer next = engine.call(op, made.device);
        if (count > 8 &&
            !session.expect(bytes_of(engine, next) != bytes_of(engine, got),
                            what + ": other numbers at every call", "the same ones twice", kFix))
          break;
        if (!session.expect(
                after == wanted,
                text(what, ": as many blocks are reserved as it uses, ", wanted - kOffset),
                text(after - kOffset), kFix))
          break;
        const std::string problem = difference(engine, want.outs[0], got.outs[0]);
        session.expect(problem.empty(), what + ": the numbers of seed and offset, as on the CPU",
                       problem, kFix);
      }
  }
  session.begin("");
  engine.conclude();
}

// A call with a position that its axis does not have. Devices that have work in flight may be
// unable to report it; a device whose work has ended when the call returns can.
void index(Session& session) {
  bool can_report = false;
  {
    Plugin plugin(session);
    can_report = !plugin.group<tenon_async_api>(TENON_GROUP_ASYNC) &&
                 !plugin.group<tenon_compile_api>(TENON_GROUP_COMPILE);
  }
  Engine engine(session);
  auto upload = [&](int32_t dtype, const std::vector<int64_t>& shape, const void* values) {
    Tensor made = engine.create(engine.cpu(), dtype, shape);
    std::memcpy(made->data, values, static_cast<size_t>(made->numel) * host->dtype_size(dtype));
    return made;
  };
  const float rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const Tensor x = upload(TENON_DTYPE_F32, {5, 3}, rows),
               source = upload(TENON_DTYPE_F32, {2, 3}, rows + 6);
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    const bool is_scatter = subject.name == "primitive_scatter";
    const bool has_axis = subject.name == "index_select" || subject.name == "gather";
    if (!is_scatter && !has_axis && subject.name != "primitive_gather") return;
    for (int64_t position :
         {int64_t{5}, int64_t{1000}, int64_t{-6}, std::numeric_limits<int64_t>::max(),
          std::numeric_limits<int64_t>::min()}) {
      const std::string what = text(subject.name, " of 5 rows at position ", position);
      session.step(what);
      const int64_t positions[] = {1, position, 1, position, 1, position};
      const Tensor at = subject.name == "gather" ? upload(TENON_DTYPE_I64, {2, 3}, positions)
                                                 : upload(TENON_DTYPE_I64, {2}, positions);
      const Tensor there[] = {engine.on(engine.device(), x), engine.on(engine.device(), at),
                              engine.on(engine.device(), source)};
      auto arguments = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
        Values args = {boxed(a.get()), boxed(b.get())};
        if (has_axis) args.push_back(boxed(int64_t{0}));
        if (is_scatter) args.push_back(boxed(c.get()));
        if (is_scatter) args.push_back(boxed(int64_t{TENON_SCATTER_ASSIGN}));
        return args;
      };
      if (engine.call(subject.op, arguments(x, at, source)).status != TENON_OUT_OF_RANGE) continue;
      Answer got = engine.call(subject.op, arguments(there[0], there[1], there[2]));
      Error error;
      if (got.ok()) {
        got.status = host->device_sync(engine.device(), error);
        got.error = error.text();
      }
      engine.tally(!got.left_device());
      session.expect(
          got.status == TENON_OUT_OF_RANGE || (got.ok() && !can_report) || got.left_device(),
          what + ": code 11 (OUT_OF_RANGE)",
          got.ok() ? "TENON_OK" : text("code ", got.status, ": ", got.error),
          "compare positions with the extent; a device without streams can always tell");
    }
  });
  engine.conclude();
}

}  // namespace

const Checks& result_checks() {
  static const char kNeeds[] =
      "lifecycle.sync memory.copy_grid memory.copy_d2d memory.fill_grid async.null_stream "
      "ops.values";
  static const Checks checks = {
      {"ops.dirty", "Results do not depend on what their memory held.",
       "abi.h section 5, alloc; section 6", "", kNeeds, dirty},
      {"ops.integers", "Integers at the ends of their dtype go the way of tenon/primitives.h.",
       "primitives.h",
       "smallest by -1 wraps, division by 0 is 0, shifts by the width and more give 0 or the sign; "
       "sums of integers are kept in int64",
       kNeeds, integers},
      {"ops.halves", "float16 and bfloat16 round ties to even and keep subnormal numbers.",
       "abi.h section 6, tenon_kernel_def",
       "convert with round to nearest, ties to even, and without flush-to-zero", kNeeds, halves},
      {"ops.random", "Equal seeds give equal numbers, and no number is drawn twice.",
       "abi.h section 8, random_reserve", "",
       "lifecycle.sync memory.copy_grid async.null_stream ops.values ops.strided ops.dtypes "
       "ops.integers",
       random},
      {"ops.index", "A position outside its axis is an error, where the device can tell.",
       "docs/primitives.md", "", kNeeds, index},
  };
  return checks;
}

}  // namespace tenon::kit
