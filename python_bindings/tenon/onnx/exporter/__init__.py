# SPDX-License-Identifier: Apache-2.0
"""Writing programs as models of ONNX."""

from tenon.onnx.exporter.export import export

__all__ = ["export"]
