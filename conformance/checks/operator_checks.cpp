// SPDX-License-Identifier: Apache-2.0
// Every operator that the device runs itself, against the CPU.
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "operators/comparison.hpp"
#include "operators/shims.hpp"
#include "operators/special.hpp"

namespace tenon::kit {
namespace {

void compare_samples(const Subject& subject, Engine& engine, SampleKind kind,
                     std::vector<Layout> layouts = {Layout::kContiguous}) {
  int32_t dtype = subject.dtypes[0];
  bool needs_float = kind == SampleKind::kNan;
  if (needs_float && !is_floating(dtype)) return;
  for (const Sample& sample : samples_of(subject.op, kind))
    for (Layout layout : layouts) {
      compare_call(engine, sample, dtype, layout);
      if (engine.session().subject_failed()) return;
    }
}

void compare_all(Session& session, SampleKind kind,
                 std::vector<Layout> layouts = {Layout::kContiguous}) {
  Engine engine(session);
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    compare_samples(subject, engine, kind, layouts);
  });
  engine.conclude();
}

void values(Session& session) { compare_all(session, SampleKind::kGeneral); }
void nan(Session& session) { compare_all(session, SampleKind::kNan); }
void empty(Session& session) { compare_all(session, SampleKind::kEmpty); }
void zero_dim(Session& session) { compare_all(session, SampleKind::kZeroDim); }
void strided(Session& session) {
  compare_all(session, SampleKind::kGeneral, {std::begin(kOddLayouts), std::end(kOddLayouts)});
}

// Zeros of both signs, ties, tails, subnormal numbers, NaN with payloads.
void compare_special(const Subject& subject, Engine& engine) {
  std::vector<int32_t> dtypes = {subject.dtypes[0]};
  for (int32_t dtype : subject.dtypes)
    if (dtype == TENON_DTYPE_F64 && dtype != dtypes[0]) dtypes.push_back(dtype);
  for (const Sample& sample : samples_of(subject.op, SampleKind::kSpecial))
    for (int32_t dtype : dtypes) {
      if (!is_floating(dtype) || engine.session().subject_failed()) continue;
      const SpecialRule* rule = special_rule(function_of(sample));
      compare_call(engine, sample, dtype, Layout::kContiguous, Range::kSmall,
                   rule ? &rule->closeness : nullptr);
    }
}

void special(Session& session) {
  Engine engine(session);
  for_each_subject(engine, Route::kNative,
                   [&](const Subject& subject) { compare_special(subject, engine); });
  engine.conclude();
}

void large(Session& session) {
  Engine engine(session);
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    for (const Sample& sample : samples_of(subject.op, SampleKind::kLarge)) {
      try {
        compare_call(engine, sample, subject.dtypes[0]);
      } catch (const NoRoom&) {
        session.note(sample.text + ": no room on the device");
      }
      if (session.subject_failed()) return;
    }
  });
  engine.conclude();
}

void broadcast(Session& session) {
  Engine engine(session);
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    compare_samples(subject, engine, SampleKind::kBroadcast);
    if (!session.subject_failed())
      compare_samples(subject, engine, SampleKind::kGeneral, {Layout::kRepeated});
  });
  engine.conclude();
}

void compare_dtypes(const Subject& subject, Engine& engine) {
  // Large integers in floating functions test their arguments' reduction, not their dtype.
  bool is_exact = subject.def().compute != TENON_COMPUTE_PROMOTE_FLOAT;
  for (int32_t dtype : subject.dtypes) {
    bool is_wide = is_exact && is_integer(dtype);
    if (dtype == subject.dtypes[0] && !is_wide) continue;
    for (const Sample& sample : samples_of(subject.op, SampleKind::kGeneral)) {
      compare_call(engine, sample, dtype, Layout::kContiguous,
                   is_wide ? Range::kWide : Range::kSmall);
      if (engine.session().subject_failed()) return;
    }
  }
}

void dtypes(Session& session) {
  Engine engine(session);
  for_each_subject(engine, Route::kNative,
                   [&](const Subject& subject) { compare_dtypes(subject, engine); });
  engine.conclude();
}

