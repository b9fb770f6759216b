// SPDX-License-Identifier: Apache-2.0
// What the allocator says about itself: summaries, the list of segments, the text of a failure.
#include <cstdio>
#include <map>

#include "formats/json_writer.hpp"
#include "kernel_core/memory/bytes.hpp"
#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/memory/thread_cache.hpp"

namespace tenon::core {
namespace {

constexpr const char* kStateNames[] = {"free", "used", "pending"};

// "64.0 MiB x3, 2.0 MiB": the sizes that hold the most bytes, largest first.
std::string largest_blocks(const BlockTable& used) {
  std::map<uint64_t, uint64_t, std::greater<>> counts;
  used.for_each([&](const Block& block) { ++counts[block.bytes]; });
  std::string text;
  int left = 5;
  for (auto [bytes, count] : counts) {
    if (left-- == 0) break;
    text += (text.empty() ? "" : ", ") + byte_text(bytes);
    if (count > 1) text += " x" + std::to_string(count);
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::string byte_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %s", value, kUnits[unit]);
  return text;
}

MemorySummary DeviceMemory::summary_locked() const {
  MemorySummary summary = totals_;
  summary.handed -= kept_bytes_;
  for (const auto& arena : arenas_) {
    summary.largest_free =
        std::max({summary.largest_free, arena->small.largest(), arena->large.largest()});
  }
  // Only the plugin knows what its pool holds besides: the peak is that of the moments it is asked.
  uint64_t reserved = 0, used = 0;
  tenon_err ignored;
  if (device_.pool && device_.api &&
      device_.pool->pool_usage(device_.handle, &reserved, &used, &ignored) == TENON_OK) {
    summary.reserved = std::max(summary.reserved, reserved);
    summary.peak_reserved = std::max(summary.peak_reserved, summary.reserved);
    summary.largest_free = summary.free();
  }
  return summary;
}

MemorySummary DeviceMemory::summary() {
  std::lock_guard lock(mutex_);
  return summary_locked();
}

tenon_status DeviceMemory::fail_out_of_memory(uint64_t bytes, const std::string& reason,
                                              tenon_err* err) {
  MemorySummary memory = summary_locked();
  std::string total =
      device_.info.memory_bytes ? byte_text(device_.info.memory_bytes) + " in all, " : "";
  return fail(
      err, TENON_OUT_OF_MEMORY,
      "%s is out of memory: requested %s; %sreserved %s in %llu segments, of it allocated %s "
      "in %llu blocks, waiting for other streams %s, free %s with the largest free block %s; "
      "largest blocks: %s; the plugin said: %s. Release tensors or work on smaller pieces.",
      device_.name, byte_text(bytes).c_str(), total.c_str(), byte_text(memory.reserved).c_str(),
      static_cast<unsigned long long>(memory.segments), byte_text(memory.handed).c_str(),
      static_cast<unsigned long long>(used_.size()), byte_text(memory.pending).c_str(),
      byte_text(memory.free()).c_str(), byte_text(memory.largest_free).c_str(),
      largest_blocks(used_).c_str(), reason.c_str());
}

void DeviceMemory::describe_segments(JsonWriter& json) {
  std::lock_guard lock(mutex_);
  auto hexadecimal = [](const void* address) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%zx", reinterpret_cast<uintptr_t>(address));
    return std::string(text);
  };
  for (const Segment* segment = segments_; segment; segment = segment->next)
    json.object("", [&] {
      json.string("address", hexadecimal(segment->data));
      json.number("bytes", segment->bytes);
      json.string("pool", segment->small ? "small" : "large");
      json.string("stream", hexadecimal(segment->arena->stream));
      json.array("blocks", [&] {
        uint64_t offset = 0;
        for (const Block* block = segment->first; block;
             offset += block->bytes, block = block->next)
          json.object("", [&] {
            json.number("offset", offset);
            json.number("bytes", block->bytes);
            json.string("state", kStateNames[static_cast<uint32_t>(block->state)]);
          });
      });
    });
}

}  // namespace tenon::core
