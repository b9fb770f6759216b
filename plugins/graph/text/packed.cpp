// SPDX-License-Identifier: Apache-2.0
#include "text/packed.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <string_view>
#include <tuple>

#include "support/host.hpp"

namespace tenon::graph {
namespace {

constexpr std::string_view kFirstLine = "tenon.packed 1";

// Whether executables can have packed it, and compare its address.
bool is_packable(const Leaf& leaf) {
  const tenon_tensor* tensor = leaf.tensor.get();
  return tensor && tensor->device == host->device_host() && tensor->dtype == TENON_DTYPE_F32 &&
         tensor->flags & TENON_TENSOR_CONTIGUOUS && tensor->numel > 0;
}

uint64_t bytes_of(const Leaf& leaf) {
  return static_cast<uint64_t>(leaf.tensor->numel) * sizeof(float);
}

// Reads bytes of a leaf: offset, memory and size. False: it cannot.
using Reader = std::function<bool(uint64_t, void*, uint64_t)>;

// A sum of the size and of some pieces: another tensor in the place of a weight has another one, and few
// pages are read for it.
bool add_samples(uint64_t& sum, uint64_t bytes, const Reader& read) {
  constexpr uint64_t kSamples = 8, kPiece = 64;
  const auto add = [&](uint64_t word) {
    sum = (sum ^ word) * 0x100000001b3u;
    sum ^= sum >> 32;
  };
  add(bytes);
  for (uint64_t i = 0; i < kSamples; ++i) {
    uint64_t piece[kPiece / sizeof(uint64_t)] = {};
    const uint64_t some = std::min(kPiece, bytes);
    const uint64_t offset = (bytes - some) / (kSamples - 1) * i / sizeof(float) * sizeof(float);
    if (!read(std::min(offset, bytes - some), piece, some)) return false;
    for (const uint64_t word : piece) add(word);
    if (some == bytes) break;
  }
  return true;
}

std::string hexadecimal(uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

// "" where a leaf cannot be read.
std::string sum_of(const Program& program, size_t leaf, size_t second,
                   const std::function<Reader(size_t)>& reader) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (const size_t each : {leaf, second}) {
    if (each == kNoLeaf) continue;
    if (!add_samples(sum, bytes_of(program.graph.leaves[each]), reader(each))) return "";
  }
  return hexadecimal(sum);
}

std::optional<size_t> leaf_at(const Program& program, const void* data, uint32_t version) {
  const auto& leaves = program.graph.leaves;
  for (size_t i = 0; i < leaves.size(); ++i)
    if (is_packable(leaves[i]) && leaves[i].tensor->data == data &&
        host->tensor_version(leaves[i].tensor.get()) == version)
      return i;
  return std::nullopt;
}

[[noreturn]] void refuse(size_t line, const std::string& problem) {
  throw Error(TENON_INVALID_ARGUMENT,
              "its packed weights, line " + std::to_string(line) + ": " + problem);
}

// The next word of a line, which it loses.
std::string_view next_word(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

size_t leaf_index(std::string_view word, const Program& program, size_t line) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  const auto& leaves = program.graph.leaves;
  if (error != std::errc() || end != word.data() + word.size() || index >= leaves.size())
    refuse(line, "expected the index of a leaf, below " + std::to_string(leaves.size()) +
                     ", got '" + std::string(word.substr(0, 20)) + "'");
  return index;
}

std::vector<PackedLeaf> parse_packed(std::string_view text, const Program& program) {
  std::vector<PackedLeaf> list;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (number == 1) {
      if (line != kFirstLine)
        refuse(number, "expected '" + std::string(kFirstLine) + "', got '" +
                           std::string(line.substr(0, 20)) +
                           "'; a newer Tenon wrote it: make it anew with save_optimized()");
      continue;
    }
    PackedLeaf packed = {};
    packed.leaf = leaf_index(next_word(line), program, number);
    const std::string_view second = next_word(line);
    packed.second = second == "-" ? kNoLeaf : leaf_index(second, program, number);
    packed.sum = next_word(line);
    packed.form = line;
    if (packed.form.empty()) refuse(number, "expected two leaves, a sum and a form");
    list.push_back(std::move(packed));
  }
  return list;
}

}  // namespace

std::vector<PackedLeaf> packed_leaves(const Program& program) {
  struct Found {
    const Program& program;
    std::vector<PackedLeaf> list;
    bool lacks_memory = false;
  } found{program, {}};
  if (!packed_constants()) return {};
  packed_constants()->each(
      [](void* user, const tenon_packed_constant* each) {
        auto& [of, list, lacks_memory] = *static_cast<Found*>(user);
        const auto leaf = leaf_at(of, each->source, each->source_version);
        const auto second =
            each->second ? leaf_at(of, each->second, each->second_version) : kNoLeaf;
        if (!leaf || !second) return;
        const auto* data = static_cast<const char*>(each->data);
        try {
          list.push_back({*leaf, *second, "", each->form, {data, data + each->bytes}});
        } catch (const std::bad_alloc&) {  // No exception passes through a plugin.
          lacks_memory = true;
        }
      },
      &found);
  if (found.lacks_memory) throw std::bad_alloc();
  // In an order that is the same in each process.
  std::sort(found.list.begin(), found.list.end(), [](const PackedLeaf& a, const PackedLeaf& b) {
    return std::tie(a.leaf, a.second, a.form) < std::tie(b.leaf, b.second, b.form);
  });
  for (PackedLeaf& packed : found.list)
    packed.sum = sum_of(program, packed.leaf, packed.second, [&](size_t leaf) -> Reader {
      return [data = static_cast<const char*>(program.graph.leaves[leaf].tensor->data)](
                 uint64_t offset, void* to, uint64_t bytes) {
        std::memcpy(to, data + offset, bytes);
        return true;
      };
    });
  return std::move(found.list);
}

