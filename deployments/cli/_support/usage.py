"""Format the questions to the judge and their cost for terminals."""

from collections.abc import Iterator, Mapping
from typing import Any

_MOST_REASONS = 5


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
