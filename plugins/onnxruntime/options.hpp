// SPDX-License-Identifier: Apache-2.0
// What a user has chosen of the claimer, by a text:
//   "providers=TensorrtExecutionProvider,CPUExecutionProvider; TensorrtExecutionProvider.trt_fp16_enable=1;
//    exclude=resize,softmax; config.session.intra_op.allow_spinning=1"
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tenon::onnxruntime {

using Settings = std::vector<std::pair<std::string, std::string>>;

struct Provider {
  std::string name;  // "TensorrtExecutionProvider"
  Settings settings;
};

struct Options {
  std::vector<Provider>
      providers;  // in order of preference; those of the CPU come last by themselves
  std::set<std::string> excluded;  // "tenon::softmax"
  Settings config;                 // entries of a session's configuration
  int threads = 0;                 // 0: as many as Tenon's kernels may use

  // Throws Error (TENON_INVALID_ARGUMENT) for what there is not. Providers are not looked up.
  static Options parse(const std::string& text);
};

}  // namespace tenon::onnxruntime
