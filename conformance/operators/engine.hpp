// SPDX-License-Identifier: Apache-2.0
// Operator calls through the host, as a program makes them: on the device under test, and on the
// CPU, whose answers count as right.
#pragma once

#include <tenon/tensor.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/session.hpp"
#include "subject/plugin.hpp"

namespace tenon::kit {

class ShimmedPlugin;

// Thrown where a tensor does not fit into the device.
struct NoRoom {};

using Values = std::vector<tenon_value>;
using Tensors = std::vector<Tensor>;

// How a call went.
struct Answer {
  tenon_status status = TENON_OK;
  std::string error;
  Tensors outs;

  bool ok() const { return status == TENON_OK; }
  // The call would have left the device. Nothing falls back to the host here: that is how it shows.
  bool left_device() const { return status == TENON_PERMISSION_DENIED; }
};

class Engine {
 public:
  // Loads the standard operators, the CPU and the plugin, whose functions and kernels are watched.
  // `attached`: a table to use in place of the plugin's own. Ends the check as absent if there is
  // no device.
  explicit Engine(Session&, const tenon_plugin* attached = nullptr);

  tenon_device_id device() const { return device_; }
  tenon_device_id cpu() const { return cpu_; }
  Session& session() const { return session_; }

  Answer call(const tenon_op*, Values args, const Tensors& given = {});
  // "native", "lowered", "host", "view" or "none"
  std::string route(const tenon_op*, int32_t dtype);

  Tensor create(tenon_device_id, int32_t dtype, const std::vector<int64_t>& shape);
  Tensor view(const Tensor& base, int32_t dtype, const std::vector<int64_t>& shape,
              const std::vector<int64_t>& strides, int64_t offset);
  void copy(const Tensor& to, const Tensor& from);
  Tensor on(tenon_device_id, const Tensor&);  // a contiguous copy there
  Tensor cast(const Tensor& on_cpu, int32_t dtype);

  // A sample of the session's subject: was it called on the device, and its answer looked at?
  void tally(bool was_compared);
  // At the end of a check: one that compared nothing has found out nothing, and does not pass.
  void conclude();

 private:
  struct Tally {
    int tried = 0, compared = 0;
  };
  Session& session_;
  tenon_device_id device_ = 0, cpu_ = 0;
  const tenon_op* cast_ = nullptr;
  std::shared_ptr<ShimmedPlugin> shimmed_;
  std::map<std::string, Tally> tallies_;  // by subject
};

std::vector<int64_t> shape_of(const Tensor&);
std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape);
const char* dtype_name(int32_t dtype);
bool is_floating(int32_t dtype);  // float64, float32, and the narrower ones; not complex
bool is_complex(int32_t dtype);
bool is_integer(int32_t dtype);  // not bool
inline bool in_mask(uint64_t mask, int32_t dtype) { return mask >> dtype & 1; }

}  // namespace tenon::kit
