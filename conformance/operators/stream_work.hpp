// SPDX-License-Identifier: Apache-2.0
// Streams of the host, and work that keeps one busy: what is queued behind it has not run yet when
// the call returns.
#pragma once

#include "operators/engine.hpp"

namespace tenon::kit {

class HostStream {  // the calling thread's, as long as the object lives
 public:
  explicit HostStream(tenon_device_id device);
  ~HostStream();
  HostStream(const HostStream&) = delete;
  tenon_stream get() const { return stream_; }
  operator tenon_stream() const { return stream_; }

 private:
  tenon_device_id device_;
  tenon_stream stream_ = nullptr, before_ = nullptr;
};

// The calling thread's stream is another one as long as the object lives.
class OnStream {
 public:
  OnStream(Engine& engine, tenon_stream stream);
  ~OnStream();
  OnStream(const OnStream&) = delete;

 private:
  tenon_device_id device_;
  tenon_stream before_;
};

// Some milliseconds of copies, on the stream that is current.
class BusyWork {
 public:
  explicit BusyWork(Engine& engine);
  void queue();

 private:
  Engine& engine_;
  Tensor from_, to_;
  int copies_ = 0;
};

void sync(Engine&, tenon_stream);  // NULL: all streams

Tensor filled(Engine&, int32_t dtype, const std::vector<int64_t>& shape, unsigned char byte);
// Copies on the device, in the order of the current stream.
Tensors copies_of(Engine&, const Tensors&);
void copy_all(Engine&, const Tensors& to, const Tensors& from);

}  // namespace tenon::kit
