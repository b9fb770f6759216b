// SPDX-License-Identifier: Apache-2.0
// What plugins/rocm declares of roctracer, beside its headers. Compiled, not run.
#include "runtime/roctracer.hpp"

#include <roctracer/ext/prof_protocol.h>
#include <roctracer/roctracer.h>
#include <roctracer/roctracer_ext.h>

#include "same_call.hpp"

namespace ours = gpu::roctracer;
using ours::Pool;
using ours::Status;

// Named, as the header has a structure of this name.
using Properties = ours::Properties;
#define CHECK_ROCTRACER(result, member, name, parameters) \
  CHECK_CALL(result, member, parameters, name)
TENON_ROCTRACER_FUNCTIONS(CHECK_ROCTRACER)

static_assert(sizeof(ours::Record) == sizeof(activity_record_t));
#define CHECK_MEMBER(structure, member, theirs, their_member) \
  static_assert(offsetof(ours::structure, member) == offsetof(theirs, their_member))
CHECK_MEMBER(Record, domain, activity_record_t, domain);
CHECK_MEMBER(Record, operation, activity_record_t, op);
CHECK_MEMBER(Record, correlation, activity_record_t, correlation_id);
CHECK_MEMBER(Record, begin_ns, activity_record_t, begin_ns);
CHECK_MEMBER(Record, end_ns, activity_record_t, end_ns);
CHECK_MEMBER(Record, device, activity_record_t, device_id);
CHECK_MEMBER(Record, external, activity_record_t, external_id);
CHECK_MEMBER(Record, bytes, activity_record_t, bytes);
CHECK_MEMBER(Record, kernel_name, activity_record_t, kernel_name);
static_assert(sizeof(ours::Properties) == sizeof(roctracer_properties_t));
CHECK_MEMBER(Properties, buffer_bytes, roctracer_properties_t, buffer_size);
CHECK_MEMBER(Properties, allocator, roctracer_properties_t, alloc_fun);
CHECK_MEMBER(Properties, completed, roctracer_properties_t, buffer_callback_fun);
CHECK_MEMBER(Properties, completed_user, roctracer_properties_t, buffer_callback_arg);
static_assert(ours::kHipOperations == ACTIVITY_DOMAIN_HIP_OPS);
static_assert(ours::kHipCalls == ACTIVITY_DOMAIN_HIP_API);
static_assert(ours::kExternal == ACTIVITY_DOMAIN_EXT_API);
static_assert(ours::kExternalId == ACTIVITY_EXT_OP_EXTERN_ID);
static_assert(ours::kMajor == ROCTRACER_VERSION_MAJOR &&
              ours::kFirstMinor <= ROCTRACER_VERSION_MINOR);
