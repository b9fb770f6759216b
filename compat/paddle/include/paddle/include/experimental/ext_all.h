// SPDX-License-Identifier: Apache-2.0
// The name that installed packages have for the header of custom operators.
#pragma once

#include <paddle/extension.h>
