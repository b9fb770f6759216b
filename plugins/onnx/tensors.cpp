// SPDX-License-Identifier: Apache-2.0
#include "tensors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "reader/reader.hpp"
#include "text/texts.hpp"

namespace tenon::onnx {
namespace {

constexpr std::pair<ElementType, int32_t> kDtypes[] = {
    {ElementType::Float, TENON_DTYPE_F32},
    {ElementType::UInt8, TENON_DTYPE_U8},
    {ElementType::Int8, TENON_DTYPE_I8},
    {ElementType::UInt16, TENON_DTYPE_U16},
    {ElementType::Int16, TENON_DTYPE_I16},
    {ElementType::Int32, TENON_DTYPE_I32},
    {ElementType::Int64, TENON_DTYPE_I64},
    {ElementType::Bool, TENON_DTYPE_BOOL},
    {ElementType::Float16, TENON_DTYPE_F16},
    {ElementType::Double, TENON_DTYPE_F64},
    {ElementType::UInt32, TENON_DTYPE_U32},
    {ElementType::UInt64, TENON_DTYPE_U64},
    {ElementType::Complex64, TENON_DTYPE_C64},
    {ElementType::Complex128, TENON_DTYPE_C128},
    {ElementType::BFloat16, TENON_DTYPE_BF16},
    {ElementType::Float8E4M3FN, TENON_DTYPE_F8E4M3},
    {ElementType::Float8E4M3FNUZ, TENON_DTYPE_F8E4M3FNUZ},
    {ElementType::Float8E5M2, TENON_DTYPE_F8E5M2},
    {ElementType::Float8E5M2FNUZ, TENON_DTYPE_F8E5M2FNUZ},
    {ElementType::Float8E8M0, TENON_DTYPE_F8E8M0},
    // Of less than a byte: carried by dtypes that have their values.
    {ElementType::UInt4, TENON_DTYPE_U8},
    {ElementType::Int4, TENON_DTYPE_I8},
    {ElementType::UInt2, TENON_DTYPE_U8},
    {ElementType::Int2, TENON_DTYPE_I8},
    {ElementType::Float4E2M1, TENON_DTYPE_F8E4M3},
};

// Elements of less than a byte, the first one in the low bits, a byte each.
void unpack(std::string_view packed, ElementType type, uint32_t bits, int64_t count,
            unsigned char* elements) {
  static constexpr unsigned char kFloat8[8] = {0x00, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c};
  const unsigned mask = (1u << bits) - 1, sign = 1u << (bits - 1);
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<uint64_t>(i) * bits;
    const unsigned code = static_cast<unsigned char>(packed[at / 8]) >> (at % 8) & mask;
    if (type == ElementType::Float4E2M1)
      elements[i] = static_cast<unsigned char>(kFloat8[code & 7] | (code & 8) << 4);
    else if (type == ElementType::Int4 || type == ElementType::Int2)
      elements[i] = static_cast<unsigned char>((code ^ sign) - sign);
    else
      elements[i] = static_cast<unsigned char>(code);
  }
}

// Closes a file when it goes.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

[[noreturn]] void refuse_tensor(const std::string& text) {
  throw Error(TENON_INVALID_ARGUMENT, text);
}

// A number of bytes that a file of external data has to have.
int64_t parse_bytes(const std::string& text, const std::string& what) {
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || errno != 0 || number < 0)
    refuse_tensor(what + ": expected a number of bytes, got `" + text + "`");
  return number;
}

// A path beneath the model's folder: no way up, not from the root.
bool is_beneath(const std::string& path) {
  if (path.empty() || path[0] == '/' || path.find('\0') != std::string::npos) return false;
  size_t start = 0;
  while (start <= path.size()) {
    size_t end = path.find('/', start);
    if (end == std::string::npos) end = path.size();
    if (path.compare(start, end - start, "..") == 0) return false;
    start = end + 1;
  }
  return true;
}

