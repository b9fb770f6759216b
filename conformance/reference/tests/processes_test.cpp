// SPDX-License-Identifier: Apache-2.0
// Two processes: what one names, the other finds.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "host.hpp"

namespace reference::test {
namespace {

class Processes : public Runtime {
 protected:
  // Runs `f` in another process, which opens a device of its own; its failures are ours.
  template <class F>
  static pid_t fork_off(F f) {
    const pid_t child = fork();
    if (child != 0) return child;
    tenon_device theirs = nullptr;
    tenon_err err;
    if (kDevice.open(1, &theirs, &err) == TENON_OK) {
      f(theirs);
      kDevice.close(theirs);
    }
    _exit(testing::Test::HasFailure() || !theirs ? 1 : 0);
  }
  static void join(pid_t child) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "the other process failed: " << status;
  }
  // The mean over two ranks of `value`, seen in the last of many elements.
  static float mean_of(tenon_device on, const tenon_comm_id& id, int32_t rank, float value) {
    constexpr uint64_t kCount = 20000;
    tenon_comm comm = nullptr;
    ok([&](tenon_err* err) { return kCollective.comm_create(on, &id, rank, 2, &comm, err); });
    const tenon_alloc_request request = {.struct_size = sizeof request,
                                         .kind = TENON_ALLOC_DEVICE,
                                         .must_understand = 0,
                                         .bytes = kCount * sizeof value,
                                         .align = 64,
                                         .stream = nullptr};
    void* data = nullptr;
    ok([&](tenon_err* err) { return kDevice.alloc(on, &request, &data, err); });
    ok([&](tenon_err* err) {
      return kDevice.fill(on, data, 0, request.bytes, &value, sizeof value, nullptr, err);
    });
    ok([&](tenon_err* err) {
      return kCollective.all_reduce(on, comm, data, data, kCount, TENON_DTYPE_F32,
                                    TENON_REDUCE_MEAN, nullptr, err);
    });
    const float result = static_cast<float*>(data)[kCount - 1];
    kDevice.free(on, data, request.bytes, nullptr);
    kCollective.comm_destroy(on, comm);
    return result;
  }
};

TEST_F(Processes, MeetInACommunicator) {
  tenon_comm_id id;
  ok([&](tenon_err* err) { return kCollective.comm_id_create(device, &id, err); });
  const pid_t child =
      fork_off([&](tenon_device theirs) { EXPECT_EQ(mean_of(theirs, id, 1, 4), 3); });
  EXPECT_EQ(mean_of(device, id, 0, 2), 3);
  join(child);
}

TEST_F(Processes, ShareMemory) {
  constexpr uint64_t kCount = 3000;
  memory<float>(7, nullptr);  // so that what is shared does not begin a page
  float* shared = memory<float>(kCount, nullptr);
  fill(shared, kCount, 7.0f, nullptr);
  tenon_ipc_handle handle;
  ok([&](tenon_err* err) {
    return kIpc.ipc_export(device, shared, kCount * sizeof(float), &handle, err);
  });
  join(fork_off([&](tenon_device theirs) {
    void* seen = nullptr;
    uint64_t bytes = 0;
    ok([&](tenon_err* err) { return kIpc.ipc_open(theirs, &handle, &seen, &bytes, err); });
    EXPECT_EQ(bytes, kCount * sizeof(float));
    EXPECT_EQ(static_cast<float*>(seen)[kCount - 1], 7);
    const float nine = 9;
    ok([&](tenon_err* err) {
      return kDevice.fill(theirs, seen, 0, bytes, &nine, sizeof nine, nullptr, err);
    });
    kIpc.ipc_close(theirs, seen);
  }));
  EXPECT_EQ(shared[0], 9);
  EXPECT_EQ(shared[kCount - 1], 9);
}

TEST_F(Processes, RefuseHandlesThatNameNothing) {
  tenon_ipc_handle handle = {};
  void* out = nullptr;
  uint64_t bytes = 0;
  tenon_err err;
  EXPECT_EQ(kIpc.ipc_open(device, &handle, &out, &bytes, &err), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(err.text,
            "reference: ipc_open: expected a handle that ipc_export of this plugin has made");

  float* memory_of_ours = memory<float>(16, nullptr);
  ok([&](tenon_err* e) { return kIpc.ipc_export(device, memory_of_ours, 64, &handle, e); });
  uint64_t huge = ~uint64_t{0};
  std::memcpy(handle.bytes + 24, &huge, sizeof huge);  // its offset
  EXPECT_EQ(kIpc.ipc_open(device, &handle, &out, &bytes, &err), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(err.text, "reference: ipc_open: the handle is damaged");

  EXPECT_EQ(kIpc.ipc_export(device, memory_of_ours + 1, 4, &handle, &err), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(kIpc.ipc_export(device, memory_of_ours, 1 << 20, &handle, &err),
            TENON_INVALID_ARGUMENT);
  tenon_comm_id id = {};
  tenon_comm comm = nullptr;
  EXPECT_EQ(kCollective.comm_create(device, &id, 0, 1, &comm, &err), TENON_INVALID_ARGUMENT);
  EXPECT_NE(err.text.find("expected an id from comm_id_create"), std::string::npos) << err.text;
}

}  // namespace
}  // namespace reference::test
