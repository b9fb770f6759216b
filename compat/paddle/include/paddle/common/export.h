// SPDX-License-Identifier: Apache-2.0
// PADDLE_API: what libpaddle.so exports, and what plugins' inline code may rely on being one
// object.
#pragma once

#define PADDLE_API __attribute__((visibility("default")))
