"""Choose the run folder of a flow, and keep its run.json up to date while the run lasts."""

import hashlib
import json
import logging
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version as version_of
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

from prefect.runtime import flow_run

from flows.config.run_config import RunConfig
from flows.execution.answerable import find_unanswerable
from flows.execution.calibration_lookup import calibration_entry
from flows.execution.history_record import record_in_history
from flows.execution.plan import Plan
from flows.execution.spending import spent_entry
from flows.execution.stage_settings import judged_settings
from metric_core.errors import BudgetSpentError, RunFolderError
from metric_core.judge_questions import RATING_KINDS, Kind
from metric_core.prompts.prompt_set import load_prompts
from metric_core.stages import PRODUCTS, Product, Stage
from tasks.judges.panel import PanelJudge
from tasks.judges.protocol import NO_JUDGE, Judge
from tasks.judges.routed_judge import JudgeRole, members_of, roles_of, settings_for
from tasks.models.run_models import RunModels
from tasks.runs.run_folder import FORMAT, MANIFEST, RUNS, RunFolder
from tasks.runtime.release import version
from tasks.sources.location import HUB
from tasks.stages.formulas import digest_formulas
from tasks.stages.registry import STAGES

_logger = logging.getLogger(__name__)
_PACKAGES = ("datasets", "onnxruntime", "prefect", "pyarrow", "spacy")


def choose_folder(config: RunConfig, ending: str = "") -> RunFolder:
    """Return the run folder that the configuration names, or create a new one in runs/.

    Args:
        config: Configuration of the run.
        ending: Suffix of a new folder's name.

    Raises:
        ConfigError: The configuration names a URL.
        RunFolderError: The folder cannot be created.
    """
    if config.out is not None:
        return RunFolder.from_option(config.out)
    stem = re.sub(r"\W+", "-", PurePosixPath(config.source or "").stem).strip("-").lower() or "run"
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{stem}{ending}"
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
def record_run(folder: RunFolder, manifest: Mapping[str, Any], history: str | None) -> Iterator[None]:
    """Write to run.json that the run is running and, if the block fails, how it ended and why, also to the history.

    Args:
        folder: Run folder.
        manifest: Content of run.json at the start of the run.
        history: Address of the history, as in the option.
    """
    with folder.translate_write_errors():
        folder.write_json(MANIFEST, {**manifest, "status": "running"})
    try:
        yield
    except BaseException as error:
        reason = str(error) or type(error).__name__
        status = "stopped" if isinstance(error, BudgetSpentError) else "failed"
        with suppress(OSError):  # the first error is the one to report
            folder.write_json(MANIFEST, {**manifest, **spent_entry(), "status": status, "reason": reason})
            for warning in record_in_history(history, folder.path):
                _logger.warning(warning)
        raise


def build_manifest(config: RunConfig, plan: Plan, models: RunModels) -> dict[str, Any]:
    """Return the content of run.json at the start of a run.

    Args:
        config: Configuration of a run whose judge is running.
        plan: Plan of the run.
        models: Models of the run.
    """
    selected = models.select(judged_settings(config))
    planned = planned_kinds(plan)
    judge = selected.judge() if planned else None
    kinds = [kind for kind in planned if judge is not None and judge.can_answer(kind)]
    members = () if judge is None else members_of(judge)
    embedder = selected.embedder() if _embeds(config, plan) else None
    recognized = [getattr(model, "recognized", None) for model in members]
    identities: dict[str, Any] = {
        "judge": NO_JUDGE if judge is None else judge.identity,
        "embedder": None if embedder is None else embedder.identity,
        "language": selected.pipeline().identity,
    }
    if config.language.recognizer is not None:
        identities["recognizer"] = selected.recognizer().identity
    return {
        "format": FORMAT,
        "run_id": str(flow_run.id),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": config.source,
        "config": settings_for_manifest(config),
        **{name: identity and _fields(identity) for name, identity in identities.items()},
        "judges": [] if judge is None else [_role_entry(role) for role in roles_of(judge, kinds)],
        "judge_features": _features(members[0]) if members else None,
        "server_warnings": [warning for model in (*members, embedder) for warning in getattr(model, "warnings", ())],
        "foreign_answers": [model.foreign for model in recognized if model is not None and model.foreign is not None],
        "judge_fingerprints": {kind: judge.fingerprint(kind) for kind in kinds} if judge is not None else {},
        "prompts": {} if judge is None else _prompts(config, judge, planned),
        "unanswerable": {} if judge is None else find_unanswerable(plan.requests, judge),
        "panel": _panel(judge),
        "formulas": digest_formulas(),
        "stage_versions": {stage: STAGES[stage].version for stage in plan.sharded_stages},
        "calibration": calibration_entry(config, plan, models) if planned else {"metrics": {}, "not_covered": []},
        "left_out": {metric: list(columns) for metric, columns in plan.left_out.items()},
        "versions": {"python": platform.python_version(), "rag-assay": version()}
        | {package: version_of(package) for package in _PACKAGES},
    }