// Operators that the host takes apart: all of the above, at once.
void lowered(Session& session) {
  Engine engine(session);
  for_each_subject(engine, Route::kLowered, [&](const Subject& subject) {
    for (SampleKind kind : {SampleKind::kGeneral, SampleKind::kZeroDim, SampleKind::kEmpty,
                            SampleKind::kNan, SampleKind::kBroadcast})
      if (!session.subject_failed()) compare_samples(subject, engine, kind);
    if (!session.subject_failed())
      compare_samples(subject, engine, SampleKind::kGeneral,
                      {Layout::kTransposed, Layout::kReversed, Layout::kRepeated});
    if (!session.subject_failed()) compare_dtypes(subject, engine);
    if (!session.subject_failed()) compare_special(subject, engine);
  });
  engine.conclude();
}

void inputs_kept(Session& session) {
  Engine engine(session);
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    for_each_sample(engine, subject, [&](const Sample& sample, Arguments& made, const Answer&) {
      std::vector<std::string> before;
      for (const Tensor& storage : made.storages) before.push_back(bytes_of(engine, storage));
      engine.call(sample.op, made.device);
      for (size_t i = 0; i < before.size(); ++i)
        session.expect(bytes_of(engine, made.storages[i]) == before[i],
                       text(sample.text, ": tensor ", i, " stays as it is"), "it was written",
                       "kernels write outputs only");
    });
  });
  engine.conclude();
}

// Outputs given by the caller, inside memory that must stay as it is.
void bounds(Session& session) {
  Engine engine(session);
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    if (subject.def().flags & (TENON_OP_DATA_DEPENDENT | TENON_OP_COMPOSITE)) return;
    auto look = [&](const Sample& sample, Arguments& made, const Answer& want) {
      Tensors given, rooms;
      for (const Tensor& out : want.outs) {
        rooms.push_back(guarded_room(engine, out));
        given.push_back(inside(engine, rooms.back(), out));
      }
      Answer got = engine.call(sample.op, made.device, given);
      if (!got.ok()) return;  // ops.values tells
      for (size_t i = 0; i < rooms.size(); ++i) {
        std::string found = bytes_of(engine, rooms[i]);
        size_t end = static_cast<size_t>(
            kGuardBytes + want.outs[i]->numel * real_host()->dtype_size(want.outs[i]->dtype));
        for (size_t at = 0; at < found.size(); ++at) {
          bool is_inside = at >= kGuardBytes && at < end;
          if (is_inside || static_cast<unsigned char>(found[at]) == kGuard) continue;
          session.fail(text(sample.text, ": output ", i, " is written within its bounds"),
                       at < kGuardBytes
                           ? text("a byte ", kGuardBytes - at, " before it was written")
                           : text("byte ", at - end, " behind it was written"),
                       "look at the last, partial block");
          break;
        }
      }
    };
    for_each_sample(engine, subject, look);
    if (!session.subject_failed()) for_each_sample(engine, subject, look, SampleKind::kOdd);
  });
  engine.conclude();
}

// Operators whose sums kernels may take in any order, if they say so.
bool may_vary(const Subject& subject, const std::set<std::string>& flagged) {
  static const std::set<std::string> kScattering = {"scatter_add", "index_add", "index_put",
                                                    "embedding_grad", "max_pool2d_grad"};
  return flagged.count(subject.def().name) || kScattering.count(subject.name);
}

void repeat(Session& session) {
  Engine engine(session);
  std::set<std::string> flagged;
  {
    Plugin plugin(session);
    for (const tenon_kernel_def& kernel : kernels_of(*plugin.table()))
      if (kernel.traits & TENON_KERNEL_NONDETERMINISTIC) flagged.insert(kernel.op);
  }
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    if (may_vary(subject, flagged)) return;
    for_each_sample(
        engine, subject, [&](const Sample& sample, Arguments& made, const Answer& want) {
          Answer first = call_afresh(engine, sample, made, want);
          std::string bytes = bytes_of(engine, first);
          for (int i = 0; i < 3 && first.ok(); ++i)
            if (!session.expect(bytes_of(engine, call_afresh(engine, sample, made, want)) == bytes,
                                sample.text + ": the same bits at every call", "other bits",
                                "set TENON_KERNEL_NONDETERMINISTIC on the kernel, or make it so"))
              return;
        });
  });
  engine.conclude();
}

