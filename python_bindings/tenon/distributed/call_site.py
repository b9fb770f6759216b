# SPDX-License-Identifier: Apache-2.0
"""The line of the user's program that calls."""

import os
import sys

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LOADED_FROM = os.path.dirname(os.path.dirname(__file__)) + os.sep


def call_site() -> str:
    """As "train.py:88": the innermost frame outside this package, or "" if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((_LOADED_FROM, _PACKAGE)):
            return f"{os.path.basename(file)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""
