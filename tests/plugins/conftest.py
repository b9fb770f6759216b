# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import tempfile

import pytest
import tenon
from plugin_support import copy_plugin


@pytest.fixture
def folder():
    """A folder that the host trusts. Temporary ones lie in /tmp, where every user may rename entries."""
    path = tempfile.mkdtemp(prefix="test-", dir=os.path.dirname(tenon.sdk_path()))
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def library(folder):
    """A copy of a plugin, of a device that loads when it is named."""
    return copy_plugin(folder, "null")