// Arguments for an operator that works along rows, with `x` for every tensor that it needs: its last axis is the row.
std::optional<Values> along_rows(const tenon_op_def& def, const Tensor& x) {
  static const int64_t kAxis = 1;
  const std::string_view traits = def.traits ? def.traits : "";
  const size_t at = traits.find("rows: ");
  if (at == traits.npos) return std::nullopt;
  const std::string_view line = traits.substr(at + 6, traits.find('\n', at) - at - 6);
  Values args;
  for (uint32_t i = 0; i < def.nparams; ++i) {
    const tenon_param_def& param = def.params[i];
    const bool is_optional = param.flags & TENON_PARAM_FLAG_OPTIONAL;
    if (param.kind == TENON_PARAM_TENSOR)
      args.push_back(is_optional ? kNoValue : boxed(x.get()));
    else if (line == param.name)
      args.push_back(param.kind == TENON_PARAM_INTS ? boxed(&kAxis, 1) : boxed(kAxis));
    else if (param.flags & TENON_PARAM_FLAG_HAS_DEFAULT || is_optional)
      args.push_back(is_optional ? kNoValue : param.default_value);
    else
      return std::nullopt;
  }
  return args;
}

// TENON_KERNEL_ROWS: a call for some of the rows.
void rows(Session& session) {
  constexpr int64_t kRows = 7, kLength = 99;
  Engine engine(session);
  std::set<std::string> flagged;
  {
    Plugin plugin(session);
    for (const tenon_kernel_def& kernel : kernels_of(*plugin.table()))
      if (kernel.traits & TENON_KERNEL_ROWS) flagged.insert(kernel.op);
  }
  if (flagged.empty()) session.absent("no kernel claims TENON_KERNEL_ROWS");
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    if (!flagged.count(subject.def().name)) return;
    Sample like = parse_sample(text("clone x[", kRows, ",", kLength, "]"));
    const Tensor x = make_arguments(engine, like, subject.dtypes[0]).tensors[0];
    const std::optional<Values> args = along_rows(subject.def(), x);
    if (!session.expect(args.has_value(), subject.name + ": its operator says what a row is",
                        "there is no `rows` in its traits",
                        "take TENON_KERNEL_ROWS off the kernel"))
      return;
    const Answer whole = engine.call(subject.op, *args);
    for (int64_t count : {1, 2, 5}) {
      session.step(text(subject.name, " of ", count, " rows"));
      const Tensor some = engine.view(x, x->dtype, {count, kLength}, {kLength, 1}, kLength);
      const Answer part = engine.call(subject.op, *along_rows(subject.def(), some));
      for (size_t i = 0; whole.ok() && part.ok() && i < whole.outs.size(); ++i) {
        const std::string all = bytes_of(engine, whole.outs[i]),
                          found = bytes_of(engine, part.outs[i]);
        if (!session.expect(
                all.compare(all.size() / kRows, found.size(), found) == 0,
                text(subject.name, ": ", count, " rows have the bits that they have among others"),
                "other bits", "take TENON_KERNEL_ROWS off the kernel"))
          return;
      }
    }
  });
}

// What IEEE 754 says of an operator's expression; false: it is another operator.
template <class T>
bool ieee_result(std::string_view op, T x, T y, T& out) {
  auto greater = [](T a, T b) { return a != a ? a : a > b ? a : b; };
  if (op == "add") return out = x + y, true;
  if (op == "subtract") return out = x - y, true;
  if (op == "multiply") return out = x * y, true;
  if (op == "divide") return out = x / y, true;
  if (op == "maximum") return out = greater(x, y), true;
  if (op == "minimum") return out = x != x ? x : x < y ? x : y, true;
  if (op == "negative") return out = -x, true;
  if (op == "abs") return out = std::abs(x), true;
  if (op == "square") return out = x * x, true;
  if (op == "sqrt") return out = std::sqrt(x), true;
  if (op == "reciprocal") return out = 1 / x, true;
  if (op == "relu") return out = greater(x, 0), true;
  return false;
}

