"""Show which judge gave the verdicts of a run."""

from collections.abc import Iterator

from tasks.findings.finding import Finding, RunRecords, Templated
from tasks.findings.judge.judge_view import judge_lines, judge_view
from tasks.findings.table import findings_of
from tasks.reports.calibration.calibration_text import agreement_lines
from tasks.reports.calibration.cascade_text import cascade_lines
from tasks.reports.calibration.certificate_text import certificate_lines
from tasks.reports.run.judge_name import judge_line


def judged_by(run: RunRecords) -> Iterator[str]:
    """Yield the name of the judge, and whether it is calibrated."""
    if (judge := judge_line(run.record)) is not None:
        yield f"judged by {judge} (docs/judge.md)"
    yield from cascade_lines(run.record.cascade, run.summary.cascade)


def judge_details(run: RunRecords) -> Iterator[str]:
    """Yield what is known of the judge, and what each of several judges answers."""
    record = run.record
    yield record.judge.note
    yield from (f"- {line}" for line in judge_lines(record.judges))
    yield from (f"agreement with people: {line}" for line in agreement_lines(record))
    yield from (f"planted changes: {line}" for line in certificate_lines(record.certificate))


def judge_section(run: RunRecords) -> Templated:
    """Return the section of the report on the judge and the origin of the rows, with the facts of other findings."""
    facts = [fact for each in findings_of(run) if each.of_judge is not None for fact in each.of_judge(run)]
    provenance = [fact for each in findings_of(run) if each.provenance is not None for fact in each.provenance(run)]
    content = {
        "judge": judge_view(run.record, run.summary),
        "facts": facts,
        "provenance": provenance,
        "calibration": agreement_lines(run.record),
        "certificate": certificate_lines(run.record.certificate),
        "cascade": cascade_lines(run.record.cascade, run.summary.cascade),
    }
    return Templated("judge/section.html.j2", content)


FINDING = Finding(lines=judged_by, details=judge_details, section=judge_section)
