"""Import what people have labelled on a page, and find what deserves another look."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from metric_core.calibration.labels import GivenLabel
from metric_core.errors import ConfigError, SourceError
from tasks.calibration.label_items import LabelItem, digest_frame
from tasks.calibration.label_sampling import DrawnSample, list_items
from tasks.calibration.label_store import keep_labels, read_exported, require_one_scale
from tasks.calibration.run_labels import Disagreement
from tasks.calibration.stored_labels import KnownLabels
from tasks.runs.finished_run import FinishedRun

_MIDDLE = 0.5


@dataclass(frozen=True, slots=True)
class ImportedLabels:
    """The labels of a run's items after an import.

    Args:
        path: File of the imported labels.
        is_claims: True if single claims are labelled, False for rows.
    """

    path: Path
    known: KnownLabels
    is_claims: bool


def import_labels(run: FinishedRun, metric: str, files: Sequence[Path]) -> ImportedLabels:
    """Store the labels that a page has exported, if all are about texts of a run.

    Raises:
        SourceError: A file has another format, or has labels of other texts.
        ConfigError: The run lacks the metric.
        RunFolderError: The labels cannot be stored.
    """
    labels = [label for file in files for label in read_exported(file, metric)]
    items, is_claims = list_items(run, metric, is_claims=False), False
    wanted = {label.item for label in labels}
    if not wanted & {item.digest for item in items}:
        items, is_claims = list_items(run, metric, is_claims=True), True
    if foreign := wanted - {item.digest for item in items}:
        raise SourceError(
            f"{len(foreign)} of {len(wanted)} labelled texts are not judged for {metric} in {run.folder}: the page was "
            "made for another run or metric, or the data has changed since"
        )
    frame = digest_frame(items)
    if any(label.probability is not None and label.frame != frame for label in labels):
        raise SourceError(
            f"the page was drawn from other texts than those of {run.folder} today. Name the run that it was made for; "
            "its labels then serve this run, too, as far as the texts are the same."
        )
    require_one_scale([*labels, *KnownLabels.of_items(items).stored], f"{metric} in {run.folder}")
    return ImportedLabels(keep_labels(labels, items), KnownLabels.of_items(items), is_claims)


def find_disagreements(items: Sequence[LabelItem], who: Disagreement) -> list[LabelItem]:
    """Return the items that people, judges, or both disagree on, or that the cheaper judge of a cascade has passed on.

    Those where the judge is least sure come first.
    """
    known = KnownLabels.of_items(items)
    if who is Disagreement.PEOPLE:
        contested = set(known.settled.contested)
        found = [item for item in items if item.digest in contested]
    elif who is Disagreement.JUDGES:
        found = [item for item in items if item.is_split]
    elif who is Disagreement.UNSURE:
        found = [item for item in items if len(item.votes) > 1 and item.digest not in known.settled.values]
    else:
        labels = known.settled.values
        found = [
            item
            for item in items
            if item.digest in labels and (labels[item.digest] > _MIDDLE) != (item.score >= _MIDDLE)
        ]
    unique = {item.digest: item for item in found}
    return sorted(unique.values(), key=lambda item: abs(item.belief - _MIDDLE))


def draw_disagreements(
    run: FinishedRun, metric: str, who: Disagreement, budget: int, *, is_claims: bool
) -> DrawnSample:
    """Return items that deserve a look, as `find_disagreements` does, not a random sample.

    Raises:
        ConfigError: There are none.
    """
    items = list_items(run, metric, is_claims=is_claims)
    found = find_disagreements(items, who)[:budget]
    if not found:
        of_judges = who in (Disagreement.JUDGES, Disagreement.UNSURE)
        advice = "; the judges of a panel vote on --claims" if of_judges and not is_claims else ""
        raise ConfigError(f"there is no disagreement ({who}) about {metric} in {run.folder}{advice}")
    return DrawnSample(tuple(found), None, None, digest_frame(items))


def given_labels(items: Sequence[LabelItem]) -> Mapping[str, Mapping[str, float | None]]:
    """Return who has labelled items, and how, by digest."""
    given: dict[str, dict[str, float | None]] = {item.digest: {} for item in items}
    stored = sorted(KnownLabels.of_items(items).stored, key=lambda each: each.labelled_at or "")
    for label in (each.given for each in stored):
        if isinstance(label, GivenLabel):
            given[label.item][label.annotator] = label.label
    return given
