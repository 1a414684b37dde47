"""What determines a stage's table besides the tables it is made from, as one digest.

Settings say where a judge is and how it is reached; what determines its answers is which model it is, what it is asked
and how. So the judge's own account of that takes the place of its settings.
"""

import hashlib
import json
from dataclasses import asdict
from typing import Any

from metric_core.stages import Product
from tasks.models.models import open_cross_encoder, open_embedder, open_judges, open_pipeline, open_recognizer
from tasks.options.judged_settings import JudgedSettings
from tasks.options.language_options import LanguageSettings
from tasks.options.option import implementation_fields
from tasks.options.settings import Settings


def settings_fingerprint(settings: Settings) -> str:
    """Digest of all that a stage's settings determine.

    Raises:
        AssayError: a model that the settings name can not be opened.
    """
    content: dict[str, Any] = settings.model_dump(mode="json", exclude=implementation_fields(type(settings)))
    if isinstance(settings, JudgedSettings):
        judge = open_judges(settings)
        content["judge"] = {kind: judge.fingerprint(kind) for kind in settings.asks}
    elif (embedder := getattr(settings, "embedder", None)) is not None:
        content["embedder"] = embedder.model_dump(mode="json", include={"cross_encoder", "revision"})
        content["embedder"]["identity"] = asdict(open_embedder(embedder).identity)
        if Product.ANSWER_SIMILARITY_BY_CROSS_ENCODER in getattr(settings, "products", ()):
            content["cross_encoder"] = asdict(open_cross_encoder(embedder).identity)
    if isinstance(language := getattr(settings, "language", None), LanguageSettings):
        content["language"] = asdict(open_pipeline(language).identity)
        if language.recognizer is not None:
            content["recognizer"] = asdict(open_recognizer(language).identity)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
