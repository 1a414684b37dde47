"""Measure how far the judges of a panel agree."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, TypeAlias

from metric_core.stages import Stage
from metric_core.statistics.agreement import Agreement, Labels, measure_agreement
from tasks.findings.finding import Finding, RunRecords, WrittenRows
from tasks.findings.parts import Fact
from tasks.record.findings import FindingMap
from tasks.runs.panel_votes import read_votes
from tasks.runtime.wording import format_percent

_GROUPS = {Stage.VERDICTS: "kind", Stage.RATINGS: "metric"}
"""Mapping from stage with votes of a panel to the column that groups them."""

Agreements: TypeAlias = Mapping[str, dict[str, Agreement]]
"""Stage -> kind of verdict or metric -> agreement."""


class PanelAgreement(FindingMap[dict[str, Agreement]]):
    """The agreement of the judges of a panel: stage -> kind of verdict or metric -> agreement."""

    entry: ClassVar[str] = "agreement"


def measure(rows: WrittenRows) -> Iterator[PanelAgreement]:
    """Yield the agreement."""
    yield PanelAgreement(measure_panel_agreement(rows.folder.path))


def measure_panel_agreement(folder: Path) -> dict[str, dict[str, Agreement]]:
    """Return the agreement of a panel by stage, and by kind of verdict or metric.

    Args:
        folder: Run folder with the stage tables.
    """
    agreements: dict[str, dict[str, Agreement]] = {}
    for stage, group in _GROUPS.items():
        labels: dict[str, list[Labels]] = defaultdict(list)
        for name, votes in read_votes(folder, stage, group):
            labels[name].append({vote["judge"]: vote["label"] for vote in votes})
        agreements[str(stage)] = {name: measure_agreement(items) for name, items in sorted(labels.items())}
    return {stage: groups for stage, groups in agreements.items() if groups}


def panel_lines(run: RunRecords) -> Iterator[str]:
    """Yield a line about the agreement."""
    if (line := agreement_line(run.summary.find_all(PanelAgreement))) is not None:
        yield line


def agreement_line(agreements: Agreements) -> str | None:
    """Return a line about the agreement of the judges of a panel; None without a panel.

    >>> support = Agreement(("a", "b"), 20, 20, agreement=0.9, alpha=0.7812, unlabelled={})
    >>> agreement_line({"verdicts": {"support": support}})
    'agreement of 2 judges: support 0.90 (alpha 0.78, 20 answers)'
    """
    groups = {name: found for stage in agreements.values() for name, found in stage.items()}
    if not groups:
        return None
    judges = max(len(found.judges) for found in groups.values())
    return f"agreement of {judges} judges: " + ", ".join(_agreement(name, found) for name, found in groups.items())


def _agreement(name: str, found: Agreement) -> str:
    if found.agreement is None:
        return f"{name} - (nothing to compare)"
    alpha = "" if found.alpha is None else f"alpha {found.alpha:.2f}, "
    return f"{name} {found.agreement:.2f} ({alpha}{found.compared:,} answers)"


def panel_facts(run: RunRecords) -> Iterator[Fact]:
    """Yield the agreement on each kind of question, for the report."""
    for groups in run.summary.find_all(PanelAgreement).values():
        for name, found in groups.items():
            share = "none compared"
            if found.agreement is not None:
                share = f"{format_percent(found.agreement)} of pairs of labels equal"
            alpha = "" if found.alpha is None else f", Krippendorff's alpha {found.alpha:.2f}"
            items = f"({found.compared:,} of {found.items:,} items)"
            yield Fact(name.replace("_", " "), (f"{share}{alpha}",), items, of_list="Agreement within the panel")


FINDING = Finding(summary=(PanelAgreement,), count=measure, details=panel_lines, of_judge=panel_facts)
