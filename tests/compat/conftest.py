# SPDX-License-Identifier: Apache-2.0
"""What tests of libraries written for other frameworks share."""

import os
import shutil
import tempfile

import pytest
import tenon


@pytest.fixture(scope="module", autouse=True)
def _temporary_folders():
    """These tests build in temporary folders, which lie in /tmp, where every user may rename entries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENON_PLUGIN_TRUST", "any")
        yield


@pytest.fixture
def trusted():
    """A folder that the host trusts."""
    path = tempfile.mkdtemp(prefix="test-", dir=os.path.dirname(tenon.sdk_path()))
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)
