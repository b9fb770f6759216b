# SPDX-License-Identifier: Apache-2.0
"""Wheels with operators in C++, from setup.py or pyproject.toml, without CMake."""

import json
import os
import shutil

import setuptools
from setuptools.command.build_ext import build_ext
from setuptools.errors import SetupError

from . import _cache, _toolchain
from ._recipe import Recipe

_MANIFEST = "{name}.tenon.json"


class CppExtension(setuptools.Extension):
    """A plugin of operators: `CppExtension("tenon_acme.acme", ["acme.cpp"])` becomes
    `tenon_acme/libtenon_acme.so` and a manifest beside it. The last word is the plugin's name; the
    words before are the package that it lies in. Options are setuptools' own."""


class CUDAExtension(CppExtension):
    """The same with .cu sources; flags for nvcc: `extra_compile_args={"nvcc": [...], "cxx": [...]}`."""


class BuildExtension(build_ext):
    """The `build_ext` command for CppExtension and CUDAExtension; others are built as ever."""

    def recipe(self, extension):
        """What is built for an extension. Subclasses may change it."""
        args = extension.extra_compile_args
        if not isinstance(args, dict):
            args = {"cxx": args}
        defines = [
            f"-D{name}" if value is None else f"-D{name}={value}"
            for name, value in extension.define_macros
        ]
        return Recipe(
            name=extension.name.rpartition(".")[2],
            version=self.distribution.get_version(),
            sources=[os.path.abspath(source) for source in extension.sources],
            cflags=[*defines, *args.get("cxx", [])],
            cuda_cflags=[*defines, *args.get("nvcc", [])],
            ldflags=[*extension.extra_link_args, *(f"-l{name}" for name in extension.libraries)],
            include_paths=[os.path.abspath(path) for path in extension.include_dirs],
            library_paths=[os.path.abspath(path) for path in extension.library_dirs],
        )

    def build_extension(self, ext):
        if not isinstance(ext, CppExtension):
            return super().build_extension(ext)
        recipe = self.recipe(ext)
        _cache.check_name(recipe.name)
        if recipe.plugin:
            self._check_entry_point(ext, recipe.name)
        built = _cache.build_in_place(
            recipe, os.path.join(os.path.abspath(self.build_temp), ext.name)
        )
        target = self.get_ext_fullpath(ext.name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(built, target)
        os.chmod(target, 0o755)
        manifest = {
            "name": recipe.name,
            "version": recipe.version,
            "library": os.path.basename(target),
            "epoch": _toolchain.host()["epoch"],
        }
        path = os.path.join(os.path.dirname(target), _MANIFEST.format(name=recipe.name))
        with open(path, "w", encoding="utf-8") as file:
            json.dump(manifest, file)

    def get_ext_filename(self, fullname):
        # Called with the whole name, and with its last word alone.
        *folders, name = fullname.split(".")
        ours = [e.name for e in self.extensions if isinstance(e, CppExtension)]
        if fullname in ours or fullname in [full.rpartition(".")[2] for full in ours]:
            return os.path.join(*folders, f"libtenon_{name}.so")
        return super().get_ext_filename(fullname)

    def get_outputs(self):
        manifests = [
            os.path.join(
                os.path.dirname(self.get_ext_fullpath(ext.name)),
                _MANIFEST.format(name=ext.name.rpartition(".")[2]),
            )
            for ext in self.extensions
            if isinstance(ext, CppExtension)
        ]
        return [*super().get_outputs(), *manifests]

    def _check_entry_point(self, extension, name):
        """Without it the wheel would install and never be found."""
        package = extension.name.rpartition(".")[0]
        if not package:
            raise SetupError(
                f"CppExtension('{extension.name}'): expected the package that the library lies in, "
                f"as in CppExtension('tenon_{name}.{name}', ...)"
            )
        value = f"{package}:{_MANIFEST.format(name=name)}"
        announced = (self.distribution.entry_points or {}).get("tenon.plugins", [])
        if isinstance(announced, str):
            announced = announced.splitlines()
        if f"{name}={value}" in [entry.replace(" ", "") for entry in announced]:
            return
        raise SetupError(
            f"expected the entry point by which tenon finds the plugin; add to pyproject.toml:\n"
            f'  [project.entry-points."tenon.plugins"]\n  {name} = "{value}"\n'
            f'or to setup(): entry_points={{"tenon.plugins": ["{name} = {value}"]}}'
        )
