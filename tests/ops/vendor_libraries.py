# SPDX-License-Identifier: Apache-2.0
"""What CUDA and ROCm compute by libraries of factorizations and transforms. Tests of these run with a policy under which
those operators must run on such a device; what surrounds them (complex arithmetic above all) may run on the host."""

OPERATORS = [
    *("fft_c2c", "fft_r2c", "fft_c2r", "cholesky", "triangular_solve", "solve", "inv"),
    *("lstsq_solve", "lu_factor", "lu_permutation", "adjugate", "det", "slogdet", "pinv"),
    *("qr", "geqrf", "householder_product", "svd", "svdvals", "eigh", "eigvalsh"),
    *("matrix_exp", "eig", "eigvals"),
]
POLICY = ",".join(["allow", *(f"{kind}:{op}=deny" for kind in ("cuda", "hip") for op in OPERATORS)])
