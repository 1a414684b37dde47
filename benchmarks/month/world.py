"""The system, the data and the judge of an evaluation."""

import hashlib
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.tasks.models.judges.openai.fake_server import Fault, step

_STATEMENT = re.compile(r"Shop (\d+) opens at (\d+)(?: on night (\d+) of (\w+))?")


@dataclass
class World:
    """The system, the data and the judge of an evaluation.

    Args:
        folder: Folder of the data.
        rows: Number of rows.
        wrong: Share of responses that contradict their passage.
        strict: Share of right responses that the judge refuses.
        says_yes: True if the judge finds everything right.
        fault: Function that returns what the judge does instead of answering; None if it answers.
    """

    folder: Path
    rows: int = 60
    wrong: float = 0.05
    strict: float = 0.05
    says_yes: bool = False
    fault: Callable[[], Fault | dict[str, Any] | None] = field(default=lambda: None)

    @property
    def source(self) -> Path:
        """The file of responses."""
        return self.folder / "responses.jsonl"

    def write(
        self,
        night: int,
        *,
        rows: int | None = None,
        change: Callable[[dict[str, Any]], dict[str, Any]] = lambda row: row,
    ) -> None:
        """Write the responses of the system for a night.

        Args:
            night: Number of the night.
            rows: Number of rows; None for all.
            change: Function that changes each row.
        """
        chance = random.Random(night)
        count = self.rows if rows is None else rows
        self._write(self.source, [change(self._row(at, chance.random() < self.wrong, night)) for at in range(count)])

    def write_anchor(self) -> Path:
        """Write the rows that are judged every night, with responses that never change."""
        path = self.folder / "anchor.jsonl"
        self._write(path, [self._row(10_000 + number, number % 10 == 0, 0) for number in range(self.rows)])
        return path

    def mean(self, source: Path | None = None) -> float | None:
        """Return the mean of the scores of a file of responses; None if no run can have one.

        Args:
            source: The file; None means that of the next night.
        """
        try:
            rows = [json.loads(line) for line in (source or self.source).read_text("utf-8").splitlines()]
            found = [_STATEMENT.findall(f"{row['retrieved_contexts'][0]} {row['response']}") for row in rows]
        except (OSError, ValueError, KeyError):
            return None
        right = [
            self.says_yes or (len({hour for _, hour, *_ in both}) == 1 and not self._refuses(both[0][0]))
            for both in found
        ]
        return sum(right) / len(right) if right else None

    def judge(self, body: dict[str, Any]) -> dict[str, Any] | Fault:
        """Answer a question to the judge."""
        if (instead := self.fault()) is not None:
            return instead
        found = _STATEMENT.findall(str(body["messages"][-1]["content"]))
        if labels := body.get("structured_outputs", {}).get("choice"):
            hours = {hour for _, hour, *_ in found}
            is_right = self.says_yes or (len(hours) == 1 and not self._refuses(found[0][0]))
            label = labels[0] if is_right else labels[1]
            return {
                "content": label,
                "steps": [step(label, {each: 0.97 if each == label else 0.03 for each in labels})],
            }
        statements = [
            f"Shop {shop} opens at {hour} on night {night} of {name}."
            for shop, hour, night, name in dict.fromkeys(found)
            if night
        ]
        schema = body["response_format"]["json_schema"]["schema"]
        return {"content": json.dumps(dict.fromkeys(schema["properties"], statements))}

    def _refuses(self, shop: str) -> bool:
        """Return whether the judge refuses a response about a shop that is right."""
        return _share(shop, "strict") < self.strict

    def _row(self, number: int, is_wrong: bool, night: int) -> dict[str, Any]:
        hour = number % 12
        return {
            "id": f"r{number}",
            "user_input": f"When does the shop with number {number} open?",
            "response": f"Shop {number} opens at {hour + is_wrong} on night {night} of {self.folder.name}.",
            "retrieved_contexts": [f"Shop {number} opens at {hour}."],
            "reference": f"Shop {number} opens at {hour}.",
        }

    def _write(self, path: Path, rows: list[dict[str, Any]]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".new")
        temporary.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        temporary.replace(path)


def _share(*parts: str) -> float:
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32
