"""Keep the labels of people: who gave them, when, for which texts, and with which probability these were drawn.

The labels of an import are a Parquet file in ASSAY_HOME/labels, and the digests of all that could have been drawn are
another one, so that labels hold for every run with the same texts.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from metric_core.calibration.labels import GivenLabel
from metric_core.errors import RunFolderError, SourceError
from metric_core.parsing.regular_files import regular
from metric_core.parsing.strict_json import parse_json
from tasks.calibration.label_items import LabelItem, digest_frame
from tasks.runtime.atomic_files import atomic_file, create_private_folder, translate_write_errors
from tasks.runtime.home import assay_home
from tasks.runtime.jsonl_text import split_json_lines
from tasks.runtime.wording import prefix_place

FOLDER, FRAMES = "labels", "frames"
_SCHEMA = pa.schema(
    [
        pa.field("item", pa.string(), nullable=False),
        pa.field("annotator", pa.string(), nullable=False),
        pa.field("label", pa.float64()),
        pa.field("labelled_at", pa.string()),
        pa.field("sample", pa.string(), nullable=False),
        pa.field("frame", pa.string(), nullable=False),
        pa.field("probability", pa.float64()),
        pa.field("stratum", pa.string()),
        pa.field("is_final", pa.bool_(), nullable=False),
        pa.field("answers", pa.list_(pa.float64()), nullable=False),
    ]
)
YES_OR_NO = (0.0, 1.0)
"""Answers of a page without grades."""
_ALTERED = (
    "Lines were removed or changed after the export, so that the labels may be no sample, or of other texts. Export "
    "again, and import the file as it is"
)
_FRAME = pa.schema([pa.field("item", pa.string(), nullable=False)])


def _check_time(text: str) -> str:
    datetime.fromisoformat(text)
    return text


LabelTime: TypeAlias = Annotated[str, AfterValidator(_check_time)]
"""Time of an answer, in ISO 8601."""


@dataclass(frozen=True, slots=True)
class StoredLabel:
    """An item of a page, with what a person said about it.

    Args:
        item: Digest of the texts that were shown.
        label: 0 or 1, or a grade; None if the person was not sure, or has not come to it.
        labelled_at: Time of the answer, in ISO 8601; None without one.
        sample: Digest of the sample that the item was drawn in.
        frame: Digest of all that could have been drawn.
        probability: Probability with which the item was drawn; None if it was not chosen by chance.
        is_final: True if the label settles a disagreement.
        answers: Labels that the page offers, in ascending order.
    """

    item: Annotated[str, Field(min_length=1)]
    annotator: Annotated[str, Field(pattern=r"\S", max_length=200)]
    label: Annotated[float, Field(allow_inf_nan=False)] | None
    labelled_at: LabelTime | None
    sample: str
    frame: str
    probability: Annotated[float, Field(gt=0, le=1)] | None
    stratum: str | None
    is_final: bool = False
    answers: tuple[float, ...] = YES_OR_NO

    @property
    def given(self) -> GivenLabel | None:
        """The label; None if the person has not come to the item."""
        if self.labelled_at is None:
            return None
        return GivenLabel(self.item, self.annotator, self.label, self.labelled_at, self.is_final)


@dataclass(frozen=True, slots=True)
class LabelPageFacts:
    """A page of labels, as its items are exported.

    Args:
        run: Id of the run.
        sample: Digest of the sample that the items were drawn in.
        frame: Digest of all that could have been drawn.
        is_final: True if the labels settle disagreements.
        answers: Labels that the page offers, in ascending order.
        items: Digest of each item, its probability and its stratum, in order.
    """

    run: str
    metric: str
    sample: str
    frame: str
    is_final: bool
    answers: tuple[float, ...]
    items: tuple[tuple[str, float | None, str | None], ...]

    @property
    def digest(self) -> str:
        """Digest by which an import finds that lines are missing, or are not as they were exported."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExportedLabel(StoredLabel):
    """A line of what a page exports.

    Args:
        run: Id of the run.
        page: Digest of the page, see `LabelPageFacts`.
    """

    run: str
    metric: str
    page: str


_LABEL = TypeAdapter(_ExportedLabel)


