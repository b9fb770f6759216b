# SPDX-License-Identifier: Apache-2.0
"""Tenon's ROCm plugin, and programs of it that were compiled ahead of time, in `rocm.programs` beside this file.

An entry point tells Tenon of the plugin, which finds its programs by itself; nothing is to be imported. ROCm's libraries are those of
the system: `tenon plugins doctor` says which it found."""
