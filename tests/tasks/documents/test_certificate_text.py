"""A certificate says what was found, and in how many questions."""

import pytest

from metric_core.calibration.planted_changes import Effect
from tasks.documents.calibration.certificate_text import certificate_lines
from tasks.record.judge_quality import Certificate, ChangeEntry
from tasks.record.stored_figures import JudgeName, parse_figure

SHARE = parse_figure({"value": 0.4})


def certificate(*, is_fault: bool) -> Certificate:
    changes = tuple(
        ChangeEntry(
            change=name, about="", effect=Effect.NONE, asked=asked, wrong=2, share=SHARE, p=0.2, is_fault=is_fault
        )
        for name, asked in (("order", 3), ("language", 5))
    )
    judge = JudgeName("builtin", "model", "1")
    return Certificate(
        created="2026-11-21T15:59:46+00:00",
        identity="1",
        judge=judge,
        run="runs/first",
        rows=5,
        questions=8,
        flips=SHARE,
        asked=8,
        changes=changes,
        versions={},
    )


@pytest.mark.parametrize(
    ("is_fault", "said", "count"),
    [(False, "; no fault in at most 5 questions a change, 2026-11-21", 1), (True, "; 2 faults, 2026-11-21", 3)],
)
def test_a_certificate_says_how_much_was_asked(is_fault: bool, said: str, count: int) -> None:
    first, *others = certificate_lines(certificate(is_fault=is_fault))
    assert first.endswith(said)
    assert len(others) == count - 1


def test_without_a_certificate_nothing_is_said() -> None:
    assert certificate_lines(None) == []
