// SPDX-License-Identifier: Apache-2.0
// Writes files of programs for being mapped: tensors begin at multiples of 64 bytes, with tensors "padding.0" and so on
// between, as safetensors files have no gaps. What is used as it lies comes first, then what is packed, then the
// weights that were packed, each part on pages of its own: those of the last one are never read where the packed ones are.
#include <fcntl.h>
#include <unistd.h>

#include <tenon/dtypes.h>
#include <tenon/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json_writer.hpp"
#include "ir/names.hpp"
#include "support/host.hpp"
#include "text/file.hpp"
#include "text/packed.hpp"
#include "text/text.hpp"

namespace tenon::graph {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kPartAlignment = 65536;  // What the system maps at once around a page.

// A tensor of the file.
struct Piece {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  const void* data;  // NULL: zeros
  uint64_t bytes;
};

// Pieces in their order.
class Layout {
 public:
  void add(Piece piece) {
    align(kAlignment);
    end_ += piece.bytes;
    pieces_.push_back(std::move(piece));
  }
  void align(uint64_t to) {
    const uint64_t missing = (to - end_ % to) % to;
    if (missing == 0) return;
    end_ += missing;
    pieces_.push_back({"padding." + std::to_string(paddings_++),
                       "U8",
                       {static_cast<int64_t>(missing)},
                       nullptr,
                       missing});
  }
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::vector<Piece> pieces_;
  uint64_t end_ = 0;
  size_t paddings_ = 0;
};

Piece leaf_piece(size_t index, const Tensor& tensor) {
  const DtypeRow& row = kDtypeTable[tensor->dtype];
  if (row.dl.lanes != 1 || !*row.safetensors)
    throw Error(TENON_UNSUPPORTED,
                "leaf " + std::to_string(index) + " is of " + host->dtype_name(tensor->dtype) +
                    ", which files of programs cannot hold; store it in a wider dtype");
  return {"leaf." + std::to_string(index), row.safetensors,
          std::vector<int64_t>(tensor->shape, tensor->shape + tensor->ndim), tensor->data,
          static_cast<uint64_t>(tensor->numel) * host->dtype_size(tensor->dtype)};
}

// Arguments and results as `tenon.jit.load` takes them: tensors one by one, and a dictionary of those that have names.
std::string structure_of(const Graph& graph) {
  JsonWriter json;
  const auto tensor = [&] { json.array("", [&] { json.string("", "tensor"); }); };
  const auto tuple = [&](size_t count) {
    json.array("", [&] {
      json.string("", "tuple");
      json.array("", [&] {
        for (size_t i = 0; i < count; ++i) tensor();
      });
    });
  };
  const auto& names = graph.result_names;
  const size_t results = graph.results.size();
  const bool has_keys =
      names.size() == results && results > 0 &&
      std::none_of(names.begin(), names.end(), [](const auto& name) { return name.empty(); });
  json.array("", [&] {
    tuple(graph.inputs.size());
    if (has_keys) {
      json.array("", [&] {
        json.string("", "dict");
        json.array("", [&] {
          for (const std::string& name : names)
            json.array("", [&] {
              json.string("", name);
              tensor();
            });
        });
      });
    } else if (results == 1) {
      tensor();
    } else {
      tuple(results);
    }
  });
  return json.text();
}

std::string header_of(const Program& program, const std::vector<PackedLeaf>& packed,
                      const Layout& layout) {
  JsonWriter json;
  json.object("", [&] {
    json.object("__metadata__", [&] {
      json.string("tenon.program", program_text(program));
      json.string("tenon.structure", structure_of(program.graph));
      if (!packed.empty()) json.string(kPackedKey, packed_text(packed));
    });
    uint64_t begin = 0;
    for (const Piece& piece : layout.pieces()) {
      json.object(piece.name, [&] {
        json.string("dtype", piece.dtype);
        json.array("shape", [&] {
          for (int64_t extent : piece.shape) json.number("", extent);
        });
        json.array("data_offsets", [&] {
          json.number("", begin);
          json.number("", begin + piece.bytes);
        });
      });
      begin += piece.bytes;
    }
  });
  return json.text();
}

// A file beside `path` that becomes it when it is whole.
class NewFile {
 public:
  // Another thread may write to the same path, and a process of this number may have left a file when it was killed.
  explicit NewFile(std::string path) : path_(std::move(path)) {
    for (int number = 0; file_ < 0 && number < kMaxNames; ++number) {
      temporary_ = path_ + "." + std::to_string(getpid()) + "." + std::to_string(number) + ".tmp";
      file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (file_ < 0 && errno != EEXIST) fail();
    }
    if (file_ < 0) fail();
  }
  ~NewFile() {
    if (file_ >= 0) close(file_);
    if (!is_done_ && file_ >= 0) unlink(temporary_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, uint64_t bytes) {
    for (const auto* at = static_cast<const char*>(data); bytes > 0;) {
      const ssize_t some = ::write(file_, at, std::min<uint64_t>(bytes, 1 << 30));
      if (some < 0 && errno == EINTR) continue;
      if (some < 0) fail();
      at += some;
      bytes -= static_cast<uint64_t>(some);
    }
  }
  void write_zeros(uint64_t bytes) {
    static constexpr char kZeros[4096] = {};
    for (; bytes > 0; bytes -= std::min<uint64_t>(bytes, sizeof kZeros))
      write(kZeros, std::min<uint64_t>(bytes, sizeof kZeros));
  }
  void finish() {
    // A power cut could leave the name on an empty file else.
    if (fsync(file_) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
    is_done_ = true;
  }

 private:
  static constexpr int kMaxNames = 1000;

  [[noreturn]] void fail() const {
    const std::string reason = std::strerror(errno);
    if (file_ < 0) throw Error(TENON_NOT_FOUND, temporary_ + ": " + reason);
    throw Error(TENON_UNAVAILABLE, reason);
  }

  const std::string path_;
  std::string temporary_;
  int file_ = -1;
  bool is_done_ = false;
};

}  // namespace

void save_program(const Program& program, const std::string& path) try {
  const auto& leaves = program.graph.leaves;
  const std::vector<PackedLeaf> packed = packed_leaves(program);
  std::set<size_t> sources;
  for (const PackedLeaf& each : packed) sources.insert(each.leaf);
  std::vector<Tensor> kept;
  Layout layout;
  const auto add_leaves = [&](bool are_packed) {
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (!leaves[i].tensor || leaves[i].tensor->device == TENON_DEVICE_META ||
          sources.contains(i) != are_packed)
        continue;
      kept.push_back(on_host(leaves[i].tensor));
      layout.add(leaf_piece(i, kept.back()));
    }
  };
  add_leaves(false);
  if (!packed.empty()) layout.align(kPartAlignment);
  for (size_t i = 0; i < packed.size(); ++i)
    layout.add({"packed." + std::to_string(i),
                "F32",
                {static_cast<int64_t>(packed[i].elements.size() / sizeof(float))},
                packed[i].elements.data(),
                packed[i].elements.size()});
  if (!packed.empty()) layout.align(kPartAlignment);
  add_leaves(true);

  std::string header = header_of(program, packed, layout);
  uint64_t length = header.size();
  const uint64_t alignment = packed.empty() ? kAlignment : kPartAlignment;
  length += (alignment - (length + sizeof length) % alignment) % alignment;
  header.resize(length, ' ');
  NewFile file(path);
  file.write(&length, sizeof length);
  file.write(header.data(), header.size());
  for (const Piece& piece : layout.pieces())
    piece.data ? file.write(piece.data, piece.bytes) : file.write_zeros(piece.bytes);
  file.finish();
} catch (const Error& error) {
  throw Error(error.code(), "save: " + path + ": " + error.what());
}

}  // namespace tenon::graph
