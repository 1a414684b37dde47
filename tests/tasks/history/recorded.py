"""Runs of a history in memory, for tests of its page."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tasks.history.incident import Incident
from tasks.history.recorded_run import KeptQuestions, RecordedMetric, RecordedRun, RunCost, RunDetails, missed_run_id
from tasks.record.outcome import OutcomeAlarm, OutcomeBaseline, RunOutcome
from tests.run_records import anchor_json
from tests.tasks.history.run_folders import START

METRICS = (
    *("faithfulness", "answer_relevancy", "context_precision", "context_utilization", "context_recall"),
    *("context_relevancy", "context_entity_recall", "answer_similarity", "answer_correctness", "factual_correctness"),
    *("noise_sensitivity", "nv_accuracy", "nv_context_relevance", "nv_response_groundedness"),
)


def nights(count: int, metrics: tuple[str, ...] = METRICS, text: str = "", slices: int = 0) -> list[RecordedRun]:
    """Return consecutive nights: the first is the baseline, every tenth fails the gate, every hundredth died.

    Args:
        count: Number of nights.
        metrics: Keys of the metrics.
        text: Text that is part of every name and message.
        slices: Number of slices.
    """
    return [_night(night, metrics, text, slices) for night in range(count)]


def _night(night: int, metrics: tuple[str, ...], text: str, slices: int) -> RecordedRun:
    died = night % 100 == 99
    failed = night % 10 == 9
    sentence = f"{metrics[0]} is worse {text}"
    outcome = RunOutcome(
        name="nightly",
        trigger="schedule",
        baseline=OutcomeBaseline(run_id="run-0", folder="", version="") if night else None,
        gate="failed" if failed else "passed",
        alarms=(OutcomeAlarm(metric=metrics[0], sentence=sentence),) if failed else (),
        accepted=night == 0,
        message=f"the gate failed {text}" if failed else "",
    )
    versions: dict[str, Any] = {"system": f"{night // 100} {text}", "judge": f"judge {night // 300}", "data": "d" * 12}
    found = [_metric(key, night, place) for place, key in enumerate(metrics)]
    found += [_metric(key, night, 1, f"{part} {text}") for part in range(slices) for key in metrics]
    return RecordedRun(
        run_id=f"run-{night}",
        name="nightly",
        created=START + timedelta(days=night),
        folder=f"/runs/2026-{night:04}-answers {text}",
        status="failed" if died else "completed",
        reason=f"the judge is down {text}" if died else "",
        rows=500,
        versions=versions,
        cost=RunCost(100.0 + night % 7, 300.0, 9000, 8000, 1000, 640_000, 3000),
        metrics=() if died else tuple(found),
        outcome=None if died else outcome,
        details=RunDetails() if died else _details(night),
    )


def _details(night: int) -> RunDetails:
    counts = {"answered": 400 - night % 9, "passage missing": night % 9}
    classes = [{"name": name, "count": count, "share": 0.5, "interval": None} for name, count in counts.items()]
    points = {"points": 900, "index": night % 9, "generator": 3, "unknown": 0}
    refusals = {"rows": 0, "recognized_by": "forms"}
    diagnosis = {
        "rows": 400,
        "classes": classes,
        "key_points": points,
        "refusals": refusals,
        "reasons": {},
        "lacking": {},
    }
    anchor = anchor_json(source="a.jsonl", metrics={"faithfulness": {"mean": 0.71}})
    return RunDetails.model_validate({"anchor": anchor, "diagnosis": diagnosis})


def _metric(key: str, night: int, place: int, slice_value: str = "") -> RecordedMetric:
    mean = 0.6 + 0.02 * place % 0.3 + (night * 37 % 11) / 300
    column = "language" if slice_value else ""
    return RecordedMetric(
        *(key, "lower" if key == "noise_sensitivity" else "higher", mean, mean - 0.03, mean + 0.03, 490, 6, 4),
        bounds=(0.0, 1.0),
        slice_column=column,
        slice=slice_value,
    )


FIGURES: dict[str, list[float]] = {METRICS[0]: [0.9, 0.5], "key points lost by the index": [3, 8]}
"""Figures of both runs over the questions of both, of `rebuilt`."""


def rebuilt(count: int) -> list[RecordedRun]:
    """Return consecutive nights, the last of which has other questions than those before."""
    runs = nights(count, METRICS[:2])
    before, last = runs[-2:]
    kept = KeptQuestions(before.run_id, before.created.isoformat(), 24, 0, 7, 7, 5, FIGURES)
    details = last.details.extend(kept_questions=kept)
    return [*runs[:-1], replace(last, details=details, versions={**last.versions, "data": "e" * 12})]


def month() -> tuple[list[RecordedRun], list[Incident]]:
    """Return thirty nights, of which seven have no results, and their incidents.

    Two nights had no data, two were missed, two died, and the last was missed. The first incidents overlap; of the
    others one was found by nights that did not start, and one by no run of the history.
    """
    runs = nights(30, METRICS[:4], slices=2)
    for night, run in enumerate(runs):
        due = run.created
        runs[night] = replace(run, trigger="schedule", due=due)
        if night in (5, 6):
            reason = "no such file: answers.jsonl"
            started = due + timedelta(minutes=2)
            runs[night] = RecordedRun.without_results(
                f"flow-run-{night}", "nightly", started, "failed", reason, "schedule", due=due
            )
        elif night in (18, 19, 29):
            run_id = missed_run_id("nightly", due)
            reason = "nothing ran it: no worker asked for work"
            runs[night] = RecordedRun.without_results(run_id, "nightly", due, "missed", reason, "schedule")
        elif night in (22, 23):
            runs[night] = replace(
                runs[night], status="failed", reason="the judge is down", metrics=(), outcome=None, details=RunDetails()
            )
    found = (
        ("no such file: answers.jsonl", 5, 7, "flow-run-5"),
        ("faithfulness is worse", 11, 16, "run-11"),
        ("the answers have been the same for 3 days", 14, 20, "run-14"),
        ("the judge is down", 22, 24, "flow-run-22"),
        ("3 runs were missed", 29, None, ""),
    )
    return runs, [_incident(*each) for each in found]


def _incident(sentence: str, opened: int, closed: int | None, run_id: str) -> Incident:
    """Return an incident that was found twenty minutes after its run had begun."""
    start, end = (None if night is None else START + timedelta(days=night, minutes=20) for night in (opened, closed))
    assert start is not None
    closing = "" if closed is None else f"run-{closed}"
    return Incident(sentence, "nightly", sentence, "alarm", sentence, start, start, end, 1, run_id, closing)


def open_incident(text: str = "") -> Incident:
    """Return an incident that is open since the second night."""
    opened = START + timedelta(days=1)
    sentence = f"the source has not changed {text}"
    return Incident("1", "nightly", "source", "source", sentence, opened, opened, times=3, run_id="run-1")