// No folder or file on the way is a link.
void refuse_links(const std::string& folder, const std::string& path) {
  for (size_t end = path.find('/');; end = path.find('/', end + 1)) {
    struct stat status;
    const std::string part = folder + "/" + path.substr(0, end);
    if (::lstat(part.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
      refuse_tensor("external data: expected files beneath the model's folder, got the link " +
                    part);
    if (end == std::string::npos) return;
  }
}

struct Hold {
  std::shared_ptr<const MappedFile> file;
};

}  // namespace

int32_t find_dtype(int64_t element_type) {
  for (const auto& [type, dtype] : kDtypes)
    if (static_cast<int64_t>(type) == element_type) return dtype;
  return -1;
}

int32_t element_type_of(int32_t dtype) {
  for (const auto& [type, known] : kDtypes)
    if (known == dtype) return static_cast<int32_t>(type);
  return 0;
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status;
  if (file.number < 0 || ::fstat(file.number, &status) != 0)
    throw Error(TENON_NOT_FOUND, path + ": " + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) refuse_tensor(path + ": expected a file, got something else");
  std::shared_ptr<MappedFile> mapped(new MappedFile);
  mapped->size_ = static_cast<size_t>(status.st_size);
  if (mapped->size_ == 0) return mapped;
  void* memory = ::mmap(nullptr, mapped->size_, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (memory == MAP_FAILED) throw Error(TENON_UNAVAILABLE, path + ": " + std::strerror(errno));
  mapped->data_ = static_cast<const char*>(memory);
  mapped->is_mapped_ = true;
  return mapped;
}

std::shared_ptr<const MappedFile> MappedFile::copy(std::string_view bytes) {
  std::shared_ptr<MappedFile> held(new MappedFile);
  if (bytes.empty()) return held;
  auto* data = static_cast<char*>(std::aligned_alloc(64, (bytes.size() + 63) / 64 * 64));
  if (!data) throw std::bad_alloc();
  std::memcpy(data, bytes.data(), bytes.size());
  held->data_ = data;
  held->size_ = bytes.size();
  return held;
}

MappedFile::~MappedFile() {
  if (is_mapped_)
    ::munmap(const_cast<char*>(data_), size_);
  else
    std::free(const_cast<char*>(data_));
}

std::string_view ModelFiles::external_bytes(const TensorData& data, int64_t expected,
                                            std::shared_ptr<const MappedFile>& file) {
  const std::string what = "tensor `" + data.name + "`, external data";
  const auto entry = [&](const char* key) {
    const auto found = data.external.find(key);
    return found == data.external.end() ? std::string() : found->second;
  };
  const std::string location = entry("location");
  if (folder_.empty())
    refuse_tensor(what +
                  ": expected a model from a file, beside which its external data lie, got bytes; "
                  "load it by its path");
  if (!is_beneath(location))
    refuse_tensor(what + ": expected a file beneath the model's folder, got `" + location + "`");
  auto& mapped = external_[location];
  if (!mapped) {
    refuse_links(folder_, location);
    mapped = MappedFile::open(folder_ + "/" + location);
  }
  file = mapped;
  const std::string offset_text = entry("offset"), length_text = entry("length");
  const int64_t offset = offset_text.empty() ? 0 : parse_bytes(offset_text, what),
                length = length_text.empty() ? expected : parse_bytes(length_text, what);
  const auto size = static_cast<int64_t>(mapped->bytes().size());
  if (length != expected)
    refuse_tensor(what + ": expected " + std::to_string(expected) + " bytes for its shape, got " +
                  std::to_string(length));
  if (offset > size || length > size - offset)
    refuse_tensor(what + ": expected bytes " + std::to_string(offset) + " to " +
                  std::to_string(offset) + " + " + std::to_string(length) + " within the file of " +
                  std::to_string(size));
  return mapped->bytes().substr(static_cast<size_t>(offset), static_cast<size_t>(length));
}

Value ModelFiles::value(const TensorData& data) {
  const std::lock_guard lock(mutex_);
  const auto known = values_.find(&data);
  return known == values_.end() ? values_.emplace(&data, make(data)).first->second : known->second;
}

Value ModelFiles::make(const TensorData& data) {
  if (data.type == static_cast<int32_t>(ElementType::String))
    return make_text(data.texts, data.shape);
  const int32_t dtype = find_dtype(data.type);
  if (dtype < 0)
    throw Error(TENON_UNSUPPORTED, "tensor `" + data.name +
                                       "`: expected an element type that tensors have, got " +
                                       element_type_name(data.type));
  std::shared_ptr<const MappedFile> file = model_;
  std::string_view bytes = data.elements();
  const int64_t count = count_elements(data.shape, "tensor `" + data.name + "`"),
                bits = element_size(data.type).bits, expected = (count * bits + 7) / 8;
  if (data.is_external) bytes = external_bytes(data, expected, file);
  const ErrorSink err;
  tenon_tensor* made;
  // Small tensors are copied: what they cost is the handle.
  constexpr int64_t kMinShared = 4096;
  const bool is_in_file = data.is_external || !data.raw.empty();
  const bool is_aligned = reinterpret_cast<uintptr_t>(bytes.data()) % 16 == 0;
  if (bits < 8) {
    Tensor tensor = make_known(dtype, data.shape);
    unpack(bytes, static_cast<ElementType>(data.type), static_cast<uint32_t>(bits), count,
           static_cast<unsigned char*>(tensor->data));
    return tensor;
  }
  if (expected >= kMinShared && is_in_file && is_aligned && dtype != TENON_DTYPE_BOOL) {
    auto* hold = new Hold{file};
    const tenon_status status = host->tensor_wrap(
        host->device_host(), dtype, static_cast<int32_t>(data.shape.size()), data.shape.data(),
        nullptr, const_cast<char*>(bytes.data()), TENON_TENSOR_READONLY,
        [](void* user) { delete static_cast<Hold*>(user); }, hold, &made, err);
    if (status != TENON_OK) delete hold;
    err.check(status);
    return Tensor::adopt(made);
  }
  Tensor tensor = make_known(dtype, data.shape);
  if (!bytes.empty()) std::memcpy(tensor->data, bytes.data(), bytes.size());
  if (dtype == TENON_DTYPE_BOOL)  // one byte, 0 or 1
    for (int64_t i = 0; i < count; ++i) {
      auto* elements = static_cast<unsigned char*>(tensor->data);
      elements[i] = elements[i] != 0;
    }
  return tensor;
}

}  // namespace tenon::onnx
