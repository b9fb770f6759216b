// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tenon/error.hpp>
#include <thread>

#include "support.hpp"

namespace tenon::collectives::test {
namespace {

uint32_t dtype_size(int32_t dtype) {
  constexpr uint32_t kSizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8};  // bool, and integers up to 64 bits
  if (dtype <= TENON_DTYPE_I64) return kSizes[dtype];
  return dtype == TENON_DTYPE_BF16 || dtype == TENON_DTYPE_F16 ? 2
         : dtype == TENON_DTYPE_F32                            ? 4
                                                               : 8;
}
const char* dtype_name(int32_t dtype) {
  return dtype == TENON_DTYPE_F32 ? "float32" : dtype == TENON_DTYPE_I64 ? "int64" : "other";
}

}  // namespace

std::vector<std::string> run_ranks(int32_t size, const RankWork& work, uint64_t timeout) {
  LocalStore store;
  std::vector<std::string> texts(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const auto group = join(store, rank, size, timeout);
        work(*group);
      } catch (const std::exception& error) {
        texts[static_cast<size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return texts;
}

}  // namespace tenon::collectives::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  static tenon_host host = {};
  host.dtype_size = tenon::collectives::test::dtype_size;
  host.dtype_name = tenon::collectives::test::dtype_name;
  tenon::attach(&host);
  return RUN_ALL_TESTS();
}
