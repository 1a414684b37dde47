"""Find what differs between two runs besides their scores: settings, models, prompts, metrics, versions, rows.

Some differences change the measurement, not the system under test: another judge, other prompts, other parameters of a
metric, another question or reference. Runs with such a difference are not like for like.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from metric_core import columns as c
from metric_core.question_kinds import KindGroup
from tasks.comparison.run_pair import RunPair
from tasks.comparison.written_rows import WrittenRows, find_written
from tasks.models.judges.protocol import NO_JUDGE
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.option import scoring_options
from tasks.record.run_record import RunRecord
from tasks.record.stored_figures import JudgeName
from tasks.runs.finished_run import FinishedRun
from tasks.runs.judge_roles import groups_of, judges_by_kind, name_questions

TEST_COLUMNS = (c.USER_INPUT, c.REFERENCE, c.REFERENCE_CONTEXTS, c.REFERENCE_CONTEXT_IDS, c.RUBRICS, c.KEY_POINTS)
"""Columns that define the test, as opposed to what the system under test returned."""

_IDENTITY = ("backend", "model", "revision")
"""Fields of a model that identify it to readers."""
_MODELS = {"embedder": (*_IDENTITY, "dimensions"), "language": _IDENTITY, "recognizer": _IDENTITY}
_VERSION_OF = "version of"
_COMPARED = tuple(scoring_options(EvaluationOptions) - {*_MODELS, "judge", "verdict", "metrics"})


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """One setting that differs.

    Args:
        a: Value in the first run.
        b: Value in the second run.
        is_serious: True if the runs are not like for like because of it.
        sentence: The difference in words, if the name and the values do not say it.
    """

    name: str
    a: str
    b: str
    is_serious: bool
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """Differences between the rows of two runs.

    Args:
        both: Number of rows that both runs have.
        only_a: Number of rows that only the first run has.
        only_b: Number of rows that only the second run has.
        changed: Number of common rows whose content differs.
        columns: Mapping from column to the number of common rows in which it differs.
        other_test: Number of common rows in which one of TEST_COLUMNS differs.
        retired: Number of rows that only the first run has, and that are questions which were written from an index.
        new: Number of rows that only the second run has, and that are such questions.
        retired_from: Known documents that held the evidence of the retired ones.
    """

    both: int
    only_a: int
    only_b: int
    changed: int
    columns: Mapping[str, int]
    other_test: int
    retired: int = 0
    new: int = 0
    retired_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunDifferences:
    """Differences between two runs besides their scores.

    Args:
        settings: Settings that differ, the serious ones first.
        has_same_formulas: True if both runs are known to have computed their scores by the same code.
        other_judging: Differences between the servers of the judges that change no setting.
    """

    settings: tuple[SettingDifference, ...]
    rows: RowDifferences
    has_same_formulas: bool = False
    other_judging: tuple[str, ...] = ()

    @property
    def shift_note(self) -> str | None:
        """A sentence on a shift that the verdicts of a run may share; None if nothing suggests one."""
        if not self.other_judging:
            return None
        return (
            f"new verdicts of B may share a shift, which intervals and p do not allow for: "
            f"{', '.join(self.other_judging)}; an anchor shows whether they do"
        )

    @property
    def serious(self) -> tuple[str, ...]:
        """Reasons why the runs are not like for like, which are called A and B; empty if they are."""
        return self.describe_serious("A", "B")

    @property
    def version_note(self) -> str | None:
        """A sentence on versions of rag-assay that differ although nothing does that scores depend on; else None."""
        version = next((item for item in self.settings if item.name == f"{_VERSION_OF} rag-assay"), None)
        if version is None or self.serious or not self.has_same_formulas:
            return None
        return (
            f"rag-assay is {version.a} in A and {version.b} in B, with the same prompts, formulas and settings of the "
            "judge: the scores are comparable"
        )

    def describe_serious(self, a: str, b: str) -> tuple[str, ...]:
        """Return the reasons why the runs are not like for like; empty if they are.

        Args:
            a: Name of the first run in a sentence.
            b: Name of the second run.
        """
        reasons = [
            item.sentence or f"{item.name}: {item.a} in {a}, {item.b} in {b}"
            for item in self.settings
            if item.is_serious
        ]
        if self.rows.other_test:
            columns = [name for name in self.rows.columns if name in TEST_COLUMNS]
            reasons.append(f"the test itself: {self.rows.other_test} rows have another {' or '.join(columns)}")
        return tuple(reasons)


def find_differences(pair: RunPair) -> RunDifferences:
    """Return the differences between two runs. The pair must have a first run."""
    changes = pair.changes()
    columns = Counter(column for row in changes.changed.values() for column in row)
    retired = WrittenRows() if pair.a is None else find_written(pair.a, changes.removed)
    rows = RowDifferences(
        both=changes.unchanged + len(changes.changed),
        only_a=len(changes.removed),
        only_b=len(changes.added),
        changed=len(changes.changed),
        columns=dict(columns.most_common()),
        other_test=sum(any(column in TEST_COLUMNS for column in row) for row in changes.changed.values()),
        retired=retired.count,
        new=find_written(pair.b, changes.added).count,
        retired_from=retired.documents,
    )
    if pair.a is None:
        return RunDifferences((), rows)
    settings = sorted(_compare_settings(pair.a.run, pair.b.run), key=lambda item: not item.is_serious)
    formulas = [each.run.record.formulas for each in (pair.a, pair.b)]
    has_same_formulas = formulas[0] is not None and formulas[0] == formulas[1]
    return RunDifferences(tuple(settings), rows, has_same_formulas, tuple(_compare_servers(pair.a.run, pair.b.run)))


def _compare_servers(a: FinishedRun, b: FinishedRun) -> Iterator[str]:
    """Yield what differs in the servers of the judges: their addresses, and the release of their program."""
    if not (_asks(a.record) and _asks(b.record)):
        return
    if b.record.usage.questions <= b.record.usage.stored:
        return  # all answers of B are cached ones, whichever server it names
    for item in ("urls", "software"):
        old, new = (sorted(set(_facts_of_servers(run, item))) for run in (a, b))
        if old and new and old != new:
            name = "the judge's server" if item == "urls" else "its program"
            yield f"{name} is {' and '.join(new)} in B, {' and '.join(old)} in A"


def _facts_of_servers(run: FinishedRun, item: str) -> Iterator[str]:
    """Yield the addresses of the judge servers of a run, or the names and releases of their programs."""
    if item == "urls":
        for server in run.record.config.judge_servers.values():
            yield from server.get("urls", ())
        return
    features = [run.record.judge_features, *(judge.features for judge in run.record.judges)]
    yield from (str(found["software"]) for found in features if found and found.get("software"))


def find_measurement_changes(a: FinishedRun, b: FinishedRun) -> tuple[str, ...]:
    """Return sentences on what changed in the measurement from one run to another: judge, prompts, settings, metrics.

    The rows of the runs are not read.

    Args:
        a: The earlier run.
        b: The later run.

    Returns:
        A sentence for each change that makes the runs not like for like, such as "judge model: a is now b".
    """
    return tuple(
        item.sentence or f"{item.name}: {item.a} is now {item.b}" for item in _compare_settings(a, b) if item.is_serious
    )


def _compare_settings(a: FinishedRun, b: FinishedRun) -> Iterator[SettingDifference]:
    before, after = a.record, b.record
    is_judged = _asks(before) and _asks(after)
    if is_judged:
        yield from _compare_judges(before, after)
    for model, fields in _MODELS.items():
        one, other = getattr(before, model), getattr(after, model)
        if model == "embedder" and (one is None or other is None):
            continue  # no metric of both runs depends on it
        yield from _differing_fields(model, _fields(one, fields), _fields(other, fields), True)
    if is_judged:
        yield from _compare_request_modes(a, b)
    yield from _compare_metrics(before, after)
    yield from _differing_fields("verdict", {"": before.config.verdict}, {"": after.config.verdict}, True)
    yield from _differing_fields("calibration applied to", _applied_settings(before), _applied_settings(after), True)
    yield from _differing_fields("", _settings(a), _settings(b), False)
    formulas = [{"formulas": record.formulas} for record in (before, after)]
    yield from _differing_fields("code of the", formulas[0], formulas[1], False)
    yield from _differing_fields(_VERSION_OF, before.versions, after.versions, False)


def _compare_judges(before: RunRecord, after: RunRecord) -> Iterator[SettingDifference]:
    """Yield differences between the judges that answered the same kinds of questions."""
    for prefix, old, new in _judge_pairs(before, after):
        yield from _differing_fields(prefix, old, new, True)


def _judge_pairs(before: RunRecord, after: RunRecord) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield each pair of judges that answered the same questions, named by the groups unless it is alone."""
    old, new = judges_by_kind(before), judges_by_kind(after)
    pairs: dict[tuple[JudgeName, JudgeName], list[str]] = {}
    for kind in old.keys() & new.keys():
        pairs.setdefault((old[kind], new[kind]), []).append(kind)
    if not pairs:
        yield "judge", _fields(before.judge, _IDENTITY), _fields(after.judge, _IDENTITY)
    for (one, other), kinds in pairs.items():
        name = "judge" if len(pairs) == 1 else f"judge of {' and '.join(groups_of(kinds))}"
        yield name, _fields(one, _IDENTITY), _fields(other, _IDENTITY)


