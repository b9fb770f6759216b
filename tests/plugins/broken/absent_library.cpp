// SPDX-License-Identifier: Apache-2.0
extern "C" int TENON_TEST_FUNCTION();
int TENON_TEST_FUNCTION() { return 0; }
