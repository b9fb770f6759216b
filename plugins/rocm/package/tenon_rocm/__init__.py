# SPDX-License-Identifier: Apache-2.0
"""Programs of Tenon's ROCm plugin, compiled ahead of time: `rocm.programs` beside this file.

The plugin finds the file by itself. ROCm's libraries are those of the system: `tenon plugins doctor` says which it found."""
