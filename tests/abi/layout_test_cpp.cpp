// SPDX-License-Identifier: Apache-2.0
// The same test as C++20, which can also name the members' types.
#include "layout_test.c"
