// SPDX-License-Identifier: Apache-2.0
// Has a note, and exports nothing.
extern "C" int tenon_test_unused();
int tenon_test_unused() { return 0; }
