"""Choose the run folder of a flow, and keep its run.json up to date while the run lasts."""

import hashlib
import json
import logging
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version as version_of
from itertools import count
from pathlib import Path
from typing import Any

from prefect.runtime import flow_run

from flows.execution.calibration_lookup import find_agreement
from flows.execution.spending import spent_entries
from flows.planning.capabilities import find_unanswerable
from flows.planning.run_plan import FolderPlan, RunPlan
from flows.publishing.history_record import record_in_history
from metric_core.errors import BudgetSpentError, RunFolderError
from metric_core.prompts.judge_questions import Kind
from metric_core.prompts.prompt_set import PromptSet, load_prompts
from metric_core.stages import Stage
from tasks.calibration.judge_check import certificate_of
from tasks.engine.formulas import digest_formulas
from tasks.engine.registry import STAGES
from tasks.models.judges.panel import PanelJudge
from tasks.models.judges.protocol import NO_JUDGE, Judge, JudgeIdentity
from tasks.models.judges.routed_judge import JudgeRole, cascade_of, members_of, roles_of, settings_for
from tasks.opening.run_models import RunModels
from tasks.options.judge_options import JudgeOptions
from tasks.record.findings import HasEntry
from tasks.record.judge_quality import CalibrationRecord
from tasks.record.run_record import FORMAT, RELEASE, AnsweringJudge, CascadeRecord, RecordedConfig, RunRecord
from tasks.runs.run_folder import RUNS, RunFolder
from tasks.runtime.release import version

_logger = logging.getLogger(__name__)
_PACKAGES = ("datasets", "onnxruntime", "prefect", "pyarrow", "spacy")


def choose_folder(planned: FolderPlan) -> RunFolder:
    """Return the run folder that is planned, or create a new one in runs/.

    Raises:
        ConfigError: A URL is planned.
        RunFolderError: The folder cannot be created.
    """
    if planned.out is not None:
        return RunFolder.from_option(planned.out)
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{planned.stem}{planned.ending}"
    return RunFolder(next(folder for folder in _numbered(Path(RUNS, name).absolute()) if _create(folder)))


def _numbered(folder: Path) -> Iterator[Path]:
    yield folder
    yield from (folder.with_name(f"{folder.name}-{number}") for number in count(2))


