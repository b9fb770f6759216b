# SPDX-License-Identifier: Apache-2.0
"""What a report of a bug should say about the machine."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import tenon

# Settings that change what Tenon and its libraries do.
_PREFIXES = ("TENON_", "OMP_", "MKL_", "OPENBLAS_", "CUDA_VISIBLE", "HIP_VISIBLE", "KMP_", "GOMP_")


def collect_env() -> str:
    """Versions, processor, devices, plugins and settings, as text."""
    lines = [
        f"tenon {tenon.__version__}, {Path(tenon.__file__).parent}",
        f"python {platform.python_version()} ({platform.python_implementation()}), {sys.executable}",
        f"system {platform.platform()}, {_libc()}",
        f"processor {_processor()}, {os.cpu_count()} logical, {len(os.sched_getaffinity(0))} usable",
        f"memory {_memory()}",
        f"threads of Tenon {tenon.get_num_threads()}",
    ]
    for device in tenon.devices():
        properties = tenon.device_properties(device)
        details = ", ".join(f"{key}={value}" for key, value in properties.items() if value != "")
        lines.append(f"device {device}: {details}")
    for plugin in tenon.plugins.list():
        version = plugin.get("version", "")
        lines.append(f"plugin {plugin['name']} {version} {plugin['state']}, {plugin['path']}")
    for name in ("numpy", "nanobind"):
        lines.append(f"{name} {_version(name)}")
    settings = {name: value for name, value in os.environ.items() if name.startswith(_PREFIXES)}
    lines += [f"setting {name}={value}" for name, value in sorted(settings.items())]
    return "\n".join(lines)


def _libc() -> str:
    return " ".join(platform.libc_ver()) or "unknown C library"


def _version(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "is not installed"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [
                line.partition(":")[2].strip() for line in file if line.startswith("model name")
            ]
        return names[0] if names else platform.machine()
    except OSError:
        return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        with open("/proc/meminfo", encoding="utf-8") as file:
            kib = {line.partition(":")[0]: line.split()[1] for line in file}
        total, free = (int(kib[key]) / 1024**2 for key in ("MemTotal", "MemAvailable"))
        return f"{total:.1f} GiB, {free:.1f} GiB available"
    except (OSError, KeyError, ValueError):
        return "unknown"
