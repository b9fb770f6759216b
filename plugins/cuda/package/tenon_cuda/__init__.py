# SPDX-License-Identifier: Apache-2.0
"""Programs of Tenon's CUDA plugin, compiled ahead of time: `cuda.programs` beside this file.

The plugin finds the file by itself. `tenon plugins doctor` says which of NVIDIA's libraries it found."""
