"""Warn about rows that a rerun reuses from a run with other models."""

from collections.abc import Iterator, Mapping
from typing import Any

from flows.execution.rerun_plan import Rerun
from flows.planning.metric_plan import MetricPlan
from metric_core.stages import Stage

_IDENTITY = ("backend", "model", "revision")
_RETURNED = {"judge": "answers", "embedder": "vectors", "language": "entities", "recognizer": "entities"}
"""Model -> what it returns."""


def warn_about_reused_rows(ready: Rerun, manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the warnings about reused rows, with those of the earlier run about rows that it reused itself.

    Args:
        ready: Rerun that is ready to run.
        manifest: Content of the new run's run.json.
    """
    if ready.request.chosen_rows == "all" and ready.request.stage is None:
        return ()
    found = (_two_models(model, ready.earlier.manifest, manifest) for model in _models_of(ready.plan.metrics))
    return tuple(dict.fromkeys((*ready.earlier.notes, *(note for note in found if note is not None))))


def _models_of(metrics: MetricPlan) -> Iterator[str]:
    yield "judge"
    if Stage.SIMILARITY in metrics.stages:
        yield "embedder"
    if Stage.ENTITIES in metrics.stages:
        yield from ("language", "recognizer")


def _two_models(model: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    before, now = ([(manifest.get(model) or {}).get(name) for name in _IDENTITY] for manifest in (old, new))
    if before == now:
        return None
    one, other = (" ".join(map(str, filter(None, identity))) or "none" for identity in (before, now))
    return (
        f"reused rows have {_RETURNED[model]} of {one}, recomputed rows of {other}; `--rows all` asks one "
        f"{model} about all rows"
    )
