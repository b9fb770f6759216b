# SPDX-License-Identifier: Apache-2.0
"""Run pytest on the files given, or say that it is not installed (77: skipped)."""

import sys

try:
    import pytest
except ImportError:
    print("pytest is not installed")
    sys.exit(77)

sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
