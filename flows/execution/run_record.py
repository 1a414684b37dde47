"""The run folder of a flow: its name, and what run.json says from the beginning to the end."""

import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

from prefect.runtime import flow_run

from flows.config.run_config import RunConfig
from flows.execution.calibration_lookup import calibration_entry
from flows.execution.plan import Plan
from flows.execution.stage_settings import STAGE_TASKS, judged_settings, stage_settings
from metric_core.errors import ConfigError, RunFolderError
from metric_core.judge_questions import QuestionKind
from tasks.judges.panel import PanelJudge
from tasks.models.models import open_embedder, open_judges, open_pipeline, open_recognizer
from tasks.options.judged_settings import JudgedSettings
from tasks.runs import run_folder
from tasks.sources.location import HUB

_VERSIONS = ("rag-assay", "datasets", "onnxruntime", "prefect", "pyarrow", "spacy")


def choose_folder(config: RunConfig, ending: str = "") -> Path:
    """The run folder that the configuration names, or a new one below runs/, whose name ends as told.

    Raises:
        ConfigError: the configuration names a folder elsewhere.
        RunFolderError: the folder can not be made.
    """
    if config.out is not None:
        if "://" in config.out:
            raise ConfigError(
                f"the run folder must be a folder of this machine, got {config.out}; stage tables may lie elsewhere "
                "(tables), and a finished run folder can be copied anywhere"
            )
        return Path(config.out).expanduser().absolute()
    stem = re.sub(r"\W+", "-", PurePosixPath(config.source or "").stem).strip("-").lower() or "run"
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{stem}{ending}"
    return next(folder for folder in _numbered(Path("runs", name).absolute()) if _make(folder))


def _numbered(folder: Path) -> Iterator[Path]:
    yield folder
    yield from (folder.with_name(f"{folder.name}-{number}") for number in count(2))


def _make(folder: Path) -> bool:
    """Makes the folder; False if somebody else has: two runs may begin in the same second."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    except OSError as error:
        raise RunFolderError(f"the run folder {folder} can not be made: {error.strerror or error}") from error
    return True


@contextmanager
def record_run(folder: Path, manifest: Mapping[str, Any]) -> Iterator[None]:
    """Says in run.json that the run is running and, should the block fail, that it failed and why."""
    with run_folder.translate_write_errors(folder):
        run_folder.write_json(folder / run_folder.MANIFEST, {**manifest, "status": "running"})
    try:
        yield
    except BaseException as error:
        reason = str(error) or type(error).__name__
        with suppress(OSError):  # what went wrong first is what is told
            run_folder.write_json(folder / run_folder.MANIFEST, {**manifest, "status": "failed", "reason": reason})
        raise


def build_manifest(config: RunConfig, plan: Plan) -> dict[str, Any]:
    """What run.json says from the beginning: what runs, and with what."""
    judge = open_judges(judged_settings(config))
    members = judge.members if isinstance(judge, PanelJudge) else (judge,)
    identities: dict[str, Any] = {
        "judge": judge.identity,
        "embedder": open_embedder(config.embedder).identity,
        "language": open_pipeline(config.language).identity,
    }
    if config.language.recognizer is not None:
        identities["recognizer"] = open_recognizer(config.language).identity
    return {
        "format": run_folder.FORMAT,
        "run_id": str(flow_run.id),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": config.source,
        "config": settings_for_manifest(config),
        **{name: _fields(identity) for name, identity in identities.items()},
        "judge_features": _fields(features) if (features := getattr(members[0], "features", None)) else None,
        "judge_fingerprints": {kind: judge.fingerprint(kind) for kind in _asked_kinds(config, plan)},
        "panel": [_fields(member.identity) for member in members] if len(members) > 1 else [],
        "stage_versions": {stage: STAGE_TASKS[stage].version for stage in plan.stages if stage in STAGE_TASKS},
        "calibration": calibration_entry(config, plan),
        "left_out": {metric: list(columns) for metric, columns in plan.left_out.items()},
        "versions": {"python": platform.python_version()} | {package: version(package) for package in _VERSIONS},
    }


def _asked_kinds(config: RunConfig, plan: Plan) -> list[QuestionKind]:
    """The kinds of questions that the stages of a run may ask."""
    settings = stage_settings(config, plan)
    stages = [found for stage in plan.stages if isinstance(found := settings.get(stage), JudgedSettings)]
    return sorted({kind for found in stages for kind in found.asks})


def settings_for_manifest(config: RunConfig) -> dict[str, Any]:
    """The settings of a run as run.json has them: all but when it is started and who hears of it.

    A file of this machine has its whole path, so that whoever runs it again may do so from anywhere.
    """
    source = config.source
    if source is not None and "://" not in source and not source.startswith(HUB):
        config = config.model_copy(update={"source": str(Path(source).expanduser().absolute())})
    return config.model_dump(mode="json", exclude={"deploy"})


def _fields(identity: Any) -> dict[str, Any]:
    return {name: getattr(identity, name) for name in identity.__slots__}
