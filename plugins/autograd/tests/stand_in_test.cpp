// SPDX-License-Identifier: Apache-2.0
#include <tenon/services/gradient_rules.h>

#include "support.hpp"

namespace tenon::test {
namespace {

int alive = 0;

void* copy_of(const void* value) {
  ++alive;
  return new int(*static_cast<const int*>(value));
}

void drop(void* value) {
  --alive;
  delete static_cast<int*>(value);
}

TEST(StandIns, DropValuesThatOthersTakeThePlaceOf) {
  const auto* rules = static_cast<const tenon_gradient_rules_api*>(
      host->service_find(TENON_GRADIENT_RULES_SERVICE, TENON_GRADIENT_RULES_VERSION));
  ASSERT_TRUE(rules);
  const int32_t slot = host->ext_register("stand_in_test", drop);
  Error err;
  err.check(rules->slot_of_stand_ins(slot, copy_of, drop, err));
  {
    Tensor y = call("exp", {parameter({1})});
    const int one = 1;
    host->ext_set(y.get(), slot, copy_of(&one));
    rules->update_stand_ins(y.get());
    EXPECT_EQ(alive, 2);  // of the result, and of the tensor that its node keeps
    rules->update_stand_ins(y.get());
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace tenon::test
