// SPDX-License-Identifier: Apache-2.0
// Arguments of operators, as messages.
#pragma once

#include "wire/message.hpp"

namespace tenon::isolated {

// How host scalars go. A call takes the number that one was made from, and the other side makes the
// same one. A can_run gets the arguments that it would get in this process.
enum class Scalars { kNumbers, kTensors };

void put_tensor(Writer& message, const tenon_tensor& tensor);
// False: a value that cannot leave this process. Devices of kind `own_kind` become their index.
bool put_value(Writer& message, const tenon_value& value, uint32_t own_kind, Scalars scalars);

}  // namespace tenon::isolated
