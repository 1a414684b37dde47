"""Show which judge gave the verdicts of a run."""

from collections.abc import Iterator

from tasks.findings.finding import Finding, RunRecords
from tasks.findings.judge.judge_view import judge_line, judge_lines, judge_view
from tasks.findings.parts import Fact, Templated
from tasks.findings.table import findings_of


def judged_by(run: RunRecords) -> Iterator[str]:
    """Yield the name of the judge, and whether it is calibrated."""
    if (judge := judge_line(run.record)) is not None:
        yield f"judge: {judge} (assay docs judge)"  # at most 80 columns


def judge_details(run: RunRecords) -> Iterator[str]:
    """Yield what is known of the judge, and what each of several judges answers."""
    yield run.record.judge.note
    yield from (f"- {line}" for line in judge_lines(run.record.judges))


def subheader(run: RunRecords) -> Templated:
    """Return the judge, for the report's header."""
    return Templated("judge/subheader.html.j2", {"judge": judge_line(run.record)})


def judge_section(run: RunRecords) -> Templated:
    """Return the section of the report on the judge and the origin of the rows, with the facts of other findings."""
    lists: dict[str, list[Fact]] = {}
    for finding in findings_of(run):
        for fact in () if finding.of_judge is None else finding.of_judge(run):
            lists.setdefault(fact.of_list, []).append(fact)
    provenance = [fact for each in findings_of(run) if each.provenance is not None for fact in each.provenance(run)]
    first = {"Agreement with people": lists.pop("", [])}
    content = {"judge": judge_view(run.record), "lists": {**lists, **first}, "provenance": provenance}
    return Templated("judge/section.html.j2", content)


FINDING = Finding(lines=judged_by, details=judge_details, subheader=subheader, section=judge_section)
