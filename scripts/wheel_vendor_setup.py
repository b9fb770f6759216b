# SPDX-License-Identifier: Apache-2.0
"""The setup.py of packages of vendors' plugins: scripts/wheel_vendor.sh copies it beside their pyproject.toml.

Their libraries belong to a platform and to no version of Python, which pyproject.toml cannot say."""

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class PluginDistribution(Distribution):
    def has_ext_modules(self):
        return True  # the package belongs to a platform


class PluginWheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(distclass=PluginDistribution, cmdclass={"bdist_wheel": PluginWheel})
