// SPDX-License-Identifier: Apache-2.0
// Tensors of a model's file: over its mapped memory where that is aligned, else copied. Files of external data lie
// beneath the model's folder.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "reader/model.hpp"
#include "value.hpp"

namespace tenon::onnx {

// A file in memory, read only, for as long as someone holds it.
class MappedFile {
 public:
  // Throws Error: it is not there, is no regular file, or cannot be read.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  // A copy of bytes that no file holds.
  static std::shared_ptr<const MappedFile> copy(std::string_view bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile() = default;
  const char* data_ = nullptr;
  size_t size_ = 0;
  bool is_mapped_ = false;
};

// Of one model, for any thread: the same data are the same tensor in each import, so that programs share weights.
class ModelFiles {
 public:
  // `folder`: of external data; empty: a model that names such files is refused.
  ModelFiles(std::shared_ptr<const MappedFile> model, std::string folder)
      : model_(std::move(model)), folder_(std::move(folder)) {}

  // A tensor, or the texts of one of strings. Throws Error for element types that no dtype has.
  Value value(const TensorData& data);
  const std::shared_ptr<const MappedFile>& model() const { return model_; }

 private:
  Value make(const TensorData& data);
  std::string_view external_bytes(const TensorData& data, int64_t expected,
                                  std::shared_ptr<const MappedFile>& file);

  std::shared_ptr<const MappedFile> model_;
  std::string folder_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const MappedFile>> external_;
  std::map<const TensorData*, Value> values_;
};

// -1: no dtype has this element type.
int32_t find_dtype(int64_t element_type);
// TensorProto.DataType of a dtype; 0: it has none.
int32_t element_type_of(int32_t dtype);

}  // namespace tenon::onnx