template <class T>
void compare_ieee(Engine& engine, const Subject& subject, int32_t dtype) {
  using Limits = std::numeric_limits<T>;
  const T special[] = {0,
                       -T(0),
                       1,
                       T(-1) / 3,
                       T(0.1),
                       3000,
                       Limits::max(),
                       Limits::lowest(),
                       Limits::min(),
                       -Limits::min(),
                       Limits::infinity(),
                       -Limits::infinity(),
                       Limits::quiet_NaN()};
  std::vector<T> x, y;
  for (T a : special)
    for (T b : special) x.push_back(a), y.push_back(b);
  auto tensor_of = [&](const std::vector<T>& values) {
    const Tensor made = engine.create(engine.cpu(), dtype, {static_cast<int64_t>(values.size())});
    std::memcpy(made->data, values.data(), values.size() * sizeof(T));
    return engine.on(engine.device(), made);
  };
  const Tensor left = tensor_of(x), right = tensor_of(y);
  Values args = {boxed(left.get())};
  if (subject.def().nparams == 2) args.push_back(boxed(right.get()));
  const Answer answer = engine.call(subject.op, args);
  if (!answer.ok()) return;
  const std::string bytes = bytes_of(engine, answer.outs[0]);
  for (size_t i = 0; i < x.size(); ++i) {
    T want = 0, got = 0;
    std::memcpy(&got, bytes.data() + i * sizeof got, sizeof got);
    ieee_result(short_name(subject.op), x[i], y[i], want);
    const bool is_same = (want != want && got != got) || std::memcmp(&want, &got, sizeof got) == 0;
    if (!engine.session().expect(
            is_same, text(subject.name, " of ", x[i], " and ", y[i], " is ", want),
            text(got, " in ", dtype_name(dtype)), "take TENON_KERNEL_IEEE off the kernel"))
      return;
  }
}

// TENON_KERNEL_IEEE: one rounding for each operation.
void ieee(Session& session) {
  Engine engine(session);
  std::set<std::string> flagged;
  {
    Plugin plugin(session);
    for (const tenon_kernel_def& kernel : kernels_of(*plugin.table()))
      if (kernel.traits & TENON_KERNEL_IEEE) flagged.insert(kernel.op);
  }
  if (flagged.empty()) session.absent("no kernel claims TENON_KERNEL_IEEE");
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    float out = 0;
    if (!flagged.count(subject.def().name)) return;
    if (!ieee_result(short_name(subject.op), 1.0f, 1.0f, out))
      return session.note(subject.name +
                          " claims TENON_KERNEL_IEEE, and this check does not know it");
    session.step(subject.name);
    for (int32_t dtype : subject.dtypes) {
      if (dtype == TENON_DTYPE_F32) compare_ieee<float>(engine, subject, dtype);
      if (dtype == TENON_DTYPE_F64) compare_ieee<double>(engine, subject, dtype);
    }
  });
}

// Each kernel in both of its forms.
void typed(Session& session) {
  Plugin plugin(session);
  if (kernels_of(*plugin.table()).empty()) session.absent("the plugin has no kernels of its own");
  ShimmedPlugin shimmed(session, *plugin.table());
  Engine engine(session, shimmed.table());
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    for_each_sample(
        engine, subject, [&](const Sample& sample, Arguments& made, const Answer& want) {
          set_kernel_form(KernelForm::kBoxed);
          Answer boxed = call_afresh(engine, sample, made, want);
          set_kernel_form(KernelForm::kTyped);
          Answer typed = call_afresh(engine, sample, made, want);
          if (boxed.left_device()) return;
          if (!session.expect(boxed.status == typed.status,
                              sample.text + ": one code from both forms",
                              text("boxed ", boxed.status, ": ", boxed.error, "; typed ",
                                   typed.status, ": ", typed.error)))
            return;
          for (size_t i = 0; boxed.ok() && i < boxed.outs.size(); ++i) {
            std::string problem =
                difference(engine, engine.on(engine.cpu(), boxed.outs[i]), typed.outs[i]);
            session.expect(problem.empty(), sample.text + ": one answer from both forms",
                           "boxed and typed differ: " + problem,
                           "let the boxed form unpack and call the typed one: TENON_BOX_<op>");
          }
        });
  });
  engine.conclude();
  for (const std::string& name : shimmed.never_called())
    session.note("the kernel for " + name + " was never called");
}

