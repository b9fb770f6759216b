// SPDX-License-Identifier: Apache-2.0
// How the ranks of a communicator get HCCL's root info.
//
// Note [The id of a communicator]
// The root info has 4108 bytes, and an id of Tenon 128. So the id says where the root info is to be had: the
// process that made the id listens on a port of its own until its communicator exists, and hands the root info
// to every rank that connects and knows the secret in the id. This is how far NCCL's ids are secret, too: who
// has the id may join. Ranks of the same process need no connection.
#pragma once

#include <tenon/abi.h>

#include "library/hccl.hpp"

namespace ascend {

// Makes the id under which other ranks get `info`.
tenon_status publish(const hccl::RootInfo& info, tenon_comm_id* out, tenon_err* err);
tenon_status look_up(const tenon_comm_id& id, hccl::RootInfo* out, tenon_err* err);
// No rank needs it any more. Other processes' ids are left alone.
void withdraw(const tenon_comm_id& id);
void withdraw_all();

}  // namespace ascend
