"""Write the tasks of Label Studio for a sample of a run, and read back what people have labelled there.

Label Studio exports tasks with their annotations, but by default only those with a label. The draw and its
probabilities are therefore read from the tasks as they were written.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from xml.sax.saxutils import quoteattr

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from metric_core.errors import SourceError
from metric_core.parsing.regular_files import regular
from metric_core.parsing.strict_json import parse_json
from tasks.calibration.label_items import read_texts
from tasks.calibration.label_sampling import DrawnSample
from tasks.calibration.label_store import LabelPageFacts, LabelTime
from tasks.reports.labels.label_page import LabelPage
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.atomic_files import write_output
from tasks.runtime.jsonl_text import to_json_lines
from tasks.runtime.wording import prefix_place

T = TypeVar("T")
_UNSURE = "Unsure"
_TEXTS = {
    "question": "Question",
    "passages": "Passages",
    "reference": "Reference",
    "answer": "Answer",
    "claim": "Claim",
}


class _Item(BaseModel):
    """The item that a task asks about."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    item: str
    probability: float | None
    stratum: str | None
    run: str
    metric: str
    sample: str
    frame: str
    answers: dict[str, float]
    page: str


class _Data(BaseModel):
    assay: _Item


class _Task(BaseModel):
    data: _Data


class _Choice(BaseModel):
    choices: Annotated[list[str], Field(min_length=1, max_length=1)]


class _Result(BaseModel):
    from_name: Literal["label"]
    value: _Choice


class _Person(BaseModel):
    id: int
    email: str = ""


class _Annotation(BaseModel):
    completed_by: int | _Person
    result: list[_Result]
    was_cancelled: bool = False
    updated_at: LabelTime

    @property
    def annotator(self) -> str:
        """The person: an e-mail address, or a number where the export has no more."""
        person = self.completed_by
        return f"user {person}" if isinstance(person, int) else person.email or f"user {person.id}"


class _LabelledTask(_Task):
    annotations: list[_Annotation]


_TASKS, _LABELLED = TypeAdapter(list[_Task]), TypeAdapter(list[_LabelledTask])


@dataclass(frozen=True, slots=True)
class ReadLabels:
    """Labels that were read from exports.

    Args:
        lines: Lines of a file that `assay label --import` reads.
        people: Annotator -> number of labels.
        of: Number of items of the sample.
    """

    lines: Sequence[Mapping[str, Any]]
    people: Mapping[str, int]
    of: int


def write_tasks(run: FinishedRun, sample: DrawnSample, page: LabelPage, out: Path) -> Path:
    """Write the tasks of a sample, and return the file of the labelling interface, which lies beside them.

    Raises:
        ConfigError: Grades have no keys.
        RunFolderError: A file cannot be written.
    """
    answers = {name: value for _, name, value in page.answers}
    texts, facts = read_texts(run, sample.items), page.facts(run, sample)
    of_page, tasks = facts.digest, []
    for item, (digest, probability, stratum) in zip(sample.items, sample.drawn, strict=True):
        shown = texts[item.key]
        about = _Item(
            item=digest,
            probability=probability,
            stratum=stratum,
            run=facts.run,
            metric=page.metric,
            sample=facts.sample,
            frame=facts.frame,
            answers=answers,
            page=of_page,
        )
        passages = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(shown.passages, start=1))
        fields = {**{name: getattr(shown, name) or "" for name in _TEXTS}, "passages": passages}
        tasks.append({"data": {"ask": shown.ask or page.ask, **fields, "assay": about.model_dump()}})
    write_output(out, json.dumps(tasks, ensure_ascii=False, indent=1), "the tasks")
    interface = out.with_suffix(".xml")
    given = {name for task in tasks for name in _TEXTS if task["data"][name]}
    write_output(interface, labelling_interface(given, [*answers, _UNSURE]) + "\n", "the labelling interface")
    return interface


