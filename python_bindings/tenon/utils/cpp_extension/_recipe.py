# SPDX-License-Identifier: Apache-2.0
"""What is to be compiled and linked, and with which commands."""

import dataclasses
import hashlib
import json
import os

from . import _toolchain

_CXX_SUFFIXES = (".cpp", ".cc", ".cxx", ".c++", ".C")
_DEVICE_SUFFIXES = (".cu", ".hip")


@dataclasses.dataclass
class Recipe:
    """A shared library from sources. Paths are absolute."""

    name: str
    sources: list
    cflags: list = dataclasses.field(default_factory=list)
    cuda_cflags: list = dataclasses.field(default_factory=list)
    ldflags: list = dataclasses.field(default_factory=list)
    include_paths: list = dataclasses.field(default_factory=list)
    library_paths: list = dataclasses.field(default_factory=list)
    plugin: bool = True  # with the note, the one export and the hygiene of a Tenon plugin
    version: str = "0"

    def __post_init__(self):
        if not self.sources:
            raise ValueError("sources: expected at least one file")
        for source in self.sources:
            suffix = os.path.splitext(source)[1]
            if suffix not in _CXX_SUFFIXES + _DEVICE_SUFFIXES:
                known = ", ".join(_CXX_SUFFIXES + _DEVICE_SUFFIXES)
                raise ValueError(f"sources: expected files ending in {known}, got {source}")
            if not os.path.isfile(source):
                raise FileNotFoundError(f"sources: there is no file {source}")
        self.cxx = _toolchain.cxx_compiler()
        self.device_compilers = {
            suffix: _toolchain.device_compiler(suffix)
            for suffix in _DEVICE_SUFFIXES
            if any(source.endswith(suffix) for source in self.sources)
        }

    def key(self):
        """Equal for builds that may share objects. Contents are ninja's business."""
        parts = [
            _toolchain.host(),
            _toolchain.plugin_flags(),
            self.cxx.command,
            self.cxx.version,
            [(c.command, c.version) for c in self.device_compilers.values()],
            dataclasses.asdict(self),
            _toolchain.sdk_folders(),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    # -- compiling --------------------------------------------------------------------------------

    def compile_command(self, source, object_path, depfile):
        suffix = os.path.splitext(source)[1]
        if suffix in self.device_compilers:
            return self._device_command(suffix, source, object_path, depfile)
        return [
            *self.cxx.command,
            *self._host_flags(),
            *["-O2", "-std=c++20", *self._defines(), *self._includes(), *self.cflags],
            *["-MMD", "-MF", depfile, "-c", source, "-o", object_path],
        ]

    def _device_command(self, suffix, source, object_path, depfile):
        command = [*self.device_compilers[suffix].command, "-O2", "-std=c++20"]
        if suffix == ".cu":
            command += ["-Xcompiler", ",".join(self._host_flags())]
        else:
            command += self._host_flags()
        command += [*self._defines(), *self._includes(), *self.cuda_cflags]
        return [*command, "-MMD", "-MF", depfile, "-c", source, "-o", object_path]

    def _host_flags(self):
        if not self.plugin:
            return ["-fPIC"]
        flags = _toolchain.plugin_flags()
        gnu = flags["compile_gnu"] if self.cxx.is_gnu else []
        return [*flags["compile"], *gnu, *_toolchain.sanitizer_flags()]

    def _defines(self):
        if not self.plugin:
            return []
        return [f'-DTENON_PLUGIN_NAME="{self.name}"', f'-DTENON_PLUGIN_VERSION="{self.version}"']

    def _includes(self):
        return [f"-I{path}" for path in (*self.include_paths, *_toolchain.include_paths())]

    # -- linking ----------------------------------------------------------------------------------

    def exports(self):
        """Text of the linker's version script."""
        return _toolchain.plugin_flags()["exports"] + "\n"

    def link_command(self, objects, library, version_script):
        command = [*self.cxx.command, "-shared", *objects, "-o", library]
        flags = _toolchain.plugin_flags()
        if self.plugin:
            command.append(os.path.join(_toolchain.sdk_folders()["lib"], "libtenon_extension.a"))
            command += [f"-Wl,--version-script={version_script}", *flags["link"]]
            command += _toolchain.sanitizer_flags()
        # An error here is better than one at the first call. Sanitizer runtimes are found later.
        if not any("-fsanitize=" in word for word in [*command, *self.cflags, *self.ldflags]):
            command += flags["link_unsanitized"]
        command += [f"-L{path}" for path in self.library_paths]
        if ".cu" in self.device_compilers:
            root = os.path.dirname(os.path.dirname(self.device_compilers[".cu"].command[0]))
            command += [f"-L{os.path.join(root, 'lib64')}", "-lcudart_static", "-lrt", "-lpthread"]
        if ".hip" in self.device_compilers:
            root = os.path.dirname(os.path.dirname(self.device_compilers[".hip"].command[0]))
            command += [f"-L{os.path.join(root, 'lib')}", "-lamdhip64"]
        return [*command, *self.ldflags, "-ldl"]