def _asks(record: RunRecord) -> bool:
    """Return whether a run asked a judge."""
    return record.judge.backend != NO_JUDGE.backend


def _fields(model: object | None, names: Iterable[str]) -> dict[str, Any]:
    return {} if model is None else {name: getattr(model, name) for name in names}


def _applied_settings(record: RunRecord) -> dict[str, Any]:
    """Return when the probability map of each metric was made, for metrics whose probabilities were mapped."""
    return {key: f"made {found.created}" for key, found in record.calibration.metrics.items() if found.applied}


def _compare_request_modes(a: FinishedRun, b: FinishedRun) -> Iterator[SettingDifference]:
    """Yield differences in how the judge is asked; the judge fingerprints say whether they can change its answers."""
    before, after = a.record, b.record
    old, new = before.judge_fingerprints, after.judge_fingerprints
    both = old.keys() & new.keys()
    kinds = sorted(kind for kind in both if old[kind] != new[kind])
    settings = [
        setting
        for prefix, one, other in _server_settings(a, b)
        for setting in _differing_fields(prefix, one, other, bool(kinds) or not both)
    ]
    same_judge = all(one == other for _, one, other in _judge_pairs(before, after))
    causes = [*_compare_prompts(a, b)] if {"prompts", "language"}.isdisjoint(map(_last_word, settings)) else []
    if kinds and same_judge and not settings:
        behind = [_served(record) for record in (before, after)]
        causes += _differing_fields("model behind the judge's name", behind[0], behind[1], True)
        affected = "all questions" if len(kinds) == len(both) else ", ".join(kinds)
        causes = causes or [SettingDifference("how the judge is asked", f"one way ({affected})", "another way", True)]
    yield from causes
    yield from settings


