"""Compute the digest of everything but the input tables that determines a stage's table.

Settings say where a judge is and how to reach it, but its answers depend on its model, prompts and sampling. Therefore
the digest contains the judge's fingerprint in place of its settings.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from metric_core.prompts.judge_questions import CustomKind, Kind
from metric_core.stages import Product
from tasks.models.judges.protocol import Judge
from tasks.models.judges.routed_judge import judge_for
from tasks.models.protocol import Models
from tasks.options.embedder_options import EmbedderSettings
from tasks.options.judged_settings import JudgedSettings
from tasks.options.language_options import LanguageSettings
from tasks.options.metric_settings import MetricSettings
from tasks.options.option import implementation_fields
from tasks.options.settings import Settings


def settings_fingerprint(settings: Settings, models: Models, asks: Sequence[Kind] = ()) -> str:
    """Return the digest of everything that a stage's settings determine.

    Args:
        asks: Kinds of questions that the stage may ask the judge.

    Raises:
        AssayError: A model that the settings name cannot be opened.
    """
    content: dict[str, Any] = settings.model_dump(mode="json", exclude=implementation_fields(type(settings)))
    if isinstance(settings, JudgedSettings):
        kinds = (*asks, *_kinds_of_metrics(settings, asks))
        content["judge"] = _judge_fingerprints(models.judge(), kinds, settings.asked_kinds(asks))
    elif isinstance(embedder := getattr(settings, "embedder", None), EmbedderSettings):
        content["embedder"] = embedder.model_dump(mode="json", include={"cross_encoder", "revision"})
        content["embedder"]["identity"] = asdict(models.embedder().identity)
        if Product.ANSWER_SIMILARITY_BY_CROSS_ENCODER in getattr(settings, "products", ()):
            content["cross_encoder"] = asdict(models.cross_encoder().identity)
    if isinstance(language := getattr(settings, "language", None), LanguageSettings):
        content["language"] = asdict(models.pipeline().identity)
        if language.recognizer is not None:
            content["recognizer"] = asdict(models.recognizer().identity)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def identities(settings: Settings, models: Models) -> Iterator[tuple[str, str]]:
    """Yield the kind and the identity of each model that a stage's settings name.

    Raises:
        AssayError: A model that the settings name cannot be opened.
    """
    if isinstance(settings, JudgedSettings):
        judge = models.judge().identity
        yield "judge", " ".join(filter(None, (judge.backend, judge.model, judge.revision, judge.served)))
    elif isinstance(getattr(settings, "embedder", None), EmbedderSettings):
        yield "embedder", repr(models.embedder().identity)
    if isinstance(getattr(settings, "language", None), LanguageSettings):
        yield "language pipeline", repr(models.pipeline().identity)


def _judge_fingerprints(judge: Judge, kinds: Sequence[Kind], asked: Sequence[Kind]) -> dict[str, str | None]:
    """Return the fingerprint of each kind of question; None for one that cannot be answered.

    A kind that is not asked counts as if it went to the judge of the first kind that is. So a judge that is asked
    nothing has no part in the digest, and one judge for all groups gives the same digest as a judge for this one alone.
    """
    first = judge_for(judge, asked[0]) if asked else judge
    found = {}
    for kind in kinds:
        answering = judge_for(judge, kind) if kind in asked else first
        found[str(kind)] = answering.fingerprint(kind) if answering.can_answer(kind) else None
    return found


def _kinds_of_metrics(settings: Settings, asks: Sequence[Kind]) -> list[Kind]:
    """Return the kinds of questions that come with the metrics of a stage: custom kinds, and kinds of one family."""
    metrics: Sequence[MetricSettings] = getattr(settings, "metrics", ())
    kinds = (kind for metric in metrics for kind in metric.request().metric.question_kinds)
    return [kind for kind in kinds if isinstance(kind, CustomKind) or _comes_with_metrics(kind, asks)]


def _comes_with_metrics(kind: Kind, asks: Sequence[Kind]) -> bool:
    return any(asked.group is kind.group for asked in asks) and kind not in asks
