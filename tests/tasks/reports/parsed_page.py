"""Parse a page: its elements with their attributes, and its texts."""

import base64
import json
import zlib
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "input", "wbr", "br"}


class Page(HTMLParser):
    """A parsed page: elements with their attributes, and texts with their elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.append((self._open[-1], data))

    def count(self, tag: str) -> int:
        return sum(found == tag for found, _ in self.elements)

    @property
    def text(self) -> str:
        """Text that is visible before any script runs, with normalized white space."""
        return " ".join("".join(data for tag, data in self.texts if tag not in {"script", "style"}).split())

    @property
    def data(self) -> Any:
        """JSON data of the page; its rows have their evidence, which is in compressed blocks."""
        data = json.loads(next(text for tag, text in self.texts if tag == "script"))
        blocks = [json.loads(zlib.decompress(base64.b64decode(block))) for block in data.get("blocks", ())]
        for row in data["rows"] if blocks else ():
            block = blocks[row["block"]]
            row.update(block["rows"][row["at"]])
            for passage in row["passages"]:
                passage["pieces"] = block["passages"][passage["pieces"]]
        return data


def read_rows(page: str) -> str:
    """Return the rows of a report, with their evidence, as JSON."""
    return json.dumps(Page(page).data["rows"], ensure_ascii=False)
