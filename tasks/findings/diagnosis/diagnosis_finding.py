"""Count and show what happened to the answers of a run."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from metric_core.declarations.diagnosis_class import SystemPart
from metric_core.question_kinds import QuestionKind
from tasks.comparison.run_pair import RunPair
from tasks.findings.diagnosis.diagnosis_changes import count_lost_points
from tasks.findings.diagnosis.diagnosis_comparison import COMPARISON
from tasks.findings.diagnosis.diagnosis_counts import DiagnosisCounts
from tasks.findings.diagnosis.diagnosis_view import (
    class_counts,
    diagnosis_line,
    diagnosis_view,
    key_points_line,
    read_row_diagnoses,
)
from tasks.findings.diagnosis.run_diagnosis import count_diagnoses
from tasks.findings.finding import Finding, RunRecords, WrittenRows
from tasks.findings.parts import Templated
from tasks.record.findings import Findings
from tasks.runs.judge_roles import judge_name, judge_of_kind


def count(rows: WrittenRows) -> Iterator[DiagnosisCounts]:
    """Yield the counts of the classes; a language model may have recognized the refusals."""
    is_served = judge_of_kind(rows.record, [QuestionKind.REFUSAL]).language_model
    yield count_diagnoses(rows.folder, rows.requests, rows.groups, is_served=is_served)


def headline(run: RunRecords) -> Iterator[str]:
    """Yield how many answers are good, how many key points they state, and whose fault the others are."""
    found = run.summary.find(DiagnosisCounts)
    if (diagnosis := diagnosis_line(found)) is not None:
        yield diagnosis
    if (points := key_points_line(found)) is not None:
        yield f"key points: {points}"


def details(run: RunRecords) -> Iterator[str]:
    """Yield the number of rows of each class."""
    if (classes := class_counts(run.summary.find(DiagnosisCounts))) is not None:
        yield f"rows: {classes}"


def header(run: RunRecords) -> Templated:
    """Return how many answers are good, and the faults of the others, for the report's header."""
    found = run.summary.find(DiagnosisCounts)
    content = {"verdict": diagnosis_line(found, judge_name(run.record)), "diagnosis": diagnosis_view(found)}
    return Templated("diagnosis/header.html.j2", content)


def section(run: RunRecords) -> Templated:
    """Return the section of the report."""
    return Templated("diagnosis/section.html.j2", {"diagnosis": diagnosis_view(run.summary.find(DiagnosisCounts))})


def class_filter(run: RunRecords) -> Templated:
    """Return the filter of the rows by their class."""
    return Templated("diagnosis/filter.html.j2", {"diagnosis": diagnosis_view(run.summary.find(DiagnosisCounts))})


def classes_of_rows(run: RunRecords, row_ids: Sequence[str]) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Return a function that returns the diagnosis of a row."""
    found = read_row_diagnoses(run.folder, run.summary.find(DiagnosisCounts), row_ids)
    return lambda sample: {"diagnosis": found.get(sample["row_id"])}


def columns_of_history(runs: Sequence[Findings]) -> Mapping[str, Any]:
    """Return the number of rows in each class of the diagnosis, without classes that have none, and the key points."""
    diagnoses = [run.find(DiagnosisCounts) for run in runs]
    found = [{} if each is None else {one.name: one.count for one in each.classes} for each in diagnoses]
    names = dict.fromkeys(name for classes in reversed(found) for name in classes)
    columns = {name: [classes.get(name) for classes in found] for name in names}
    shown = {name: counts for name, counts in columns.items() if any(counts)}
    return {"diagnosis": shown, "key_points": key_point_counts(runs)}


def key_point_counts(runs: Sequence[Findings]) -> dict[str, list[int | None]]:
    """Return the key points of each run, and those that each part of the system lost; lists of zeros are left out.

    Args:
        runs: Kept parts of runs, oldest first; a run that judged no key points has None.
    """
    names = {
        "points": "key points",
        **{str(part): f"lost by the {part}" for part in SystemPart},
        "unknown": "lost by an unknown part",
    }
    diagnoses = [run.find(DiagnosisCounts) for run in runs]
    found = [(None if each is None else each.key_points) or {} for each in diagnoses]
    counts = {words: [each.get(name) for each in found] for name, words in names.items()}
    return {words: of_runs for words, of_runs in counts.items() if any(of_runs)}


def lost_points(pair: RunPair, left_out: Collection[str]) -> Mapping[str, tuple[float, float]]:
    """Return how many key points answers lack in both runs, by the part that lost them."""
    return {f"key points lost by {part}": counts for part, counts in count_lost_points(pair, left_out).items()}


FINDING = Finding(
    summary=(DiagnosisCounts,),
    count=count,
    headline=headline,
    details=details,
    header=header,
    filter=class_filter,
    section=section,
    rows=classes_of_rows,
    history=columns_of_history,
    history_rows=key_point_counts,
    kept_figures=lost_points,
    comparison=COMPARISON,
)
