"""Fails if a page of the built site would load anything from another host: a script, a style sheet, a font, a picture."""

import html.parser
import pathlib
import re
import sys

LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
RELATIONS_THAT_LOAD = {
    "stylesheet",
    "preload",
    "modulepreload",
    "icon",
    "preconnect",
    "dns-prefetch",
    "manifest",
}


class Page(html.parser.HTMLParser):
    """Collects the addresses that a browser fetches without a click."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "link" and RELATIONS_THAT_LOAD & set((attributes.get("rel") or "").split()):
            self.loaded.append(attributes.get("href") or "")
        elif tag in LOADS:
            self.loaded.append(attributes.get(LOADS[tag]) or "")


def loaded_by(path: pathlib.Path) -> list[str]:
    """The addresses that a page or a style sheet loads."""
    text = path.read_text()
    if path.suffix == ".css":
        return re.findall(r"""(?:url\(|@import\s+)["']?([^"')\s]+)""", text)
    page = Page()
    page.feed(text)
    return page.loaded


def main() -> int:
    site = pathlib.Path(sys.argv[1])
    files = [path for suffix in ("html", "css") for path in site.rglob(f"*.{suffix}")]
    if not files:
        print(f"{site}: no pages", file=sys.stderr)
        return 1
    foreign = [
        f"{path}: loads {address}"
        for path in sorted(files)
        for address in loaded_by(path)
        if re.match(r"(https?:)?//", address)
    ]
    print("\n".join(foreign), end="\n" if foreign else "")
    return 1 if foreign else 0


if __name__ == "__main__":
    sys.exit(main())
