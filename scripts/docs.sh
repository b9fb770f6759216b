#!/usr/bin/env bash
# Builds the site into build/site: pages of docs/, and references generated from the build, the headers and
# the operator definitions. Fails on a page that nothing links to and on a link that leads nowhere.
#   scripts/docs.sh [BUILD]; then open build/site/index.html
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/${1:-build/release}
environment=build/docs-venv

scripts/environment.sh $environment requirements/docs.txt

# The table of the page on primitives is what this test sees.
mkdir -p build/docs
TENON_BUILD_DIR=$build PYTHONPATH=$build/python TENON_PRIMITIVES_TABLE=$PWD/build/docs/primitives_table.md \
  .venv/bin/python -m pytest -q tests/primitives/test_enumeration.py -k table_of_the_site

PYTHONPATH=$build/python:scripts $environment/bin/python -m site_pages --build "$build" --out build/docs
NO_MKDOCS_2_WARNING=1 $environment/bin/mkdocs build --quiet --strict --config-file build/docs/mkdocs.yml
PYTHONPATH=scripts $environment/bin/python -m site_pages.check_site build/site
echo "docs: build/site/index.html"