std::string join(const std::vector<std::string>& names, size_t limit) {
  std::string all;
  for (size_t i = 0; i < names.size() && i < limit; ++i) all += (i ? ", " : "") + names[i];
  return names.size() > limit ? all + ", ..." : all;
}

constexpr int32_t kEveryday[] = {TENON_DTYPE_F32, TENON_DTYPE_I64, TENON_DTYPE_BOOL};

// Does the operator stay on the device for this dtype? Asked by calling it.
bool stays(Engine& engine, const tenon_op* op, int32_t dtype) {
  for (const Sample& sample : samples_of(op, SampleKind::kGeneral)) {
    Arguments made = make_arguments(engine, sample, dtype);
    if (!engine.call(sample.op, made.cpu).ok()) continue;
    engine.session().step(text(sample.text, ", ", dtype_name(dtype)));
    if (engine.call(sample.op, made.device).left_device()) return false;
  }
  return true;
}

// Factorizations of matrices have no decomposition, so primitives alone cannot keep them on the
// device.
bool needs_own_kernel(const tenon_op_def& def) {
  return !def.decompose && !def.decompose_self && !(def.flags & TENON_OP_PRIMITIVE);
}

void coverage(Session& session) {
  Engine engine(session);
  subjects(engine);  // absent without kernels
  const tenon_host* host = real_host();
  int counts[3] = {};
  std::vector<std::string> left, without_kernel, unsampled;
  for (uint32_t id = 0; id < host->op_count(); ++id) {
    const tenon_op* op = host->op_at(id);
    if (!op || !host->op_def(op)) continue;
    const tenon_op_def& def = *host->op_def(op);
    if (def.flags & (TENON_OP_VIEW | TENON_OP_LIST_OUTPUT) || def.flags & TENON_OP_INTERNAL)
      continue;
    std::string name = short_name(op);
    if (name == "to_device" || !session.begin(name)) continue;
    if (!(def.flags & TENON_OP_RANDOM) && samples_of(op, SampleKind::kGeneral).empty())
      unsampled.push_back(name);
    for (int32_t dtype : kEveryday) {
      if (def.dtype_mask && !in_mask(def.dtype_mask, dtype)) continue;
      std::string route = engine.route(op, dtype);
      bool is_host = route == "host" || route == "none" || !stays(engine, op, dtype);
      ++counts[is_host ? 2 : route == "lowered"];
      if (is_host)
        (needs_own_kernel(def) ? without_kernel : left).push_back(name + " " + dtype_name(dtype));
    }
  }
  session.begin("");
  session.figure("operators native", counts[0], "");
  session.figure("operators lowered", counts[1], "");
  session.figure("operators on the host", counts[2], "");
  if (!unsampled.empty())
    session.note("operators that the kit has no samples of: " + join(unsampled, unsampled.size()));
  if (!without_kernel.empty())
    session.note(
        "operators without a decomposition, which need a kernel of the device's own or run on the "
        "host: " +
        join(without_kernel, without_kernel.size()));
  if (!left.empty())  // no fault: what the device leaves to the host keeps it from a level
    session.absent(text(left.size(), " run on the host: ", join(left, 12),
                        "; provide the primitives (tenon/primitives.h), or the group `compile`"));
}