std::string packed_text(const std::vector<PackedLeaf>& list) {
  std::string text(kFirstLine);
  for (const PackedLeaf& packed : list)
    text += "\n" + std::to_string(packed.leaf) + " " +
            (packed.second == kNoLeaf ? "-" : std::to_string(packed.second)) + " " + packed.sum +
            " " + packed.form;
  return text;
}

void give_packed(const SharedMapping& file, const SafetensorsHeader& header, uint64_t begin,
                 const Program& program) {
  const auto text = header.metadata.find(kPackedKey);
  if (text == header.metadata.end()) return;
  const std::vector<PackedLeaf> list = parse_packed(text->second, program);
  const auto& leaves = program.graph.leaves;
  const auto offset_of = [&](size_t leaf) {  // In the file; 0: it lies elsewhere.
    const char* data = static_cast<const char*>(leaves[leaf].tensor->data);
    const bool is_mapped = data >= file->data() && data < file->data() + file->size();
    return is_mapped ? static_cast<uint64_t>(data - file->data()) : 0;
  };
  size_t others = 0;
  uint64_t first = file->size(), last = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const PackedLeaf& packed = list[i];
    const std::string name = "packed." + std::to_string(i);
    const auto stored = header.tensors.find(name);
    if (stored == header.tensors.end()) refuse(i + 2, "expected a tensor '" + name + "', got none");
    const StoredTensor& tensor = stored->second;
    if (tensor.end > file->size() - begin)
      refuse(i + 2, "'" + name + "' does not lie inside the file");
    if ((begin + tensor.begin) % TENON_PACKED_CONSTANTS_ALIGNMENT != 0 || tensor.dtype != "F32" ||
        (tensor.end - tensor.begin) % sizeof(float) != 0)
      refuse(i + 2, "expected '" + name + "' to be of float32 and aligned to 64 bytes, got others");
    for (const size_t leaf : {packed.leaf, packed.second})
      if (leaf != kNoLeaf && (!leaves[leaf].tensor ||
                              program.graph.values[leaves[leaf].value].dtype != TENON_DTYPE_F32))
        refuse(i + 2, "expected leaves of float32, got leaf " + std::to_string(leaf));
    first = std::min(first, begin + tensor.begin);
    last = std::max(last, begin + tensor.end);
    // On another device, or copied as it was not aligned.
    const auto lies_here = [&](size_t leaf) {
      return is_packable(leaves[leaf]) && offset_of(leaf);
    };
    if (!packed_constants() || !lies_here(packed.leaf)) continue;
    if (packed.second != kNoLeaf && !lies_here(packed.second)) continue;
    const std::string sum = sum_of(program, packed.leaf, packed.second, [&](size_t leaf) -> Reader {
      return [&file, from = offset_of(leaf)](uint64_t offset, void* to, uint64_t bytes) {
        return file->read(from + offset, to, bytes);
      };
    });
    if (sum != packed.sum) {
      ++others;
      continue;
    }
    const tenon_tensor* source = leaves[packed.leaf].tensor.get();
    const tenon_tensor* second =
        packed.second == kNoLeaf ? nullptr : leaves[packed.second].tensor.get();
    const tenon_packed_constant given = {
        .struct_size = sizeof given,
        .source_version = host->tensor_version(source),
        .source = source->data,
        .second = second ? second->data : nullptr,
        .second_version = second ? host->tensor_version(second) : 0,
        .flags = 0,
        .form = packed.form.c_str(),
        .data = file->data() + begin + tensor.begin,
        .bytes = tensor.end - tensor.begin};
    const ErrorSink err;
    file->note_given();
    err.check(packed_constants()->give(&given, err));
  }
  const std::string leaf = "leaf.";
  bool is_apart = first < last;  // No leaf, which a program may write, lies between.
  for (const auto& [name, tensor] : header.tensors)
    if (name.starts_with(leaf) && begin + tensor.begin < last && begin + tensor.end > first)
      is_apart = false;
  if (is_apart) file->protect(first, last);
  if (others > 0) {
    const std::string warning = "load: " + std::to_string(others) + " of " +
                                std::to_string(list.size()) +
                                " packed weights are of other weights than the file holds, which "
                                "are packed anew; was the file "
                                "changed? make it anew with save_optimized()";
    host->log(2, warning.data(), warning.size());
  }
}

}  // namespace tenon::graph
