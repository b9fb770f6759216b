// SPDX-License-Identifier: Apache-2.0
// Times of work from the vendor's tracing library, CUPTI or roctracer: of every kernel, copy and fill, without events between
// them. The library records for the whole process; a number that is pushed before a call, and that it returns with what the
// call has done (its "external correlation id"), says which device, stream and call a record belongs to. What was done outside
// of our calls belongs to other libraries and is left out.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/abi.h>

namespace gpu {
class Profile;
}

namespace gpu::tracer {

// A call of this plugin that is profiled. Equal calls have one number.
struct Call {
  Profile* profile;
  tenon_stream stream;  // NULL: the synchronous one
  uint32_t kind;        // TENON_PROFILE_*
  const char* name;
  uint64_t bytes;

  auto operator<=>(const Call&) const = default;
};

// Whether records and the device's clock come from the tracing library: decided at the first call, for the whole process.
// The log says why not.
bool is_used();

// The rest is for when it is used.
std::string start();  // counts; the text is empty, or says why not
void stop();
bool enter(
    const Call& call);  // what this thread does until leave() belongs to the call; false: no memory
void leave();
void flush();             // waits until records of finished work have arrived
bool now(uint64_t* out);  // the clock of the records
// No record goes to the profile any more.
void forget(const Profile* profile);

// ---- called by the vendor's part, on any thread ----

enum class Kind { kKernel, kCopy, kFill };
struct Activity {
  Kind kind;
  uint64_t correlation;  // of the call of the driver that began it
  uint64_t begin_ns, end_ns;
  uint64_t bytes;    // 0: not told
  const char* name;  // of a kernel; may be nullptr
};
void add(const Activity& activity);
// The driver's call `correlation` was made inside of the call with this number.
void correlate(uint64_t correlation, uint64_t number);

}  // namespace gpu::tracer

// The vendor's part: plugins/cuda/runtime/cupti.cpp, plugins/rocm/runtime/roctracer.cpp.
namespace gpu::vendor::tracer {

std::string open();   // once. The text is empty, or says what is missing or unknown
std::string start();  // records from now on; likewise
void stop();
void push(uint64_t number);
void pop();
void flush();
uint64_t lost();  // records dropped since it was asked last
bool now(uint64_t* out);

}  // namespace gpu::vendor::tracer
