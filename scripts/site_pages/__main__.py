# SPDX-License-Identifier: Apache-2.0
"""python -m site_pages --build build/release --out build/docs

Writes OUT/pages, which MkDocs reads, and OUT/mkdocs.yml with the navigation.
"""

import argparse
import pathlib
import shutil

import yaml

from . import (
    bound_operators,
    compat_namespaces,
    headers,
    navigation,
    operators,
    phi_operators,
    python_reference,
    sources,
    training_classes,
)

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    pages = options.out / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    generated = {
        **sources.pages(ROOT, options.out / "primitives_table.md"),
        **operators.pages(ROOT, options.build),
        **python_reference.pages(),
        **training_classes.pages(),
        **phi_operators.pages(),
        **bound_operators.pages(ROOT),
        **compat_namespaces.pages(),
        **headers.pages(ROOT / "sdk" / "include" / "tenon"),
    }
    for path, text in generated.items():
        file = pages / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "images", pages / "images")
    shutil.copytree(ROOT / "docs" / "assets", pages / "assets")
    config = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": str(pages.resolve()),
        "site_dir": str((ROOT / "build" / "site").resolve()),
        "nav": navigation.tree(generated),
    }
    text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    (options.out / "mkdocs.yml").write_text(text, encoding="utf-8")


main()
