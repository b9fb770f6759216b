# SPDX-License-Identifier: Apache-2.0
import os
import shutil

import building
import pytest
import tenon


def pytest_collection_modifyitems(items):
    missing = not building.BUILD or shutil.which("cmake") is None
    for item in items:
        if missing and os.path.dirname(item.path) == building.HERE:
            item.add_marker(pytest.mark.skip(reason="TENON_BUILD_DIR or cmake is missing"))


@pytest.fixture(scope="session")
def rich_folder():
    return building.build("rich")


@pytest.fixture(scope="session")
def rich(rich_folder):
    """The operators of tests/packages/rich, loaded into this process."""
    tenon.plugins.load(os.path.join(rich_folder, "libtenon_rich.so"))
    return tenon.ops.rich
