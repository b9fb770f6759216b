# SPDX-License-Identifier: Apache-2.0
"""Custom operators in wheels: setup(name=..., ext_modules=CppExtension(sources=[...])).

The wheel has one module, named as the distribution, with the operators as its functions."""

import os
import re

import setuptools
from setuptools.errors import SetupError

from tenon.compat.paddle import get_include, get_lib
from tenon.compat.paddle.utils._flags import cflags, ldflags
from tenon.utils.cpp_extension import BuildExtension as _BuildExtension
from tenon.utils.cpp_extension import _cache

_MODULE = """\
# Generated. The custom operators of {name}.
import os as _os

from tenon.compat.paddle.utils.cpp_extension import load_op_library as _load

_module = _load(_os.path.join(_os.path.dirname(__file__), "{library}"), "{name}")
globals().update({{k: v for k, v in vars(_module).items() if not k.startswith("__")}})
"""


def CppExtension(sources, *args, **kwargs):
    """A library of custom operators. setup() names it."""
    return setuptools.Extension(kwargs.pop("name", "operators"), list(sources), *args, **kwargs)


CUDAExtension = CppExtension


class BuildExtension(_BuildExtension):
    """The `build_ext` command of setup(): one library and one module that loads it."""

    @classmethod
    def with_options(cls, **options):
        """Options of other build systems, which change nothing here."""
        return cls

    def build_extension(self, ext):
        recipe = self.recipe(ext)
        recipe.plugin = False
        recipe.cflags = cflags(recipe.cflags)
        recipe.ldflags = [*ldflags(), *recipe.ldflags]
        recipe.include_paths = [get_include(), *recipe.include_paths]
        recipe.library_paths = [get_lib(), *recipe.library_paths]
        name = recipe.name
        recipe.name = re.sub(r"[^a-z0-9_]", "_", name.lower())
        built = _cache.build_in_place(
            recipe, os.path.join(os.path.abspath(self.build_temp), recipe.name)
        )
        folder = os.path.dirname(self.get_ext_fullpath(ext.name))
        os.makedirs(folder, exist_ok=True)
        library = f"_{name}_operators.so"
        self.copy_file(built, os.path.join(folder, library))
        with open(os.path.join(folder, f"{name}.py"), "w", encoding="utf-8") as file:
            file.write(_MODULE.format(name=name, library=library))


def setup(**options):
    """setuptools.setup() with exactly one extension, whose module is called `name`."""
    extensions = options.get("ext_modules")
    extensions = extensions if isinstance(extensions, (list, tuple)) else [extensions]
    if len(extensions) != 1 or not isinstance(extensions[0], setuptools.Extension):
        raise SetupError(
            f"setup(): expected ext_modules to be one CppExtension, got {extensions!r}"
        )
    if not options.get("name"):
        raise SetupError("setup(): expected a name; the module is called by it")
    extensions[0].name = extensions[0]._full_name = options["name"]
    options["ext_modules"] = extensions
    options.setdefault("version", "0.0.0")
    options.setdefault("py_modules", [])
    options.setdefault("cmdclass", {}).setdefault("build_ext", BuildExtension)
    return setuptools.setup(**options)
