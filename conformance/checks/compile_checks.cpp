// SPDX-License-Identifier: Apache-2.0
// Kernels from source. The language is in docs/kernel_c.md.
#include <cstring>
#include <functional>

#include "checks/program.hpp"
#include "checks/work.hpp"

namespace tenon::kit {
namespace {

// Values of many sizes, in an order that shows when two are taken for one another.
constexpr const char kArguments[] = R"(
typedef struct { tk_i32 a; tk_f32 b; tk_i64 c; } triple;
TK_KERNEL void pack(tk_i64 first, TK_BUFFER(tk_i64, out), tk_i32 second, TK_BUFFER(tk_i64, in),
                    tk_f32 third, triple all, tk_i64 last, tk_i64 second_last, TK_BUFFER(tk_i64, none)) {
  TK_BIND(tk_i64, out);
  TK_BIND(tk_i64, in);
  TK_BIND(tk_i64, none);
  if (tk_global_id(0) != 0) return;
  out[0] = first;
  out[1] = second;
  out[2] = (tk_i64)third;
  out[3] = all.a;
  out[4] = (tk_i64)all.b;
  out[5] = all.c;
  out[6] = last;
  out[7] = second_last;
  out[8] = in[0];
  out[9] = none == 0 ? 1 : 0;
}
)";

void limits(Session& session) {
  Plugin plugin(session);
  const auto& api = plugin.need_group<tenon_compile_api>(TENON_GROUP_COMPILE);
  Device device(plugin);
  session.step("limits");
  tenon_compile_limits found{};
  found.struct_size = sizeof found;
  Error error;
  device.check(api.limits(device.handle(), &found, error), error, "limits");
  session.expect(found.max_group_size >= 64, "max_group_size of at least 64",
                 text(found.max_group_size));
  session.expect(found.local_bytes >= 16384, "local_bytes of at least 16384",
                 text(found.local_bytes));
  session.expect(found.subgroup_size >= 1, "subgroup_size of at least 1", "0");
  session.expect(found.compute_units >= 1, "compute_units of at least 1", "0");
  session.expect(
      found.dtype_mask & 1u << TENON_DTYPE_F32 && found.dtype_mask & 1u << TENON_DTYPE_I32,
      "float32 and int32 in dtype_mask", text(found.dtype_mask));
}

void run(Session& session) {
  Plugin plugin(session);
  plugin.need_group<tenon_compile_api>(TENON_GROUP_COMPILE);
  Device device(plugin);
  Program program(device, "kit/scale", kScale);
  constexpr int64_t kCount = 1000;
  std::vector<float> x(kCount);
  for (int64_t i = 0; i < kCount; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i) - 500;
  Buffer in = device.alloc(kCount * 4), out = device.alloc(kCount * 4);
  device.put(in, 0, x.data(), kCount * 4);
  float factor = 2.5f;
  int64_t count = kCount;
  program.launch("scale", {buffer_arg(in), buffer_arg(out), value_arg(factor), value_arg(count)}, 4,
                 1, 1, 64);
  std::vector<float> scaled = values<float>(device, out);
  for (size_t i = 0; i < x.size(); ++i)
    if (!session.expect(scaled[i] == x[i] * factor, text("element ", i, ": ", x[i] * factor),
                        text(scaled[i])))
      return;
  Buffer offsets = device.alloc(8 * 3 * 2 * 4);
  program.launch("where", {buffer_arg(offsets)}, 2, 3, 2, 4);
  std::vector<int32_t> found = values<int32_t>(device, offsets);
  for (int32_t i = 0; i < 48; ++i) {
    int32_t expected = i % 8 + 100 * (i / 8 % 3) + 10000 * (i / 24);
    if (!session.expect(found[static_cast<size_t>(i)] == expected,
                        text("work item ", i, " is in place ", expected, " of a grid of 8 x 3 x 2"),
                        text(found[static_cast<size_t>(i)])))
      return;
  }
  Buffer sums = device.alloc(5 * 4);
  program.launch("group_sum", {buffer_arg(sums)}, 5, 1, 1, 64);
  for (int32_t sum : values<int32_t>(device, sums))
    session.expect(sum == 2016, "a group shares TK_LOCAL memory behind tk_barrier(): 2016",
                   text(sum));
}

void args(Session& session) {
  Plugin plugin(session);
  plugin.need_group<tenon_compile_api>(TENON_GROUP_COMPILE);
  Device device(plugin);
  Program program(device, "kit/pack", kArguments);
  struct {
    int32_t a = 44;
    float b = 55;
    int64_t c = 66;
  } all;
  int64_t first = 11, last = 77, second_last = 88, stored = 99;
  int32_t second = -22;
  float third = 33;
  Buffer out = device.alloc(80), in = device.alloc(16);
  device.put(in, 8, &stored, 8);
  tenon_launch_arg inside = buffer_arg(in);
  if (device.is_opaque())
    inside.offset = 8;
  else
    inside.p = static_cast<const char*>(in.memory()) + 8;
  program.launch("pack",
                 {value_arg(first), buffer_arg(out), value_arg(second), inside, value_arg(third),
                  value_arg(all), value_arg(last), value_arg(second_last),
                  tenon_launch_arg{TENON_LAUNCH_BUFFER, 0, nullptr, 0}},
                 1, 1, 1, 1);
  const int64_t expected[] = {11, -22, 33, 44, 55, 66, 77, 88, 99, 1};
  const char* const names[] = {
      "the first value, int64", "the second, int32",  "the third, float32",
      "a struct's int32",       "a struct's float32", "a struct's int64",
      "the value behind it",    "the last value",     "a buffer 8 bytes into its allocation",
      "a NULL buffer"};
  std::vector<int64_t> found = values<int64_t>(device, out);
  for (size_t i = 0; i < 10; ++i)
    session.expect(found[i] == expected[i], text(names[i], ": ", expected[i]), text(found[i]),
                   "pass arguments in their order, each with its own size");
}

// A launch behind work of its stream, which reads what is queued just before it. `then`: what
// happens once the call has returned.
void launch_queued(Session& session, const std::string& wanted, const std::string& fix,
                   const std::function<void(Program&, float& factor, int64_t& count,
                                            std::vector<tenon_launch_arg>&)>& then) {
  constexpr int64_t kCount = 1000;
  Plugin plugin(session);
  plugin.need_group<tenon_compile_api>(TENON_GROUP_COMPILE);
  Device device(plugin);
  Stream stream(device);
  Work work(device);
  const std::vector<float> ones(kCount, 1), threes(kCount, 3);
  Buffer in = device.alloc(kCount * 4), right = device.alloc(kCount * 4),
         wrong = device.alloc(kCount * 4), out = device.alloc(kCount * 4);
  device.put(wrong, 0, ones.data(), wrong.bytes());
  device.put(right, 0, threes.data(), right.bytes());
  for (int round = 0; round < 3; ++round) {
    Program program(device, "kit/scale", kScale);
    float factor = 2;
    int64_t count = kCount;
    std::vector<tenon_launch_arg> args = {buffer_arg(in), buffer_arg(out), value_arg(factor),
                                          value_arg(count)};
    device.copy(in, 0, wrong, 0, in.bytes());
    device.fill(out, 0);
    session.step("kernel_launch behind work of its stream");
    work.queue(stream, 1);
    device.copy(in, 0, right, 0, in.bytes(), stream);
    program.launch("scale", args, 1, 1, 1, 64, stream);
    then(program, factor, count, args);
    device.copy(in, 0, wrong, 0, in.bytes(), stream);
    device.sync(stream);
    const std::vector<float> found = values<float>(device, out);
    for (size_t i = 0; i < found.size(); ++i)
      if (!session.expect(found[i] == 6, wanted, text("element ", i, " is ", found[i], ", not 6"),
                          fix))
        return;
  }
}

void order(Session& session) {
  launch_queued(session, "a launch runs behind what was queued before it, and before the rest",
                "queue it on request->stream", [](auto&&...) {});
}
void request(Session& session) {
  launch_queued(session, "a launch has read its request when the call returns",
                "copy values and addresses out of the request",
                [](Program&, float& factor, int64_t& count, std::vector<tenon_launch_arg>& args) {
                  factor = 100;
                  count = 1;
                  args.assign(args.size(), {TENON_LAUNCH_BUFFER, 0, nullptr, 0});
                });
}
void destroy(Session& session) {
  launch_queued(session, "a launch whose program was destroyed meanwhile ends as it would have",
                "keep what queued launches need until they have run",
                [](Program& program, auto&&...) { program.destroy(); });
}

// The same name and as many characters, and another program.
void sources(Session& session) {
  Plugin plugin(session);
  plugin.need_group<tenon_compile_api>(TENON_GROUP_COMPILE);
  Device device(plugin);
  Buffer out = device.alloc(4);
  for (int round = 0; round < 2; ++round)
    for (int32_t number : {3, 7}) {
      const std::string source = text(
          "TK_KERNEL void give(TK_BUFFER(tk_i32, out)) { TK_BIND(tk_i32, out); out[0] = ", number,
          "; }\n");
      Program program(device, "kit/give", source.c_str());
      program.launch("give", {buffer_arg(out)}, 1, 1, 1, 1);
      const int32_t got = values<int32_t>(device, out)[0];
      session.expect(got == number, text("each program is made of its own source: ", number),
                     text(got), "find compiled programs by all of their source");
    }
}

void error_text(Session& session) {
  Plugin plugin(session);
  const auto& api = plugin.need_group<tenon_compile_api>(TENON_GROUP_COMPILE);
  Device device(plugin);
  session.step("program_create of source that does not compile");
  const char source[] = "TK_KERNEL void broken(tk_i64 n) { this is no C; }\n";
  tenon_program_request request{sizeof request,      0,      0,
                                "kit/broken_source", source, sizeof source - 1};
  tenon_program program = nullptr;
  Error error;
  tenon_status status = api.program_create(device.handle(), &request, &program, error);
  session.require(status != TENON_OK, "source that is no C fails", "TENON_OK");
  session.expect(error.text().find("kit/broken_source") != std::string::npos,
                 "a message with the program's name, kit/broken_source", describe(status, error),
                 "put request->name in front of the compiler's message");
  session.expect(error.text().size() > 30, "the compiler's own message", describe(status, error));
}

void missing_kernel(Session& session) {
  Plugin plugin(session);
  plugin.need_group<tenon_compile_api>(TENON_GROUP_COMPILE);
  Device device(plugin);
  Program program(device, "kit/scale", kScale);
  session.step("program_kernel of a name that the source does not have");
  tenon_kernel kernel = nullptr;
  Error error;
  tenon_status status = program.find("no_such_kernel", &kernel, error);
  session.expect(status == TENON_NOT_FOUND, "code 5 (NOT_FOUND)", describe(status, error));
}

}  // namespace