def read_exported(path: Path, metric: str) -> list[StoredLabel]:
    """Read a file that the page of labels has exported.

    Args:
        metric: Metric that the page must be about.

    Raises:
        SourceError: The file cannot be read, is none of these, or is not as the page exported it.
    """
    try:
        lines = split_json_lines(regular(path).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from error
    labels = [_parse(path, number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not labels:
        raise SourceError(f"{path} has no labels")
    if other := {label.metric for label in labels} - {metric}:
        raise SourceError(f"{path} has labels of {', '.join(sorted(other))}, wanted {metric}; name it with --metric")
    _check_pages(path, labels)
    return [StoredLabel(**{name: getattr(label, name) for name in _SCHEMA.names}) for label in labels]


def _parse(path: Path, number: int, line: str) -> _ExportedLabel:
    place = f"line {number} of {path} is not a label"
    wanted = "Import files that the page of `assay label` has exported."
    try:
        parse_json(line)
        label = _LABEL.validate_json(line, strict=True)
    except ValidationError as error:
        problem = error.errors()[0]
        raise SourceError(f"{place} ({prefix_place(problem['loc'], problem['msg'])}). {wanted}") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{place} ({error}). {wanted}") from error
    if label.label is not None and label.label not in label.answers:
        answers = ", ".join(f"{answer:g}" for answer in label.answers)
        raise SourceError(f"{place} (label: got {label.label:g}, wanted one of {answers}). {wanted}")
    if label.label is not None and label.labelled_at is None:
        raise SourceError(f"{place} (labelled_at: a label without a time). {wanted}")
    return label


def _check_pages(path: Path, labels: Sequence[_ExportedLabel]) -> None:
    """Check that each page is as it was written; a file may hold what several people, or one twice, have exported."""
    pages: dict[tuple[str, str], dict[str, _ExportedLabel]] = {}
    for label in labels:
        items = pages.setdefault((label.page, label.annotator), {})
        first = items.setdefault(label.item, label)
        if (first.probability, first.stratum) != (label.probability, label.stratum):
            raise SourceError(f"{path} has two probabilities or strata of one text. {_ALTERED}")
    for (digest, _), items in pages.items():
        facts = {
            (each.run, each.metric, each.sample, each.frame, each.is_final, each.answers) for each in items.values()
        }
        drawn = tuple((each.item, each.probability, each.stratum) for each in items.values())
        if len(facts) > 1 or LabelPageFacts(*facts.pop(), items=drawn).digest != digest:
            raise SourceError(f"{path} is not as its page exported it. {_ALTERED}")


def keep_labels(labels: Sequence[StoredLabel], items: Sequence[LabelItem]) -> Path:
    """Store imported labels, and return their file; importing the same labels again changes nothing.

    Args:
        items: All items of the run that could have been drawn, if this is what the labels' frame says.

    Raises:
        RunFolderError: The file cannot be written.
    """
    folder = assay_home() / FOLDER
    rows = [asdict(label) for label in labels]
    name = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:32]
    with translate_write_errors(f"the labels in {folder}", RunFolderError):
        create_private_folder(folder / FRAMES)
        frame = folder / FRAMES / f"{digest_frame(items)}.parquet"
        if not frame.exists():
            digests = sorted({item.digest for item in items})
            with atomic_file(frame) as temporary:
                pq.write_table(pa.table({"item": digests}, schema=_FRAME), temporary)
        path = folder / f"{name}.parquet"
        with atomic_file(path) as temporary:
            pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), temporary)
    return path


def find_labels(items: Collection[str]) -> list[StoredLabel]:
    """Return what people have said about items, in no order.

    Args:
        items: Digests of the texts.

    Raises:
        RunFolderError: A file of labels cannot be read.
    """
    wanted = pa.array(sorted(items), pa.string())
    found = _rows((assay_home() / FOLDER).glob("*.parquet"), wanted)
    return [StoredLabel(**{**row, "answers": tuple(row["answers"])}) for row in found]


def require_one_scale(labels: Iterable[StoredLabel], of: str) -> tuple[float, ...]:
    """Return the answers that labels were chosen from.

    Args:
        of: Description of what is labelled.

    Raises:
        SourceError: Some were chosen from other answers than the others.
    """
    scales = sorted({label.answers for label in labels if label.labelled_at is not None})
    if len(scales) > 1:
        words = " and ".join(_name_scale(answers) for answers in scales)
        raise SourceError(
            f"labels of {of} are {words}: a calibration has one kind. Import those of one kind only; earlier ones are "
            f"in {assay_home() / FOLDER}"
        )
    return scales[0] if scales else YES_OR_NO


def _name_scale(answers: tuple[float, ...]) -> str:
    return "yes and no" if answers == YES_OR_NO else f"grades from {answers[0]:g} to {answers[-1]:g}"


def _rows(paths: Iterable[Path], wanted: pa.Array) -> Iterator[Mapping[str, Any]]:
    for path in sorted(paths):
        try:
            table = pq.read_table(path, schema=_SCHEMA, filters=[("item", "in", wanted.to_pylist())])
        except (OSError, pa.ArrowException) as error:
            raise RunFolderError(f"{path} cannot be read ({error}). Import its labels again.") from error
        yield from table.to_pylist()


def read_frame(frame: str) -> frozenset[str]:
    """Return the digests of all items of a frame; none if it is unknown."""
    path = assay_home() / FOLDER / FRAMES / f"{frame}.parquet"
    if not frame.isalnum() or not path.exists():
        return frozenset()
    return frozenset(pq.read_table(path, schema=_FRAME)["item"].to_pylist())