def _create(folder: Path) -> bool:
    """Create the folder; return False if it exists, because two runs may start in the same second."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    except OSError as error:
        raise RunFolderError(f"the run folder {folder} cannot be created: {error.strerror or error}") from error
    return True


@contextmanager
def record_run(
    folder: RunFolder, record: RunRecord, history: str | None, spent: Callable[[], Sequence[HasEntry]] = tuple
) -> Iterator[None]:
    """Write to run.json that the run is running and, if the block fails, how it ended and why, also to the history.

    Args:
        record: Record of the run at its start.
        history: Address of the history, as in the option.
        spent: Function that returns what a run that did not finish has of its findings.
    """
    with folder.translate_write_errors():
        folder.write_record(record)
    try:
        yield
    except BaseException as error:
        reason = "it was interrupted" if not isinstance(error, Exception) else str(error) or type(error).__name__
        status = "stopped" if isinstance(error, BudgetSpentError) else "failed"
        with suppress(OSError):  # the first error is the one to report
            asked = spent_entries()
            found = spent() if asked else ()
            folder.write_record(record.extend(**asked, status=status, reason=reason).with_findings(*found))
            for warning in record_in_history(history, folder.path):
                _logger.warning(warning)
        raise


def build_record(plan: RunPlan, models: RunModels) -> RunRecord:
    """Return the record of a run at its start.

    Args:
        plan: Plan of a run whose judge is running.
    """
    selected, metrics = models.select(plan.judged), plan.metrics
    planned = metrics.kinds
    judge = selected.judge() if planned else None
    kinds = [kind for kind in planned if judge is not None and judge.can_answer(kind)]
    members = () if judge is None else members_of(judge)
    prompts = {} if judge is None else _served_prompts(plan.models, judge, planned)
    embedder = selected.embedder() if _embeds(plan) else None
    recognized = [getattr(model, "recognized", None) for model in members]
    record = RunRecord(
        format=FORMAT,
        status="running",
        run_id=str(flow_run.id),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        source=plan.source.source or "",
        config=RecordedConfig(**plan.record),
        judge=NO_JUDGE if judge is None else judge.identity,
        embedder=None if embedder is None else embedder.identity,
        language=selected.pipeline().identity,
        judges=() if judge is None else tuple(_describe_role(role) for role in roles_of(judge, kinds)),
        judge_features=_features(members[0]) if members else None,
        server_warnings=tuple(text for model in (*members, embedder) for text in getattr(model, "warnings", ())),
        foreign_answers=tuple(model.foreign for model in recognized if model is not None and model.foreign is not None),
        judge_fingerprints={str(kind): judge.fingerprint(kind) for kind in kinds} if judge is not None else {},
        prompts={str(kind): _digest_prompts(each, kind) for kind, each in prompts.items()},
        unanswerable={
            metric: tuple(kinds)
            for metric, kinds in ({} if judge is None else find_unanswerable(metrics.requests, judge)).items()
        },
        panel=_panel(judge),
        cascade=_cascade(judge),
        formulas=digest_formulas(),
        stage_versions={stage: STAGES[stage].version for stage in metrics.sharded_stages},
        calibration=find_agreement(plan, models) if planned else CalibrationRecord(metrics={}, not_covered=()),
        certificate=None if judge is None else certificate_of(judge),
        left_out={metric: tuple(columns) for metric, columns in metrics.left_out.items()},
        versions={"python": platform.python_version(), RELEASE: version()}
        | {package: version_of(package) for package in _PACKAGES},
    )
    if plan.models.language.recognizer is None:
        return record
    return record.extend(recognizer=selected.recognizer().identity)


def _describe_role(role: JudgeRole) -> AnsweringJudge:
    """Return a judge of a run and the questions that it answers."""
    return AnsweringJudge(
        **_fields(role.judge.identity),
        name=role.name,
        groups=tuple(map(str, role.groups)),
        kinds=tuple(map(str, role.kinds)),
        features=_features(members_of(role.judge)[0]),
        panel=_panel(role.judge),
    )


def _panel(judge: Judge | None) -> tuple[JudgeIdentity, ...]:
    return tuple(member.identity for member in judge.members) if isinstance(judge, PanelJudge) else ()


def _cascade(judge: Judge | None) -> CascadeRecord | None:
    """Return the cheaper judge of a cascade, which its thresholds must be about."""
    found = None if judge is None else cascade_of(judge)
    if found is None or found.cascade is None:
        return None
    rule, (lead, name) = found.cascade, found.names
    return CascadeRecord(name=name, lead=lead, judge=rule.judge, writer=rule.writer, thresholds=dict(rule.thresholds))


def _features(judge: Judge) -> dict[str, Any] | None:
    features = getattr(judge, "features", None)
    return _fields(features) if features else None


def _served_prompts(options: JudgeOptions, judge: Judge, kinds: Sequence[Kind]) -> dict[Kind, list[PromptSet]]:
    """Return the prompts of all judges on a server that are asked a kind of question, by kind."""
    loaded = cache(load_prompts)
    found = {}
    for kind in kinds:
        servers = [each.server for each in settings_for(options, judge, kind) if each.server is not None]
        if servers:
            found[kind] = [loaded(server.prompt_source) for server in servers]
    return found


def _digest_prompts(prompts: Sequence[PromptSet], kind: Kind) -> str:
    digests = dict.fromkeys(each.digest(kind) for each in prompts)
    return hashlib.sha256(json.dumps([*digests]).encode()).hexdigest()


def _embeds(plan: RunPlan) -> bool:
    """Return whether a run compares vectors, or has a judge that does."""
    judges = plan.models.judges if plan.metrics.kinds else ()
    return Stage.SIMILARITY in plan.metrics.sharded_stages or any(judge.facts.compares_vectors for judge in judges)


def _fields(identity: Any) -> dict[str, Any]:
    return {name: getattr(identity, name) for name in identity.__slots__}
