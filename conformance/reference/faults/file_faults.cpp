// SPDX-License-Identifier: Apache-2.0
// Faults of the file, of the tables, and towards the host.
#include "tables.hpp"

namespace reference {

// Made by the linker, or by the entry point.
FAULT(extra_export) {}
FAULT(gnu_unique) {}
FAULT(needs_libtenon) {}
FAULT(runpath_absolute) {}
FAULT(runpath_empty) {}
FAULT(exec_stack) {}
FAULT(ignores_epoch) {}

FAULT(lying_struct_size) { tables.plugin.struct_size = 0x7ffffff8; }
FAULT(note_name_mismatch) { tables.plugin.name = "somebody_else"; }

FAULT(reads_past_host_table) {
  const tenon_host* volatile table = tenon::host;
  if (!table->plugin_attach) tables.plugin.vendor = "No one";  // since revision 1
}

FAULT(ignores_understand_alloc) {
  tables.device.alloc = [](tenon_device device, const tenon_alloc_request* request, void** out,
                           tenon_err* err) {
    tenon_alloc_request asked = *request;
    asked.must_understand = 0;
    return kDevice.alloc(device, &asked, out, err);
  };
}

FAULT(ignores_understand_copy) {
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    tenon_copy_request asked = *request;
    asked.must_understand = 0;
    return kDevice.copy(device, &asked, err);
  };
}

FAULT(ignores_understand_program) {
  tables.compile.program_create = [](tenon_device device, const tenon_program_request* request,
                                     tenon_program* out, tenon_err* err) {
    tenon_program_request asked = *request;
    asked.must_understand = 0;
    return kCompile.program_create(device, &asked, out, err);
  };
}

FAULT(ignores_understand_launch) {
  tables.compile.kernel_launch = [](tenon_device device, const tenon_launch_request* request,
                                    tenon_err* err) {
    tenon_launch_request asked = *request;
    asked.must_understand = 0;
    return kCompile.kernel_launch(device, &asked, err);
  };
}

}  // namespace reference
