"""Find what differs between two runs besides their scores: settings, models, prompts, metrics, versions, rows.

Some differences change the measurement, not the system under test: another judge, other prompts, other parameters of a
metric, another question or reference. Runs with such a difference are not like for like.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
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
from tasks.runs.finished_run import FinishedRun
from tasks.runs.judge_roles import IDENTITY, groups_of, judge_roles, judges_by_kind, name_questions

TEST_COLUMNS = (c.USER_INPUT, c.REFERENCE, c.REFERENCE_CONTEXTS, c.REFERENCE_CONTEXT_IDS, c.RUBRICS, c.KEY_POINTS)
"""Columns that define the test, as opposed to what the system under test returned."""

_MODELS = {
    "embedder": ("backend", "model", "revision", "dimensions"),
    "language": None,
    "recognizer": None,
}
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
    formulas = [each.run.manifest.get("formulas") for each in (pair.a, pair.b)]
    has_same_formulas = formulas[0] is not None and formulas[0] == formulas[1]
    return RunDifferences(tuple(settings), rows, has_same_formulas, tuple(_compare_servers(pair.a.run, pair.b.run)))


def _compare_servers(a: FinishedRun, b: FinishedRun) -> Iterator[str]:
    """Yield what differs in the servers of the judges: their addresses, and the release of their program."""
    if not (_was_used(a.manifest, "judge") and _was_used(b.manifest, "judge")):
        return
    usage = b.manifest.get("usage") or {}
    if usage.get("questions", 1) <= usage.get("stored", 0):
        return  # all answers of B are cached ones, whichever server it names
    for item in ("urls", "software"):
        old, new = (sorted(set(_facts_of_servers(run, item))) for run in (a, b))
        if old and new and old != new:
            name = "the judge's server" if item == "urls" else "its program"
            yield f"{name} is {' and '.join(new)} in B, {' and '.join(old)} in A"


def _facts_of_servers(run: FinishedRun, item: str) -> Iterator[str]:
    """Yield the addresses of the judge servers of a run, or the names and releases of their programs."""
    if item == "urls":
        config = run.config.get("judge") or {}
        for settings in (config, *(config.get(group) or {} for group in KindGroup)):
            yield from map(str, (settings.get("server") or {}).get("urls") or ())
        return
    features = [run.manifest.get("judge_features"), *(role.get("features") for role in judge_roles(run.manifest))]
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
    before, after = a.manifest, b.manifest
    if _was_used(before, "judge") and _was_used(after, "judge"):
        yield from _compare_judges(before, after)
    for model, fields in _MODELS.items():
        if model == "embedder" and not (_was_used(before, model) and _was_used(after, model)):
            continue  # no metric of both runs depends on it
        yield from _differing_fields(model, _select(before.get(model), fields), _select(after.get(model), fields), True)
    if _was_used(before, "judge") and _was_used(after, "judge"):
        yield from _compare_request_modes(a, b)
    yield from _compare_metrics(before, after)
    old, new = a.config, b.config
    yield from _differing_fields("verdict", {"": old.get("verdict")}, {"": new.get("verdict")}, True)
    yield from _differing_fields("calibration applied to", _applied_settings(before), _applied_settings(after), True)
    yield from _differing_fields("", _settings(a), _settings(b), False)
    formulas = [{"formulas": run.get("formulas")} for run in (before, after)]
    yield from _differing_fields("code of the", formulas[0], formulas[1], False)
    yield from _differing_fields(_VERSION_OF, before.get("versions") or {}, after.get("versions") or {}, False)


def _compare_judges(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[SettingDifference]:
    """Yield differences between the judges that answered the same kinds of questions."""
    for prefix, old, new in _judge_pairs(before, after):
        yield from _differing_fields(prefix, old, new, True)


def _judge_pairs(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield each pair of judges that answered the same questions, named by the groups unless it is alone."""
    old, new = judges_by_kind(before), judges_by_kind(after)
    pairs: dict[str, tuple[list[str], dict[str, Any], dict[str, Any]]] = {}
    for kind in old.keys() & new.keys():
        pairs.setdefault(repr((old[kind], new[kind])), ([], old[kind], new[kind]))[0].append(kind)
    if not pairs:
        yield "judge", _select(before.get("judge"), IDENTITY), _select(after.get("judge"), IDENTITY)
    for kinds, one, other in pairs.values():
        yield "judge" if len(pairs) == 1 else f"judge of {' and '.join(groups_of(kinds))}", one, other


