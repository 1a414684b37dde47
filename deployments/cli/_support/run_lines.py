"""Lines about a run for terminals: cells without a value, what was reused, and what was asked of the judge."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from metric_core.reasons import why_left_out
from tasks.runtime.wording import shorten_path

_MOST_REASONS = 5


def reason_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield one line per reason for cells without a value, with the metrics and counts."""
    return _by_reason(
        (reason, f"{metric['metric']} ({count})")
        for metric in summary["metrics"]
        for reason, count in metric["reasons"].items()
    )


def left_out_lines(left_out: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield one line per reason for metrics that are not computed by default.

    Args:
        left_out: Metric -> the columns that the data lacks for it; none if the judge cannot rate.

    >>> list(left_out_lines({"hit_rate": ["qrels"], "nv_accuracy": [], "ndcg": ["qrels"]}))
    ['no qrels: hit_rate, ndcg', 'needs a language-model judge: nv_accuracy']
    """
    return _by_reason((why_left_out(lacking), metric) for metric, lacking in left_out.items())


def _by_reason(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for reason, what in pairs:
        by_reason.setdefault(reason, []).append(what)
    yield from (f"{reason}: {', '.join(found)}" for reason, found in by_reason.items())


def unscored_line(summary: Mapping[str, Any]) -> str | None:
    """Return the number of cells without a score; None if there are none.

    >>> unscored_line({"metrics": [{"undefined": 9, "failed": 2}, {"undefined": 1, "failed": 0}]})
    '12 cells have no score, 2 of them failed: see the report, or --verbose'
    """
    undefined, failed = (sum(metric[status] for metric in summary["metrics"]) for status in ("undefined", "failed"))
    count = undefined + failed
    if not count:
        return None
    of_them = f", {failed:,} of them failed" if failed else ""
    return f"{count:,} {'cell has' if count == 1 else 'cells have'} no score{of_them}: see the report, or --verbose"


def incremental_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about the run that was rerun and about the baseline.

    Args:
        manifest: Content of run.json.

    >>> list(incremental_lines({"parent": {"folder": "runs/a"}, "rerun": {"rows_anew": 1}, "rows": 2000}))
    ['rerun of runs/a: 1 of 2,000 rows recomputed']
    """
    if parent := manifest.get("parent"):
        recomputed = manifest["rerun"]["rows_anew"]
        yield f"rerun of {shorten_path(parent['folder'])}: {recomputed:,} of {manifest['rows']:,} rows recomputed"
    if baseline := manifest.get("baseline"):
        yield f"compared with {shorten_path(baseline['folder'])}: {_row_counts(baseline)}; {_question_counts(baseline)}"


def _row_counts(baseline: Mapping[str, Any]) -> str:
    rows = baseline["rows"]
    columns = ", ".join(f"{column} {count:,}" for column, count in baseline["changed_columns"].items())
    noun = "row" if rows["changed"] == 1 else "rows"
    parts = [f"{rows['changed']:,} {noun} changed ({columns})"] if rows["changed"] else []
    parts += [f"{rows[kind]:,} {kind}" for kind in ("added", "removed") if rows[kind]]
    return ", ".join(parts) or "no row changed"


def _question_counts(baseline: Mapping[str, Any]) -> str:
    return f"{baseline['asked']:,} of {baseline['questions']:,} questions asked"


def usage_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the number of questions, if no table shows it.

    Args:
        manifest: Content of run.json.

    >>> list(usage_lines({"usage": {"questions": 1200, "stored": 300, "requests": 0}}))
    ['1,200 questions to the judge, 300 of them cached']
    """
    usage = manifest["usage"]
    if usage["questions"] and not usage["requests"]:
        cached = f", {usage['stored']:,} of them cached" if usage["stored"] else ""
        yield f"{usage['questions']:,} questions to the judge{cached}"


def failure_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reasons for answers of the judge that failed.

    Args:
        manifest: Content of run.json.

    >>> list(failure_lines({"usage": {"failed": {"cut off": 2}}}))
    ['failed answers, cut off: 2']
    """
    failed = sorted(manifest["usage"]["failed"].items(), key=lambda entry: entry[1], reverse=True)
    yield from (f"failed answers, {reason}: {count:,}" for reason, count in failed[:_MOST_REASONS])
    if rest := failed[_MOST_REASONS:]:
        yield f"failed answers, for {len(rest)} other reasons: {sum(count for _, count in rest):,}"


def agreement_line(summary: Mapping[str, Any]) -> str | None:
    """Return a line about the agreement of the judges of a panel; None without a panel.

    Args:
        summary: Content of summary.json.

    >>> support = {"judges": ["a", "b"], "compared": 20, "agreement": 0.9, "kappa": 0.7812}
    >>> agreement_line({"agreement": {"verdicts": {"support": support}}})
    'agreement of 2 judges: support 0.90 (kappa 0.78, 20 answers)'
    """
    groups = {name: entry for stage in summary.get("agreement", {}).values() for name, entry in stage.items()}
    if not groups:
        return None
    judges = max(len(entry["judges"]) for entry in groups.values())
    return f"agreement of {judges} judges: " + ", ".join(_agreement(name, entry) for name, entry in groups.items())


def _agreement(name: str, entry: Mapping[str, Any]) -> str:
    if entry["agreement"] is None:
        return f"{name} - (nothing to compare)"
    kappa = "" if entry["kappa"] is None else f"kappa {entry['kappa']:.2f}, "
    return f"{name} {entry['agreement']:.2f} ({kappa}{entry['compared']:,} answers)"
