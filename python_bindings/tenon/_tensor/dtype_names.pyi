# SPDX-License-Identifier: Apache-2.0
# The dtypes of tenon and tenon._core, for type checkers; `bool` is in both the dtype at run time.
from typing import Final

from tenon._core import dtype

uint8: Final[dtype]
int8: Final[dtype]
uint16: Final[dtype]
int16: Final[dtype]
uint32: Final[dtype]
int32: Final[dtype]
uint64: Final[dtype]
int64: Final[dtype]
float8_e4m3: Final[dtype]
float8_e5m2: Final[dtype]
float16: Final[dtype]
bfloat16: Final[dtype]
float32: Final[dtype]
float64: Final[dtype]
complex64: Final[dtype]
complex128: Final[dtype]
float8_e4m3fnuz: Final[dtype]
float8_e5m2fnuz: Final[dtype]
float8_e8m0: Final[dtype]
float4_e2m1_x2: Final[dtype]
int4_x2: Final[dtype]
uint4_x2: Final[dtype]
