# SPDX-License-Identifier: Apache-2.0
"""Checks a built site: python -m site_pages.check_site build/site

Every link and image inside the site must lead to a file and, where it names one, to an anchor in it; every
page must be linked from another page, and the search must find it.
"""

import html.parser
import json
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in ("href", "src") and value is not None and tag != "base":
                self.links.append(value)


def problems(site: pathlib.Path) -> list[str]:
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}
    found, linked = [], set()
    for file, page in pages.items():
        if file.name == "404.html":
            continue  # its links begin at the root of the server
        for link in page.links:
            target = urllib.parse.urlsplit(link)
            if target.scheme or target.netloc:
                continue
            path = urllib.parse.unquote(target.path)
            other = (file.parent / path).resolve() if path else file
            if other.is_dir():
                other /= "index.html"
            where = f"{file.relative_to(site)}: {link}"
            if not other.exists():
                found.append(f"{where}: there is no such file")
            elif target.fragment and other in pages:
                if urllib.parse.unquote(target.fragment) not in pages[other].anchors | {"__skip"}:
                    found.append(f"{where}: the page has no such anchor")
            if other != file:
                linked.add(other)
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    searched = {(site / entry["location"].partition("#")[0]).resolve() for entry in index["docs"]}
    searched = {path / "index.html" if path.is_dir() else path for path in searched}
    for file in pages:
        if file.name == "404.html":
            continue
        name = str(file.relative_to(site))
        if file not in linked:
            found.append(f"{name}: no page links to it")
        if file not in searched:
            found.append(f"{name}: the search does not know it")
    return found


def main() -> None:
    site = pathlib.Path(sys.argv[1]).resolve()
    found = problems(site)
    print("\n".join(found[:50]), end="\n" if found else "")
    if found:
        sys.exit(f"check_site: {len(found)} problems")
    print(f"check_site: {len(list(site.rglob('*.html')))} pages, no dead link")


if __name__ == "__main__":
    main()
