"""Write the page on which people label rows or claims of a run: one HTML file that works offline.

The page shows no score and no verdict. The texts of a row are JSON in an element of their own, which the page parses
when the row is shown: one at a time, however many and however long they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from metric_core.errors import ConfigError
from tasks.calibration.label_items import LabelTexts, read_texts
from tasks.calibration.label_sampling import DrawnSample
from tasks.calibration.label_store import LabelPageFacts
from tasks.reports.page import render_page, script_json
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.atomic_files import write_output
from tasks.runtime.release import version

_STYLES, _SCRIPTS = ("report.css", "label.css"), ("dom.js", "label.js")
_YES_OR_NO = (("y", "Yes", 1.0), ("n", "No", 0.0))
_HIGHEST_KEY = 9


@dataclass(frozen=True, slots=True)
class LabelPage:
    """The question of a page of labels, and its answers.

    Args:
        ask: Question about each row; claims have their own.
        span: Lowest and highest grade, each a digit; None for yes and no.
        given: Digest -> who labelled an item, and how, if the page is to settle disagreements.
    """

    metric: str
    ask: str
    span: tuple[float, float] | None = None
    given: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)

    @property
    def answers(self) -> list[tuple[str, str, float]]:
        """Key, name and value of each answer.

        Raises:
            ConfigError: Grades have no keys.
        """
        if self.span is None:
            return list(_YES_OR_NO)
        low, high = self.span
        if not (low.is_integer() and high.is_integer() and 0 <= low < high <= _HIGHEST_KEY):
            raise ConfigError(f"grades on a page are keys from 0 to {_HIGHEST_KEY}, got {low:g} to {high:g}")
        return [(str(grade), str(grade), float(grade)) for grade in range(int(low), int(high) + 1)]

    def facts(self, run: FinishedRun, sample: DrawnSample) -> LabelPageFacts:
        """Return the facts by which an import finds that items of a sample are missing or changed.

        Raises:
            ConfigError: Grades have no keys.
        """
        return LabelPageFacts(
            run=run.run_id,
            metric=self.metric,
            sample=sample.digest,
            frame=sample.frame,
            is_final=bool(self.given),
            answers=tuple(sorted(value for *_, value in self.answers)),
            items=sample.drawn,
        )


def question_of(run: FinishedRun, metric: str) -> str:
    """Return what people are asked about a row by default, a yes to which is a high score."""
    found = next(each for each in run.record.metrics if each.key == metric)
    return found.question or f"Does this row deserve a high score? {found.summary or metric}"


def write_label_page(run: FinishedRun, sample: DrawnSample, page: LabelPage, out: Path) -> None:
    """Write the page of a sample.

    Raises:
        ConfigError: Grades have no keys.
        RunFolderError: The file cannot be written.
    """
    texts = read_texts(run, sample.items)
    rows: dict[LabelTexts, int] = {}
    items: list[dict[str, Any]] = []
    for item, (digest, probability, stratum) in zip(sample.items, sample.drawn, strict=True):
        shown = texts[item.key]
        row = LabelTexts("", shown.question, "", shown.passages, shown.answer, shown.reference)
        items.append(
            {
                "item": digest,
                "row": rows.setdefault(row, len(rows)),
                "ask": shown.ask or page.ask,
                "claim": shown.claim,
                "probability": probability,
                "stratum": stratum,
                "given": list(page.given.get(digest, {}).items()),
            }
        )
    facts = page.facts(run, sample)
    exported: dict[str, Any] = {"sample": facts.sample, "frame": facts.frame, "run": facts.run, "metric": facts.metric}
    exported |= {"is_final": facts.is_final, "labels": facts.answers, "page": facts.digest}
    data = {**exported, "answers": page.answers, "items": items}
    content = {
        "metric": page.metric,
        "count": len(items),
        "answers": page.answers,
        "is_final": bool(page.given),
        "version": version(),
        "data": _script(data),
        "rows": [_script(_row(row)) for row in rows],
    }
    write_output(out, render_page("label.html.j2", content, _STYLES, _SCRIPTS), "the page")


def _row(texts: LabelTexts) -> dict[str, Any]:
    shown = {"question": texts.question, "answer": texts.answer, "reference": texts.reference}
    return {**{name: text for name, text in shown.items() if text is not None}, "passages": texts.passages}


def _script(value: Any) -> Markup:
    return Markup(script_json(value))  # noqa: S704 escaped by script_json
