// SPDX-License-Identifier: Apache-2.0
#include "text/file.hpp"

#include <tenon/dtypes.h>

#include <tenon/error.hpp>

#include <bit>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "formats/safetensors.hpp"
#include "support/host.hpp"
#include "text/mapping.hpp"
#include "text/packed.hpp"
#include "text/text.hpp"

namespace tenon::graph {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

// -1: a dtype that tensors do not have, or whose shapes count the numbers in a byte.
int32_t dtype_of(const std::string& name) {
  for (const DtypeRow& row : kDtypeTable)
    if (row.dl.lanes == 1 && *row.safetensors && name == row.safetensors) return row.id;
  return -1;
}

void drop_mapping(void* user) { delete static_cast<SharedMapping*>(user); }

// The stored tensor, on the host and in the memory of the file where its address allows that.
Tensor wrap_stored(const SharedMapping& file, char* data, const Type& type) {
  const tenon_device_id device = host->device_host();
  ErrorSink err;
  tenon_tensor* tensor;
  const uint32_t size = host->dtype_size(type.dtype);
  const auto ndim = static_cast<int32_t>(type.shape.size());
  if (reinterpret_cast<uintptr_t>(data) % (size > 8 ? 8 : size) != 0) {
    err.check(host->tensor_create(device, type.dtype, ndim, type.shape.data(), &tensor, err));
    Tensor copy = Tensor::adopt(tensor);
    if (copy->numel) std::memcpy(copy->data, data, static_cast<size_t>(copy->numel) * size);
    return copy;
  }
  auto owner = std::make_unique<SharedMapping>(file);
  err.check(host->tensor_wrap(device, type.dtype, ndim, type.shape.data(), nullptr, data, 0,
                              drop_mapping, owner.get(), &tensor, err));
  owner.release();
  return Tensor::adopt(tensor);
}

Tensor on_device(const Tensor& tensor, tenon_device_id device) {
  if (tensor->device == device) return tensor;
  ErrorSink err;
  tenon_tensor* moved;
  err.check(host->tensor_create(device, tensor->dtype, tensor->ndim, tensor->shape, &moved, err));
  Tensor result = Tensor::adopt(moved);
  err.check(host->tensor_copy(moved, tensor.get(), err));
  return result;
}

}  // namespace

ProgramPtr load_program(const std::string& path) {
  const auto file = std::make_shared<Mapping>(path);
  auto refuse = [&](const std::string& problem) {
    throw Error(TENON_INVALID_ARGUMENT, "load: " + path + ": " + problem);
  };
  uint64_t length = 0;
  if (file->size() < sizeof length)
    refuse("expected a safetensors file, got one that is cut short");
  std::memcpy(&length, file->data(), sizeof length);
  const uint64_t room = file->size() - sizeof length;
  if (length > room)
    refuse("expected a header of " + std::to_string(length) + " bytes, but the file has " +
           std::to_string(file->size()) + "; it is cut short or no safetensors file");
  SafetensorsHeader header;
  ProgramPtr program;
  try {
    header = parse_safetensors_header({file->data() + sizeof length, length});
    auto text = header.metadata.find("tenon.program");
    if (text == header.metadata.end())
      throw Error(TENON_INVALID_ARGUMENT, "it holds tensors and no program; tenon.load reads it");
    program = parse_program(text->second);
  } catch (const Error& error) {
    throw Error(error.code(), "load: " + path + ": " + error.what());
  } catch (const std::invalid_argument& error) {  // of the header
    refuse(error.what());
  }
  char* data = file->data() + sizeof length + length;
  const uint64_t bytes = room - length;
  for (size_t i = 0; i < program->graph.leaves.size(); ++i) {
    Leaf& leaf = program->graph.leaves[i];
    const Type& type = program->graph.values[leaf.value];
    const std::string name = "leaf." + std::to_string(i);
    if (type.device == TENON_DEVICE_META) {
      ErrorSink err;
      tenon_tensor* described;
      err.check(host->tensor_create(TENON_DEVICE_META, type.dtype,
                                    static_cast<int32_t>(type.shape.size()), type.shape.data(),
                                    &described, err));
      leaf.tensor = Tensor::adopt(described);
      continue;
    }
    auto stored = header.tensors.find(name);
    if (stored == header.tensors.end()) refuse("expected a tensor '" + name + "', got none");
    const StoredTensor& tensor = stored->second;
    uint64_t numel = 1;
    for (int64_t extent : type.shape) numel *= static_cast<uint64_t>(extent);  // verified: fits
    const uint64_t size = host->dtype_size(type.dtype);
    if (tensor.shape != type.shape || dtype_of(tensor.dtype) != type.dtype)
      refuse("'" + name + "' is not the " + type_text(type) + " that the program expects");
    if (tensor.end > bytes || numel > bytes / size || tensor.end - tensor.begin != numel * size)
      refuse("'" + name + "' does not lie inside the file");
    leaf.tensor = on_device(wrap_stored(file, data + tensor.begin, type), type.device);
  }
  try {
    give_packed(file, header, sizeof length + length, *program);
  } catch (const Error& error) {
    throw Error(error.code(), "load: " + path + ": " + error.what());
  }
  return program;
}

}  // namespace tenon::graph
