# SPDX-License-Identifier: Apache-2.0
"""Tenon's CUDA plugin, and programs of it that were compiled ahead of time, in `cuda.programs` beside this file.

An entry point tells Tenon of the plugin, which finds its programs by itself; nothing is to be imported. `tenon plugins doctor`
says which of NVIDIA's libraries it found."""
