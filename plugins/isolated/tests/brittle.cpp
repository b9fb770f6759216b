// SPDX-License-Identifier: Apache-2.0
// A device that breaks when it is told to: its `negative` does what the first element says. Its
// memory is ordinary memory, its matrix of abilities small: what it lacks is lowered, or left to
// the host.
#include <signal.h>
#include <unistd.h>
#include <tenon/plugin.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

namespace {

enum Order {
  kCrash = 1001,
  kHang = 1002,
  kExit = 1003,
  kThrow = 1004,
  kFail = 1005,
  kSlow = 1006,
  kScribble = 1007
};

// A sanitizer that handles the signal otherwise does not.
void die() {
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

// Fills what it shares with the program with noise, for ever.
void scribble() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:tenon-isolated") == line.npos) continue;
    unsigned long begin = 0, end = 0;
    sscanf(line.c_str(), "%lx-%lx", &begin, &end);
    for (uint64_t noise = 1;;)
      for (auto* word = reinterpret_cast<volatile uint64_t*>(begin);
           word < reinterpret_cast<volatile uint64_t*>(end); ++word)
        *word = noise = noise * 6364136223846793005u + 1442695040888963407u;
  }
}

tenon_device_s* const kHandle = reinterpret_cast<tenon_device_s*>(16);

tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count, tenon_err* err) {
  const char* order = getenv("BRITTLE_LOAD");
  if (order && !strcmp(order, "crash")) die();
  if (order && !strcmp(order, "refuse"))
    return tenon::fail(err, TENON_UNAVAILABLE, "brittle: no driver here");
  if (capacity > 0)
    out[0] = {.struct_size = sizeof out[0], .name = "Brittle", .dl_device_type = 12};
  *count = 1;
  return TENON_OK;
}

tenon_status open(uint32_t, tenon_device* out, tenon_err*) {
  *out = kHandle;
  return TENON_OK;
}
void close(tenon_device) {}

tenon_status alloc(tenon_device, const tenon_alloc_request* request, void** out, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(tenon::host, request, 0, err);
  *out =
      aligned_alloc(request->align, (request->bytes + request->align - 1) & ~(request->align - 1));
  return *out ? TENON_OK : tenon::fail(err, TENON_OUT_OF_MEMORY, "brittle: out of memory");
}
void release(tenon_device, void* memory, uint64_t, tenon_stream) { free(memory); }

tenon_status copy(tenon_device, const tenon_copy_request* request, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(tenon::host, request, 0, err);
  memmove(request->dst, request->src, request->bytes);
  return TENON_OK;
}

tenon_status fill(tenon_device, void* dst, uint64_t offset, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, tenon_stream, tenon_err*) {
  for (uint64_t done = 0; done < bytes; done += pattern_bytes)
    memcpy(static_cast<char*>(dst) + offset + done, pattern, pattern_bytes);
  return TENON_OK;
}

tenon_status sync(tenon_device, tenon_stream, tenon_err*) { return TENON_OK; }

constexpr tenon_device_api kDevice = {
    .struct_size = sizeof kDevice,
    .kind = "brittle",
    .enumerate = enumerate,
    .open = open,
    .close = close,
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .fill = fill,
    .sync = sync,
};

tenon_status negative(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                      tenon_err* err) {
  auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  auto* out = static_cast<tenon_tensor*>(outs[0].v.p);
  auto* from = static_cast<const float*>(x->data);
  auto* to = static_cast<float*>(out->data);
  switch (x->numel > 0 ? static_cast<int>(from[0]) : 0) {
    case kCrash:
      die();
      break;
    case kScribble:
      std::thread(scribble).detach();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      break;
    case kHang:
      std::this_thread::sleep_for(std::chrono::hours(1));
      break;
    case kExit:
      _exit(3);
    case kThrow:
      throw 1;
    case kFail:
      return tenon::fail(err, TENON_OUT_OF_RANGE, "brittle: no such thing");
    case kSlow:
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      break;
    default:
      break;
  }
  for (int64_t i = 0; i < x->numel; ++i) to[i] = -from[i];
  return TENON_OK;
}

// Positions of what is not zero, for vectors only.
int32_t is_vector(const tenon_value* args, uint32_t) {
  return static_cast<const tenon_tensor*>(args[0].v.p)->ndim == 1;
}
tenon_status nonzero(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value*, uint32_t,
                     tenon_err* err) {
  auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  auto* from = static_cast<const float*>(x->data);
  int64_t shape[2] = {0, 1};
  for (int64_t i = 0; i < x->numel; ++i) shape[0] += from[i] != 0;
  tenon_tensor* out = nullptr;
  const tenon_status status =
      tenon::host->output_alloc(ctx, 0, TENON_DTYPE_I64, 2, shape, &out, err);
  if (status != TENON_OK) return status;
  auto* to = static_cast<int64_t*>(out->data);
  for (int64_t i = 0; i < x->numel; ++i)
    if (from[i] != 0) *to++ = i;
  return TENON_OK;
}

// Not random at all: the counter that the call was given, for each element the next one.
tenon_status uniform(tenon_ctx* ctx, const tenon_value*, uint32_t, tenon_value* outs, uint32_t,
                     tenon_err*) {
  auto* out = static_cast<tenon_tensor*>(outs[0].v.p);
  uint64_t seed, offset;
  tenon::host->random_reserve(ctx, static_cast<uint64_t>(out->numel), &seed, &offset);
  for (int64_t i = 0; i < out->numel; ++i)
    static_cast<float*>(out->data)[i] =
        static_cast<float>(seed % 1000 * 1000 + offset + static_cast<uint64_t>(i));
  return TENON_OK;
}

constexpr tenon_kernel_def kernel(const char* op, tenon_boxed_fn boxed,
                                  int32_t (*can_run)(const tenon_value*, uint32_t) = nullptr) {
  return {.struct_size = sizeof(tenon_kernel_def),
          .op = op,
          .dtype_mask = 1u << TENON_DTYPE_F32,
          .boxed = boxed,
          .can_run = can_run};
}
constexpr tenon_kernel_def kKernels[] = {
    kernel("tenon::negative", negative),
    kernel("tenon::nonzero", nonzero, is_vector),
    kernel("tenon::uniform", uniform),
};

tenon_status stop(tenon_err*) { return TENON_OK; }

constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof kPlugin,
    .revision = TENON_ABI_REVISION,
    .name = "brittle",
    .version = "0.9.0",
    .vendor = "Tenon",
    .device = &kDevice,
    .kernels = kKernels,
    .nkernels = 3,
    .kernel_size = sizeof(tenon_kernel_def),
    .stop = stop,
};

}  // namespace

TENON_PLUGIN(kPlugin)