def labelling_interface(texts: Collection[str], choices: Sequence[str]) -> str:
    """Return the labelling interface of tasks.

    Args:
        texts: Names of the texts that a task has.

    >>> print(labelling_interface(["claim"], ["Yes"]))
    <View>
      <Header value="Claim"/>
      <Text name="claim" value="$claim"/>
      <Header value="$ask"/>
      <Choices name="label" toName="claim" choice="single" showInLine="true">
        <Choice value="Yes" hotkey="y"/>
      </Choices>
    </View>
    """
    named = [name for name in _TEXTS if name in texts]
    shown = (f'  <Header value="{_TEXTS[name]}"/>\n  <Text name="{name}" value="${name}"/>' for name in named)
    offered = (f"    <Choice value={quoteattr(each)} hotkey={quoteattr(each[0].lower())}/>" for each in choices)
    begin = f'  <Header value="$ask"/>\n  <Choices name="label" toName="{named[-1]}" choice="single" showInLine="true">'
    return "\n".join(["<View>", *shown, begin, *offered, "  </Choices>", "</View>"])


def read_labels(tasks: Path, exports: Sequence[Path]) -> ReadLabels:
    """Return the labels in files that Label Studio has exported as JSON.

    Args:
        tasks: The tasks, as they were written for Label Studio.

    Raises:
        SourceError: A file cannot be read, is none of these, or is about other tasks.
    """
    items = [task.data.assay for task in _read(tasks, _TASKS, "the tasks of `assay label-studio tasks`")]
    facts = {(each.run, each.metric, each.sample, each.frame, tuple(sorted(each.answers.values()))) for each in items}
    drawn = tuple((each.item, each.probability, each.stratum) for each in items)
    if len(facts) != 1:
        raise SourceError(f"{tasks} has tasks of {len(facts)} samples, wanted those of one, as they were written")
    run, metric, sample, frame, answers = facts.pop()
    page = LabelPageFacts(run, metric, sample, frame, False, answers, drawn)
    digest = page.digest
    if {each.page for each in items} != {digest}:
        raise SourceError(f"{tasks} is not as it was written: tasks were removed or changed; write it again")
    given: dict[str, dict[str, tuple[float | None, str]]] = {}
    for path in exports:
        for task in _read(path, _LABELLED, "an export of Label Studio, in the format JSON"):
            if task.data.assay.page != digest:
                raise SourceError(f"{path} has tasks that are not in {tasks}: name the file that was imported there")
            for name, label, time in _labels_of(task, path):
                labels = given.setdefault(name, {})
                if time > labels.get(task.data.assay.item, (None, ""))[1]:
                    labels[task.data.assay.item] = (label, time)
    common = {**asdict(page), "page": digest, "answers": [*answers]}
    del common["items"]
    lines = [
        {**common, **_line(item, labels.get(item[0], (None, None))), "annotator": name}
        for name, labels in given.items()
        for item in drawn
    ]
    return ReadLabels(lines, {name: len(labels) for name, labels in given.items()}, len(drawn))


def write_labels(found: ReadLabels, out: Path) -> None:
    """Write labels for `assay label --import`.

    Raises:
        RunFolderError: The file cannot be written.
    """
    write_output(out, to_json_lines(found.lines), "the labels")


def _line(item: tuple[str, float | None, str | None], given: tuple[float | None, str | None]) -> dict[str, Any]:
    digest, probability, stratum = item
    label, time = given
    return {"item": digest, "probability": probability, "stratum": stratum, "label": label, "labelled_at": time}


def _labels_of(task: _LabelledTask, path: Path) -> Iterator[tuple[str, float | None, str]]:
    """Yield annotator, label and time of each annotation of a task; None is the label of those who were not sure."""
    answers = task.data.assay.answers
    for each in task.annotations:
        if each.was_cancelled or not each.result:
            continue
        (choice,) = each.result[-1].value.choices
        if choice != _UNSURE and choice not in answers:
            raise SourceError(f"{path} has the label {choice!r}, wanted one of {', '.join([*answers, _UNSURE])}")
        yield each.annotator, answers.get(choice), each.updated_at


def _read(path: Path, tasks: TypeAdapter[list[T]], wanted: str) -> list[T]:
    try:
        return tasks.validate_python(parse_json(regular(path).read_text(encoding="utf-8-sig")))
    except ValidationError as error:
        problem = error.errors()[0]
        raise SourceError(f"{path} is not {wanted}: {prefix_place(problem['loc'], problem['msg'])}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(f"{path} cannot be read as {wanted}: {error}") from error
