# SPDX-License-Identifier: Apache-2.0


class CompileError(RuntimeError):
    """An extension could not be built. The text holds the command and what the compiler said."""
