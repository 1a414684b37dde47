"""Describe what a run computes: each of its stages with the settings and all else that determines its results."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.engine.fingerprint import settings_fingerprint
from tasks.engine.formulas import digest_formulas_of
from tasks.engine.registry import STAGES
from tasks.opening.run_models import RunModels
from tasks.options.settings import Settings
from tasks.stages.definition import StageDefinition


@dataclass(frozen=True, slots=True)
class StageStep:
    """A stage of a run.

    Args:
        reads: Stages of the run whose results it reads.
        recipe: Digest of all that determines the result of a row, beside what the stage reads; None for a stage whose
            results cannot be reused.
        refresh: True to compute the results of all rows even if they are stored.
    """

    stage: Stage
    settings: Settings
    reads: tuple[Stage, ...]
    recipe: str | None
    refresh: bool = False

    @property
    def definition(self) -> StageDefinition[Any]:
        """The declaration of the stage."""
        return STAGES[self.stage]

    @property
    def is_judged(self) -> bool:
        """True if the stage asks a judge."""
        return bool(self.definition.asks)


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """The stages of a run, and how their rows are grouped.

    Args:
        steps: Stages in the order in which each comes after those that it reads.
        tables: Root of the store of tables and rows.
        shard_rows: Maximum number of rows per shard.
    """

    steps: Mapping[Stage, StageStep]
    tables: str
    window_rows: int
    shard_rows: int


def fingerprint_stage(stage: Stage, settings: Settings, models: RunModels) -> str:
    """Return the digest of everything that the settings of a stage determine.

    Args:
        models: Models of the run, which the settings select from.

    Raises:
        AssayError: A model that the settings name cannot be opened.
    """
    return settings_fingerprint(settings, models.select(settings), STAGES[stage].asks)


def make_recipe(stage: Stage, settings: Settings, models: RunModels, reads: Sequence[Stage]) -> str | None:
    """Return the digest of all that determines the result of a row in a stage, beside what the stage reads.

    Args:
        models: Models of the run, which the settings select from.
        reads: Stages of the run whose results it reads.

    Returns:
        The digest; None for scores of a user-defined metric, which may depend on anything, and if the code has changed
        since it was loaded.

    Raises:
        AssayError: A model that the settings name cannot be opened.
    """
    definition = STAGES[stage]
    formulas = digest_formulas_of(definition, settings)
    if formulas is None:
        return None
    fingerprint = fingerprint_stage(stage, settings, models)
    content = [stage, definition.version, SCHEMAS[stage].version, formulas, fingerprint, list(reads)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
