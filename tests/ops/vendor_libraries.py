# SPDX-License-Identifier: Apache-2.0
"""What CUDA and ROCm compute by libraries of factorizations and transforms, and by kernels from source around these. Tests
of them run with a policy under which nothing may run on the host but what the libraries lack."""

ON_THE_HOST = ["ldl_factor", "ldl_solve"]
POLICY = ",".join(
    [
        "allow",
        *(f"{kind}=deny" for kind in ("cuda", "hip")),
        *(f"{kind}:{op}=allow" for kind in ("cuda", "hip") for op in ON_THE_HOST),
    ]
)