def _settings(run: FinishedRun) -> dict[str, Any]:
    """Return the settings on which scores depend, and the index; what was fetched from it is named by its questions."""
    found, of = _select(run.record.config.options, _COMPARED), run.record.deployment
    if (retrieval := run.record.retrieval) is not None:
        found |= {"source": retrieval.questions, "retriever": retrieval.index}
    return found | ({"index": f"{of.index} {of.version}"} if of is not None and of.index else {})


def _last_word(setting: SettingDifference) -> str:
    return setting.name.rpartition(" ")[2]


def _compare_prompts(a: FinishedRun, b: FinishedRun) -> Iterator[SettingDifference]:
    """Yield the prompts that changed; those that come with rag-assay changed with its version."""
    old, new = a.record.prompts, b.record.prompts
    versions = [run.record.release for run in (a, b)]
    own = any(fields.get("prompts") for _, one, other in _server_settings(a, b) for fields in (one, other))
    is_packaged = not own and None not in versions and versions[0] != versions[1]
    changed = sorted(kind for kind in old.keys() & new.keys() if old[kind] != new[kind])
    if not changed:
        return
    name = f"prompt{'s' * (len(changed) > 1)} of the {name_questions(changed)}"
    if is_packaged:
        sentence = f"the {name} changed between rag-assay {versions[0]} and {versions[1]}"
        yield SettingDifference(name, f"as in {versions[0]}", f"as in {versions[1]}", True, sentence)
    else:
        yield SettingDifference(name, "one text", "another text", True, f"the {name} changed")


def _served(record: RunRecord) -> dict[str, Any]:
    """Return the beginning of the digest of the model behind the name of each judge."""
    found = {judge.name: judge.served for judge in record.judges}
    shown = {name: digest[:8] for name, digest in found.items() if digest}
    return {"" if len(found) == 1 else name: digest for name, digest in shown.items()}


def _server_settings(a: FinishedRun, b: FinishedRun) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the settings of the judge servers of both runs that can change answers, with the name of the judge."""
    fields = tuple(scoring_options(ServerJudgeOptions))
    old, new = a.record.config.judge_servers, b.record.config.judge_servers
    yield "judge", _select(old.get(None), fields), _select(new.get(None), fields)
    for group in KindGroup:
        if group in old and group in new:
            yield f"judge of {group}", _select(old[group], fields), _select(new[group], fields)


def _compare_metrics(before: RunRecord, after: RunRecord) -> Iterator[SettingDifference]:
    old, new = ({metric.key: metric for metric in record.metrics} for record in (before, after))
    for key in old.keys() & new.keys():
        if old[key].name != new[key].name:
            yield SettingDifference(f"metric {key}", old[key].name, new[key].name, True)
        before_code, after_code = ({"code": metrics[key].code[:12]} for metrics in (old, new))
        yield from _differing_fields(f"metric {key}:", before_code, after_code, True)
        yield from _differing_fields(f"{key}:", old[key].parameters, new[key].parameters, True)
    for key in sorted(old.keys() ^ new.keys()):
        has, lacks = "computed", "not computed"
        yield SettingDifference(f"metric {key}", has if key in old else lacks, has if key in new else lacks, False)


def _differing_fields(
    prefix: str, old: Mapping[str, object], new: Mapping[str, object], serious: bool
) -> Iterator[SettingDifference]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield SettingDifference(
                f"{prefix} {name}".strip(), _format_value(old.get(name)), _format_value(new.get(name)), serious
            )


def _select(content: Mapping[str, object] | None, fields: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in (content or {}).items() if name in fields}


def _format_value(value: Any) -> str:
    text = "not set" if value is None else str(value)
    return text if len(text) <= 120 else f"{text[:119]}…"
