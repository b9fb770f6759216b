// SPDX-License-Identifier: Apache-2.0
#include "operators/stream_work.hpp"

#include <algorithm>
#include <cstring>

#include "subject/process.hpp"

namespace tenon::kit {
namespace {

constexpr int64_t kBusyBytes = 4 << 20;
constexpr double kBusySeconds = 0.005;
constexpr int kMinCopies = 4, kMaxCopies = 300;

}  // namespace

HostStream::HostStream(tenon_device_id device) : device_(device) {
  if (host->stream_create(device, 0, &stream_, nullptr) == TENON_OK)
    before_ = host->stream_set_current(device, stream_);
}
HostStream::~HostStream() {
  if (!stream_) return;
  host->stream_sync(device_, stream_, nullptr);
  host->stream_set_current(device_, before_);
  host->stream_destroy(device_, stream_);
}

OnStream::OnStream(Engine& engine, tenon_stream stream)
    : device_(engine.device()), before_(host->stream_set_current(device_, stream)) {}
OnStream::~OnStream() { host->stream_set_current(device_, before_); }

BusyWork::BusyWork(Engine& engine)
    : engine_(engine),
      from_(filled(engine, TENON_DTYPE_U8, {kBusyBytes}, 0)),
      to_(filled(engine, TENON_DTYPE_U8, {kBusyBytes}, 0)) {
  sync(engine, nullptr);
  const double start = now();
  for (int i = 0; i < kMinCopies; ++i) engine.copy(to_, from_);
  sync(engine, nullptr);
  const double wanted = kMinCopies * kBusySeconds / std::max(now() - start, 1e-6);
  copies_ = static_cast<int>(std::clamp(wanted, double{kMinCopies}, double{kMaxCopies}));
}

void BusyWork::queue() {
  for (int i = 0; i < copies_; ++i) engine_.copy(to_, from_);
}

void sync(Engine& engine, tenon_stream stream) {
  Error error;
  const tenon_status status = stream ? host->stream_sync(engine.device(), stream, error)
                                     : host->device_sync(engine.device(), error);
  engine.session().require(status == TENON_OK, "the work ends well", describe(status, error));
}

Tensor filled(Engine& engine, int32_t dtype, const std::vector<int64_t>& shape,
              unsigned char byte) {
  Tensor made = engine.create(engine.cpu(), dtype, shape);
  std::memset(made->data, byte, static_cast<size_t>(made->numel) * host->dtype_size(dtype));
  return engine.on(engine.device(), made);
}

Tensors copies_of(Engine& engine, const Tensors& tensors) {
  Tensors copies;
  for (const Tensor& tensor : tensors) copies.push_back(engine.on(engine.device(), tensor));
  return copies;
}

void copy_all(Engine& engine, const Tensors& to, const Tensors& from) {
  for (size_t i = 0; i < to.size(); ++i) engine.copy(to[i], from[i]);
}

}  // namespace tenon::kit