def _was_used(manifest: Mapping[str, Any], model: str) -> bool:
    """Return whether a run used a judge or an embedder."""
    used = manifest.get(model, {})
    return used is not None and used.get("backend") != NO_JUDGE.backend


def _applied_settings(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return when the probability map of each metric was made, for metrics whose probabilities were mapped."""
    metrics = (manifest.get("calibration") or {}).get("metrics") or {}
    return {key: f"made {entry['created']}" for key, entry in metrics.items() if entry.get("applied")}


def _compare_request_modes(a: FinishedRun, b: FinishedRun) -> Iterator[SettingDifference]:
    """Yield differences in how the judge is asked; the judge fingerprints say whether they can change its answers."""
    before, after = a.manifest, b.manifest
    old, new = before.get("judge_fingerprints") or {}, after.get("judge_fingerprints") or {}
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
        behind = [_served(manifest) for manifest in (before, after)]
        causes += _differing_fields("model behind the judge's name", behind[0], behind[1], True)
        affected = "all questions" if len(kinds) == len(both) else ", ".join(kinds)
        causes = causes or [SettingDifference("how the judge is asked", f"one way ({affected})", "another way", True)]
    yield from causes
    yield from settings


def _settings(run: FinishedRun) -> dict[str, Any]:
    """Return the settings on which scores depend, and the index; what was fetched from it is named by its questions."""
    found, of = _select(run.config, _COMPARED), run.manifest.get("deployment") or {}
    if (retrieval := run.manifest.get("retrieval")) is not None:
        found |= {"source": retrieval["questions"], "retriever": retrieval["index"]}
    return found | ({"index": f"{of['index']} {of['version']}"} if of.get("index") else {})


def _last_word(setting: SettingDifference) -> str:
    return setting.name.rpartition(" ")[2]


def _compare_prompts(a: FinishedRun, b: FinishedRun) -> Iterator[SettingDifference]:
    """Yield the prompts that changed; those that come with rag-assay changed with its version."""
    old, new = a.manifest.get("prompts") or {}, b.manifest.get("prompts") or {}
    versions = [(run.manifest.get("versions") or {}).get("rag-assay") for run in (a, b)]
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


def _served(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the beginning of the digest of the model behind the name of each judge."""
    found = {role["name"]: role.get("served") for role in judge_roles(manifest)}
    shown = {name: str(digest)[:8] for name, digest in found.items() if digest}
    return {"" if len(found) == 1 else name: digest for name, digest in shown.items()}


def _server_settings(a: FinishedRun, b: FinishedRun) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the settings of the judge servers of both runs that can change answers, with the name of the judge."""
    fields = tuple(scoring_options(ServerJudgeOptions))
    old, new = a.config.get("judge") or {}, b.config.get("judge") or {}
    yield "judge", _select(old.get("server"), fields), _select(new.get("server"), fields)
    for group in KindGroup:
        one, other = old.get(group), new.get(group)
        if one and other:
            yield f"judge of {group}", _select(one.get("server"), fields), _select(other.get("server"), fields)


def _compare_metrics(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[SettingDifference]:
    old, new = ({entry["key"]: entry for entry in manifest["metrics"]} for manifest in (before, after))
    for key in old.keys() & new.keys():
        if old[key]["name"] != new[key]["name"]:
            yield SettingDifference(f"metric {key}", old[key]["name"], new[key]["name"], True)
        before_code, after_code = ({"code": runs[key].get("code", "")[:12]} for runs in (old, new))
        yield from _differing_fields(f"metric {key}:", before_code, after_code, True)
        yield from _differing_fields(
            f"{key}:", old[key].get("parameters") or {}, new[key].get("parameters") or {}, True
        )
    for key in sorted(old.keys() ^ new.keys()):
        has, lacks = "computed", "not computed"
        yield SettingDifference(f"metric {key}", has if key in old else lacks, has if key in new else lacks, False)


def _differing_fields(
    prefix: str, old: Mapping[str, Any], new: Mapping[str, Any], serious: bool
) -> Iterator[SettingDifference]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield SettingDifference(
                f"{prefix} {name}".strip(), _format_value(old.get(name)), _format_value(new.get(name)), serious
            )


def _select(content: Mapping[str, Any] | None, fields: tuple[str, ...] | None) -> dict[str, Any]:
    return {name: value for name, value in (content or {}).items() if fields is None or name in fields}


def _format_value(value: Any) -> str:
    text = "not set" if value is None else str(value)
    return text if len(text) <= 120 else f"{text[:119]}…"
