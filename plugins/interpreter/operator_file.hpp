// SPDX-License-Identifier: Apache-2.0
// Operator files that are loaded: each is a plugin table made in memory and attached to the host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "definition.hpp"

namespace tenon::interpreter {

// Never freed: calls that run, and recorded ones, may point into it after it was replaced.
class OperatorFile {
 public:
  OperatorFile(std::string path, std::string plugin_name,
               std::vector<std::unique_ptr<Definition>> definitions);
  OperatorFile(const OperatorFile&) = delete;

  const std::string& path() const { return path_; }  // without symbolic links
  const std::string& plugin_name() const { return plugin_name_; }
  bool defines(const tenon_op_def& def) const;
  const std::vector<std::unique_ptr<Definition>>& definitions() const { return definitions_; }

  tenon_status attach(tenon_err* err) const;
  // Succeeds as well if the file was unloaded already.
  tenon_status detach(tenon_err* err) const;

 private:
  const std::string path_, plugin_name_;
  const std::vector<std::unique_ptr<Definition>> definitions_;
  std::vector<tenon_op_def> ops_;
  std::vector<tenon_kernel_def> kernels_;
  tenon_plugin table_ = {};
};

// As tenon_interpreter_api.load.
tenon_status load_files(const std::vector<std::string>& paths, std::vector<std::string>& defined,
                        tenon_err* err);

}  // namespace tenon::interpreter