const Checks& compile_checks() {
  static const char kBasic[] = "lifecycle.sync memory.copy_grid async.null_stream";
  static const char kNeeds[] = "lifecycle.sync memory.copy_grid compile.limits compile.run";
  static const char kQueued[] =
      "lifecycle.sync memory.copy_grid memory.copy_d2d memory.fill_grid async.order compile.limits "
      "compile.run compile.args";
  static const Checks checks = {
      {"compile.limits", "The limits are those that Tenon's kernels count on.",
       "abi.h section 5, tenon_compile_limits", "", kBasic, limits},
      {"compile.run", "Kernel C is compiled and runs.", "abi.h section 5, tenon_compile_api", "",
       kBasic, run},
      {"compile.args", "Arguments reach the kernel in their order.",
       "abi.h section 5, tenon_launch_arg", "", kNeeds, args},
      {"compile.order", "A launch keeps its place in its stream.",
       "abi.h section 5, tenon_device_api: order", "", kQueued, order},
      {"compile.request", "A launch has read its request when the call returns.",
       "abi.h section 5, kernel_launch", "", kQueued, request},
      {"compile.destroy", "A program can be destroyed while its launches are queued.",
       "abi.h section 5, program_destroy", "", kQueued, destroy},
      {"compile.sources", "Programs are told apart by their source.",
       "abi.h section 5, program_create", "", kNeeds, sources},
      {"compile.error_text", "The compiler's message reaches the caller.",
       "abi.h section 5, program_create", "", kNeeds, error_text},
      {"compile.missing_kernel", "A kernel that is not there is not found.",
       "abi.h section 5, program_kernel", "", kNeeds, missing_kernel},
  };
  return checks;
}

}  // namespace tenon::kit
