// SPDX-License-Identifier: Apache-2.0
#include "replicas.hpp"

#include <cstdlib>
#include <cstring>

#include "operators.hpp"

namespace tenon::sharding {
namespace {

// FNV-1a. Half of the bits, so that the largest and the smallest of it can be compared as signed numbers.
class Digest {
 public:
  void add(const void* bytes, size_t count) {
    const auto* next = static_cast<const unsigned char*>(bytes);
    for (size_t i = 0; i < count; ++i) value_ = (value_ ^ next[i]) * 0x100000001b3u;
  }
  void add(int64_t number) { add(&number, sizeof number); }
  int64_t value() const { return static_cast<int64_t>(value_ >> 1); }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

// Of tensors whose memory the host does not see, dtype and shape.
int64_t digest_of(Scope& scope, tenon_tensor* tensor) {
  Digest digest;
  digest.add(tensor->dtype);
  for (int32_t i = 0; i < tensor->ndim; ++i) digest.add(tensor->shape[i]);
  if (tensor->numel == 0 || tensor->device != host->device_host()) return digest.value();
  Tensor kept = Tensor::borrow(tensor);
  if (!(tensor->flags & TENON_TENSOR_CONTIGUOUS)) kept = run(scope, op::clone, {boxed(tensor)});
  if (scope.ok())
    digest.add(kept->data, static_cast<size_t>(kept->numel) *
                               static_cast<size_t>(host->dtype_size(kept->dtype)));
  return digest.value();
}

}  // namespace

bool checks_replicas() {
  static const bool checks = [] {
    const char* word = std::getenv("TENON_CHECK_REPLICAS");
    return word && std::strcmp(word, "") != 0 && std::strcmp(word, "0") != 0;
  }();
  return checks;
}

void check_replicas(Scope& scope, const Call& call) {
  std::vector<int64_t> digests;
  std::string shapes;
  for (const Operand& operand : call.operands) {
    if (operand.view.mesh) continue;
    digests.push_back(digest_of(scope, operand.tensor));
    shapes += (shapes.empty() ? "" : " and ") + shape_text(*operand.tensor);
  }
  if (digests.empty()) return;
  check_agreement(
      scope, *call.mesh, digests,
      "[" + std::string(call.name()) +
          "] of sharded tensors: expected plain tensors beside them that are the same on all "
          "ranks, as they "
          "count as Replicate(), got different ones, of shape " +
          shapes +
          " here; make them with distribute_tensor(), or from_local() of what each rank has");
}

}  // namespace tenon::sharding
