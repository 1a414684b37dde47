"""Show the anchor of a run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tasks.findings.anchor.anchor_evidence import AnchorEvidence
from tasks.findings.anchor.anchor_record import AnchorOf, AnchorRecord, repeat_of
from tasks.findings.anchor.anchor_view import anchor_line, anchor_view
from tasks.findings.anchor.judge_incidents import find_judge_incidents
from tasks.findings.finding import Finding, RunRecords
from tasks.findings.on_judge import OnJudge
from tasks.findings.parts import Templated
from tasks.findings.repeats.judge_drift import find_changed_judges
from tasks.record.findings import Findings

SCALE = 10_000
"""Means are whole numbers of ten-thousandths in the page of a history."""


def anchor_lines(run: RunRecords) -> Iterator[str]:
    """Yield a line about the anchor."""
    if (line := anchor_line(run.record.find(AnchorRecord))) is not None:
        yield line


def anchor_section(run: RunRecords) -> Templated:
    """Return the section of the report on the anchor."""
    return Templated("anchor/section.html.j2", {"anchor": anchor_view(run.record.find(AnchorRecord))})


def missing_scores(run: RunRecords) -> Iterable[str]:
    """Return a sentence if the anchor of a run has no scores."""
    anchor = run.record.find(AnchorRecord)
    return () if anchor is None else anchor.missing_scores


def anchor_columns(runs: Sequence[Findings]) -> Mapping[str, Any]:
    """Return the means of the anchor rows, which move only if the judge does."""
    anchors = [run.find(AnchorRecord) for run in runs]
    found = [{} if anchor is None else {key: each.mean for key, each in anchor.metrics.items()} for anchor in anchors]
    columns = {
        key: [means.get(key) for means in found]
        for key in dict.fromkeys(key for means in reversed(found) for key in means)
    }
    shown = {
        key: [None if mean is None else round(mean * SCALE) for mean in means]
        for key, means in columns.items()
        if any(mean is not None for mean in means)
    }
    return {"anchor": shown}


def judge_version(run: Findings) -> str:
    """Return whether the judges answer about anchor rows as they did; empty if they were not asked again."""
    found = repeat_of(run)
    changed = ((each.judge, each.change) for each in find_changed_judges(found))
    others = " and ".join(f"{judge} since {change.since[:10]}" for judge, change in changed if change is not None)
    return f"others of {others}" if others else "as they were" if found is not None else ""


FINDING = Finding(
    record=(AnchorRecord, AnchorOf),
    lines=anchor_lines,
    section=anchor_section,
    lacks=missing_scores,
    history=anchor_columns,
    on_judge=OnJudge(evidence=AnchorEvidence, incidents=find_judge_incidents, version=judge_version),
)
