// SPDX-License-Identifier: Apache-2.0
// The mean of the ranks: a sum, divided on the chip.
#include "collective.hpp"

namespace ascend {
namespace {

// aclnnInplaceDivs, from the page aclnnDivs&aclnnInplaceDivs.md of hicann/ops-math.
struct Division {
  int (*plan)(aclTensor*, const aclScalar*, uint64_t* bytes, aclOpExecutor**) = nullptr;
  int (*execute)(void* workspace, uint64_t bytes, aclOpExecutor*, Stream) = nullptr;
  std::string problem;
};

Division find_division() {
  Division found;
  found.problem = operators_problem();
  if (!found.problem.empty()) return found;
  found.plan = reinterpret_cast<decltype(found.plan)>(
      find_operator_function("aclnnInplaceDivsGetWorkspaceSize"));
  found.execute =
      reinterpret_cast<decltype(found.execute)>(find_operator_function("aclnnInplaceDivs"));
  if (!found.plan || !found.execute)
    found.problem = "this version of CANN lacks aclnnInplaceDivs, which a mean needs";
  return found;
}

const Division& division() {
  static const Division found = find_division();
  return found;
}

// The workspace of the call before is used until `last`, so that only growth has to wait for it.
tenon_status grow(tenon_comm comm, uint64_t bytes, tenon_err* err) {
  if (bytes <= comm->workspace_bytes) return TENON_OK;
  if (comm->workspace) {
    if (const int error = acl.aclrtSynchronizeEvent(comm->last))
      return fail_acl(err, "aclrtSynchronizeEvent", error);
    acl.aclrtFree(comm->workspace);
    comm->workspace = nullptr;
    comm->workspace_bytes = 0;
  }
  if (const int error = acl.aclrtMalloc(&comm->workspace, bytes, kHugeFirst))
    return fail_acl(err, "aclrtMalloc", error);
  comm->workspace_bytes = bytes;
  return TENON_OK;
}

}  // namespace

const std::string& mean_problem() { return division().problem; }

tenon_status divide(tenon_comm comm, void* memory, uint64_t count, int dtype, Stream stream,
                    tenon_err* err) {
  const auto extent = static_cast<int64_t>(count);
  const int64_t step = 1;
  int64_t ranks = comm->size;  // an integer, so that the dtype of the sum stays
  aclTensor* const sum =
      acl.aclCreateTensor(&extent, 1, acl_dtype(dtype), &step, 0, kFormatNd, &extent, 1, memory);
  aclScalar* const divisor = acl.aclCreateScalar(&ranks, acl_dtype(TENON_DTYPE_I64));
  tenon_status status = TENON_OK;
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  int error = division().plan(sum, divisor, &bytes, &executor);
  if (error) status = fail_acl(err, "aclnnInplaceDivsGetWorkspaceSize", error);
  if (!status) status = grow(comm, bytes, err);
  if (!status) error = division().execute(comm->workspace, bytes, executor, stream);
  if (!status && error) status = fail_acl(err, "aclnnInplaceDivs", error);
  if (sum) acl.aclDestroyTensor(sum);
  if (divisor) acl.aclDestroyScalar(divisor);
  return status;
}

}  // namespace ascend
