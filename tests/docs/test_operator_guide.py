# SPDX-License-Identifier: Apache-2.0
"""docs/operators.md, command by command, as the author of an operator would follow it."""

import pathlib
import zipfile

from guide import Reader, needs_build


@needs_build
def test_the_guide_holds():
    reader = Reader("operator_guide")
    home = pathlib.Path(reader.folder)
    reader.follow("operators.md")

    def files(wheel):
        (path,) = home.glob(wheel)
        names = zipfile.ZipFile(path).namelist()
        return {name.partition("/")[2] for name in names if ".dist-info" not in name}

    assert files("tenon_hello/dist/*-py3-none-any.whl") == {"__init__.py", "hello.yaml", "py.typed"}
    assert files("tenon_acme/dist/*.whl") == {
        "__init__.py",
        "__init__.pyi",
        "acme.yaml",
        "libtenon_acme.so",
        "py.typed",
        "tenon_plugin.json",
    }
