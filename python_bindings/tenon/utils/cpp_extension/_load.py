# SPDX-License-Identifier: Apache-2.0
"""Extensions that are built when they are loaded."""

import hashlib
import os
from typing import Any

from tenon import _core, plugins

from . import _cache
from ._cache import build_library, check_name, locked

_loaded: dict[str, Any] = {}  # name -> Extension


class Extension:
    """A loaded extension. Its operators are attributes; they are tenon.ops.<namespace>.<name> too."""

    def __init__(self, name, path):
        self.__name__ = name
        self.__file__ = path
        for entry in plugins.list():
            if entry["state"] == "loaded" and entry["path"] == os.path.realpath(path):
                self._plugin = entry["name"]
                self._namespaces = entry["namespaces"]

    def _operators(self):
        """Short name -> full name; of the build that is loaded now."""
        spaces = tuple(f"{space}::" for space in self._namespaces)
        return {
            full.partition("::")[2]: full
            for full in _core.operator_names()
            if full.startswith(spaces)
        }

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        operators = self._operators()
        # `scale_` is the in-place form of `scale`.
        full = operators.get(name) or (
            operators.get(name[:-1], "") + "_" if name[-1] == "_" else ""
        )
        try:
            return _core.operator(full)
        except AttributeError:
            known = ", ".join(sorted(operators)) or "none"
            raise AttributeError(
                f"extension '{self.__name__}' has no operator '{name}'; it has: {known}"
            ) from None

    def __dir__(self):
        return sorted({"__name__", "__file__", *self._operators()})

    def __repr__(self):
        return f"<extension '{self.__name__}' from {self.__file__!r}>"


def load(
    name,
    sources,
    extra_cflags=(),
    extra_cuda_cflags=(),
    extra_ldflags=(),
    extra_include_paths=(),
    build_directory=None,
    verbose=False,
    with_cuda=None,
    is_python_module=True,
):
    """Build an extension from C++ (and .cu, .hip) files and load its operators.

    Built once: afterwards only what has changed, headers included. If another build of `name` is
    loaded in this process, its operators are withdrawn first and come back if the new ones are
    refused. Graphs recorded with the old ones go on working. `with_cuda=False` leaves .cu files out.
    Returns an Extension, or with `is_python_module=False` the path of the library, not loaded."""
    sources = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    if with_cuda is False:
        sources = [source for source in sources if not os.fspath(source).endswith((".cu", ".hip"))]
    path = build_library(
        name,
        sources,
        cflags=_words("extra_cflags", extra_cflags),
        cuda_cflags=_words("extra_cuda_cflags", extra_cuda_cflags),
        ldflags=_words("extra_ldflags", extra_ldflags),
        include_paths=_words("extra_include_paths", extra_include_paths),
        build_directory=build_directory,
        verbose=verbose,
        plugin=True,
    )
    return _bring_in(name, path) if is_python_module else path


def load_inline(
    name,
    cpp_sources,
    cuda_sources=(),
    functions=None,
    extra_cflags=(),
    extra_cuda_cflags=(),
    extra_ldflags=(),
    extra_include_paths=(),
    build_directory=None,
    verbose=False,
    with_cuda=None,
    is_python_module=True,
):
    """As `load`, from the text of sources.

    `functions` defines operators in the namespace `name` where the text has no TENON_OPERATORS: a
    signature, a list of them, or a dict from signature to C++ function. Without a dict the function
    is called as the operator is."""
    check_name(name)
    cpp_sources = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    cuda_sources = [cuda_sources] if isinstance(cuda_sources, str) else list(cuda_sources or ())
    if functions is not None and cpp_sources:
        cpp_sources[-1] += _definitions(name, functions)
    files = {f"{name}_{i}.cpp": _prelude(name, i, text) for i, text in enumerate(cpp_sources)}
    if with_cuda is not False:
        files.update({f"{name}_{i}.cu": text for i, text in enumerate(cuda_sources)})
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
    folder = build_directory or os.path.join(_cache.root_folder(), name, f"inline_{digest}")
    folder = os.path.abspath(os.fspath(folder))
    with locked(folder):
        for file, text in files.items():
            _write_if_changed(os.path.join(folder, file), text)
    return load(
        name,
        [os.path.join(folder, file) for file in files],
        extra_cflags,
        extra_cuda_cflags,
        extra_ldflags,
        extra_include_paths,
        build_directory,
        verbose,
        with_cuda,
        is_python_module,
    )


def _words(parameter, value):
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{parameter}: expected a list of strings, got the string {value!r}")
    return [os.fspath(word) for word in value or ()]


def _prelude(name, index, text):
    include = "" if "tenon/extension.hpp" in text else "#include <tenon/extension.hpp>\n"
    return f'{include}#line 1 "{name}.cpp_sources[{index}]"\n{text}\n'


def _definitions(name, functions):
    if isinstance(functions, str):
        functions = [functions]
    if not isinstance(functions, dict):
        functions = {signature: signature.partition("(")[0].strip() for signature in functions}
    lines = []
    for signature, function in functions.items():
        if "(" not in signature or "->" not in signature:
            raise ValueError(
                "functions: expected signatures such as "
                f"'swiglu(Tensor x, Tensor g) -> Tensor', got {signature!r}"
            )
        quoted = signature.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  m.def<{function}>("{quoted}");')
    return f"\nTENON_OPERATORS({name}, m) {{\n" + "\n".join(lines) + "\n}\n"


def _write_if_changed(path, text):
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except OSError:
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _bring_in(name, path):
    old = _loaded.get(name)
    if old and old.__file__ == path:
        return old
    if old:
        plugins.unload(old._plugin)
    try:
        plugins.load(path)
    except Exception:
        if old:
            plugins.load(old.__file__)
        raise
    _loaded[name] = Extension(name, path)
    return _loaded[name]
