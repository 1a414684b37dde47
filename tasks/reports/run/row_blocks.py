"""Pack rows for the report's page: what the table shows as JSON, and the evidence in compressed blocks.

The page opens a block when one of its rows is opened, and all of them for a search.
"""

import base64
import zlib
from collections.abc import Mapping
from typing import Any

from tasks.reports.page import script_json
from tasks.reports.truncation import truncate_text

PARTS = "parts"
"""Value of a row with what findings show when it is opened: titles, each with a list of items."""

BLOCK = 400_000
"""Characters of JSON from which on a block is closed: a browser opens it in a few milliseconds."""

_EXCERPT = 240
"""Characters of a question or an answer in the table."""

_LEVEL = 4
_IN_TABLE = ("id", "number", "cells")


class RowBlocks:
    """Rows of a page, in blocks.

    Args:
        room: Number of bytes that the rows may take on the page; a block that does not fit is left out.
    """

    def __init__(self, room: int) -> None:
        self.rows: list[str] = []
        self.blocks: list[str] = []
        self.left_out = 0
        self._room = room
        self._clear()

    def add(self, view: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Add a row.

        Args:
            view: The row, from `row_view`.
            found: Values that findings give to the row. Its parts are evidence, the others are for the table.
        """
        evidence = {key: value for key, value in view.items() if key not in _IN_TABLE} | {PARTS: found[PARTS]}
        evidence["passages"] = [passage | {"pieces": self._number(passage["pieces"])} for passage in view["passages"]]
        excerpts = {name: view[name] and truncate_text(view[name]["text"], _EXCERPT) for name in ("question", "answer")}
        in_table = {key: view[key] for key in _IN_TABLE} | {key: found[key] for key in found if key != PARTS}
        place = {"block": len(self.blocks), "at": len(self._evidence)}
        self._lines.append(script_json(in_table | excerpts | place))
        self._evidence.append(script_json(evidence))
        self._size += len(self._evidence[-1])
        if self._size >= BLOCK:
            self.close_block()

    def close_block(self) -> None:
        """Compress the rows added since the last block, if any."""
        if not self._lines:
            return
        content = f'{{"passages":{script_json([*self._passages])},"rows":[{",".join(self._evidence)}]}}'
        packed = base64.b64encode(zlib.compress(content.encode(errors="replace"), _LEVEL)).decode()
        size = len(packed) + sum(len(line.encode(errors="replace")) for line in self._lines)
        if size > self._room:
            self.left_out += len(self._lines)
        else:
            self._room -= size
            self.rows += self._lines
            self.blocks.append(packed)
        self._clear()

    def _clear(self) -> None:
        self._lines: list[str] = []
        self._evidence: list[str] = []
        self._passages: dict[tuple[str, ...], int] = {}
        self._size = 0

    def _number(self, pieces: tuple[str, ...]) -> int:
        """Return the number of a passage in the block, which has each passage once."""
        if pieces not in self._passages:
            self._size += sum(map(len, pieces))
        return self._passages.setdefault(pieces, len(self._passages))