def _role_entry(role: JudgeRole) -> dict[str, Any]:
    """Return the entry of run.json on a judge and the questions that it answers."""
    return {
        "name": role.name,
        "groups": [str(group) for group in role.groups],
        "kinds": [str(kind) for kind in role.kinds],
        **_fields(role.judge.identity),
        "features": _features(members_of(role.judge)[0]),
        "panel": _panel(role.judge),
    }


def _panel(judge: Judge | None) -> list[dict[str, Any]]:
    return [_fields(member.identity) for member in judge.members] if isinstance(judge, PanelJudge) else []


def _features(judge: Judge) -> dict[str, Any] | None:
    features = getattr(judge, "features", None)
    return _fields(features) if features else None


def _prompts(config: RunConfig, judge: Judge, kinds: Sequence[Kind]) -> dict[str, str]:
    """Return a digest of the prompts per kind of question, over all judges on a server that are asked it."""
    digests = {}
    for kind in kinds:
        servers = [each.server for each in settings_for(config, judge, kind) if each.server is not None]
        prompts = dict.fromkeys(load_prompts(server.prompt_source).digest(kind) for server in servers)
        if prompts:
            digests[str(kind)] = hashlib.sha256(json.dumps([*prompts]).encode()).hexdigest()
    return digests


def planned_kinds(plan: Plan) -> list[Kind]:
    """Return the kinds of questions that a run may ask; if there are none, it needs no judge."""
    # Settings decide what these two ask; the others open their judge even if their products need no question.
    others = set(plan.sharded_stages) - {Stage.VERDICTS, Stage.RATINGS}
    asked: set[Kind] = {kind for product in plan.products if (kind := PRODUCTS[product].asks) is not None}
    asked.update(kind for stage in others for kind in STAGES[stage].asks)
    rated = [request.metric for request in plan.requests if Product.RATINGS in request.products]
    asked.update(kind for metric in rated for kind in metric.question_kinds)
    if any(metric.origin for metric in rated):
        asked.update(RATING_KINDS)  # a user-defined metric need not declare them
    return sorted(asked)


def _embeds(config: RunConfig, plan: Plan) -> bool:
    """Return whether a run compares vectors, or has a judge that does."""
    judges = config.judges if planned_kinds(plan) else ()
    return Stage.SIMILARITY in plan.sharded_stages or any(judge.backend == "builtin" for judge in judges)


def settings_for_manifest(config: RunConfig) -> dict[str, Any]:
    """Return the configuration as run.json holds it: without schedules and alerts.

    A source on this machine gets its absolute path, so the run can be run again from any folder. `verdict` is what
    verdicts count as in this run, so a rerun with another judge counts them in the same way.
    """
    config = config.model_copy(update={"verdict": config.verdict_kind})
    config = config.model_copy(update={"source": _locate(config.source)})
    if config.anchor is not None:
        anchor = config.anchor.model_copy(update={"source": _locate(config.anchor.source)})
        config = config.model_copy(update={"anchor": anchor})
    return config.model_dump(mode="json", exclude={"deploy"})


def _locate(source: str | None) -> str | None:
    """Return a source with its absolute path, if it is on this machine."""
    if source is None or "://" in source or source.startswith(HUB):
        return source
    return str(Path(source).expanduser().absolute())


def _fields(identity: Any) -> dict[str, Any]:
    return {name: getattr(identity, name) for name in identity.__slots__}