void breadth(Session& session) {
  Engine engine(session);
  subjects(engine);
  for (const char* name : {"add", "multiply", "maximum", "sum", "matmul", "cast", "clone"}) {
    const tenon_op* op = real_host()->op_find(name);
    if (!op) continue;
    if (!stays(engine, op, TENON_DTYPE_F16) && !stays(engine, op, TENON_DTYPE_BF16))
      session.absent(text(name, " needs the host for float16 and for bfloat16"));
    for (int32_t dtype : {TENON_DTYPE_I32, TENON_DTYPE_I64})
      if (!stays(engine, op, dtype))
        session.absent(text(name, " needs the host for ", dtype_name(dtype)));
  }
}

}  // namespace

const Checks& operator_checks() {
  static const char kNeeds[] =
      "lifecycle.sync memory.copy_grid memory.copy_d2d memory.fill_grid async.null_stream";
  static const char kSection[] = "abi.h section 6, tenon_kernel_def";
  static const Checks checks = {
      {"ops.inputs_kept", "Kernels leave their inputs alone.", "abi.h section 4", "", kNeeds,
       inputs_kept},
      {"ops.bounds", "Kernels write within their outputs.", "abi.h section 4", "", kNeeds, bounds},
      {"ops.repeat", "The same call gives the same bits.", "abi.h section 6, TENON_KERNEL_", "",
       kNeeds, repeat},
      {"ops.rows", "A row of a result has the same bits among fewer rows.",
       "abi.h section 6, TENON_KERNEL_ROWS", "", kNeeds, rows},
      {"ops.typed", "The boxed and the typed form of a kernel do the same.", kSection, "", kNeeds,
       typed},
      {"ops.values", "Results are the CPU's.", kSection,
       "look at the last element, at odd sizes, and at the order of arguments", kNeeds, values},
      {"ops.zero_dim", "Scalars are tensors, too.", "abi.h section 4",
       "ndim may be 0: numel is then 1", kNeeds, zero_dim},
      {"ops.empty", "Tensors without elements work.", "abi.h section 4",
       "data may be NULL if numel is 0; a reduction over nothing gives its neutral element", kNeeds,
       empty},
      {"ops.nan", "NaN and infinity go the way of IEEE 754.", kSection,
       "maximum, minimum, max and min pass NaN on; compile without fast-math", kNeeds, nan},
      {"ops.ieee", "Arithmetic is IEEE 754's, where a kernel says so.",
       "abi.h section 6, TENON_KERNEL_IEEE", "", kNeeds, ieee},
      {"ops.special",
       "Ties, tails, subnormal numbers and zeros of both signs go the way of IEEE 754.", kSection,
       "round to even, keep the sign of zero and subnormal numbers, and look at what the function "
       "does far from 0; compile without fast-math",
       kNeeds, special},
      {"ops.large", "Results are right up to 2^24 elements and one more.", kSection,
       "look at counters of 16 and 24 bits, at the number of work groups, and at the last block",
       kNeeds, large},
      {"ops.strided", "Layouts do not matter.", "abi.h section 6, TENON_KERNEL_STRIDED",
       "read strides, which count elements and may be negative, or do not claim STRIDED", kNeeds,
       strided},
      {"ops.broadcast", "Broadcasting works.", "abi.h section 6, TENON_KERNEL_BROADCAST",
       "align shapes at their ends and take stride 0 where an axis is 1, or do not claim BROADCAST",
       kNeeds, broadcast},
      {"ops.dtypes", "Results are right in every dtype that is claimed.",
       "abi.h section 6, dtype_mask", "compute in the dtype itself; claim no others", kNeeds,
       dtypes},
      {"ops.lowered", "Operators that are made of others are right, too.",
       "abi.h section 6, tenon_op_def.decompose", "a primitive that they use is wrong", kNeeds,
       lowered},
      {"ops.coverage",
       "No operator of float32, int64 or bool that has a decomposition needs the host.",
       "abi.h section 6, Tenon's primitives", "", kNeeds, coverage},
      {"ops.breadth", "A 16-bit floating dtype and int32 are there.", "abi.h section 6, dtype_mask",
       "", kNeeds, breadth},
  };
  return checks;
}

}  // namespace tenon::kit
