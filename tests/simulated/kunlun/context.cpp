// SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <set>

#include "../failures.hpp"
#include "runtime.hpp"
#include "xdnn.hpp"

namespace baidu::xpu::api {
namespace {

std::mutex mutex;
std::set<Context*> alive;

bool is_alive(Context* ctx) {
  const std::lock_guard lock(mutex);
  return alive.count(ctx) != 0;
}

struct Work {
  std::vector<Range> ranges;
  std::function<void(char* const*)> run;
};

constexpr int kKernelFailed = -714;  // XPUERR_KEXCEPTION

}  // namespace

XDNN_EXPORT Context* create_context() {
  if (simulated::count_call("create_context")) return nullptr;
  auto* ctx = new Context{simulated_xpu_current_device()};
  const std::lock_guard lock(mutex);
  alive.insert(ctx);
  return ctx;
}

XDNN_EXPORT void destroy_context(Context* ctx) {
  const std::lock_guard lock(mutex);
  if (alive.erase(ctx)) delete ctx;
}

int64_t numel(const Shape& shape) {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  return n;
}

bool is_shape(const Shape& shape) {
  for (int64_t extent : shape)
    if (extent < 1) return false;
  return !shape.empty();
}

int queue(Context* ctx, const char* name, std::vector<Range> ranges,
          std::function<void(char* const*)> work) {
  if (const int error = simulated::count_call(name)) return error;
  if (!is_alive(ctx) || ctx->device != simulated_xpu_current_device()) return kInvalidParameter;
  for (const Range& one : ranges)
    if (one.bytes <= 0 || !simulated_xpu_translate(one.address, static_cast<size_t>(one.bytes)))
      return kInvalidParameter;
  simulated_xpu_queue(
      [](void* user) {
        auto* work = static_cast<Work*>(user);
        if (const int error = simulated::count_call("kernel")) return error;
        std::vector<char*> bytes;
        for (const Range& one : work->ranges) {
          bytes.push_back(static_cast<char*>(
              simulated_xpu_translate(one.address, static_cast<size_t>(one.bytes))));
          if (!bytes.back()) return kKernelFailed;  // freed before its time
        }
        work->run(bytes.data());
        return 0;
      },
      [](void* user) { delete static_cast<Work*>(user); },
      new Work{std::move(ranges), std::move(work)});
  return kSuccess;
}

int64_t broadcast_index(int64_t i, const Shape& from, const Shape& to) {
  int64_t index = 0, step = 1;
  for (size_t axis = to.size(); axis-- > 0; i /= to[axis]) {
    if (from[axis] > 1) index += i % to[axis] * step;
    step *= from[axis];
  }
  return index;
}

Shape broadcast_shape(const Shape& x, const Shape& y) {
  Shape shape;
  if (x.size() != y.size() || !is_shape(x) || !is_shape(y)) return shape;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] != y[i] && x[i] != 1 && y[i] != 1) return {};
    shape.push_back(std::max(x[i], y[i]));
  }
  return shape;
}

}  // namespace baidu::xpu::api
