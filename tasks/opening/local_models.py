"""Load models into this process, each once: loading a model costs more than using it."""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from metric_core.errors import ConfigError
from tasks.models.embedders.huggingface_embedder import HuggingFaceCrossEncoder
from tasks.models.embedders.protocol import CrossEncoder
from tasks.models.recognizers.pipelines_by_language import PipelinesByLanguage
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.options.embedder_options import EmbedderSettings
from tasks.options.language_options import LanguageSettings
from tasks.options.load_profile import load_profile

if TYPE_CHECKING:
    from tasks.models.judges.verifiers.local_model import LocalModel


def load_pipeline(settings: LanguageSettings) -> SpacyPipeline:
    """Return the installed spaCy pipeline, or those of several languages as one."""
    return _load_pipeline(settings.pipeline, tuple(settings.pipelines.items()))


@lru_cache(maxsize=4)
def _load_pipeline(name: str, others: tuple[tuple[str, str], ...]) -> SpacyPipeline:
    if not others:
        return SpacyPipeline(name)
    return PipelinesByLanguage(name, {language: SpacyPipeline(other) for language, other in others})


@lru_cache(maxsize=4)
def load_cross_encoder(settings: EmbedderSettings) -> CrossEncoder:
    """Return the cross-encoder that scores pairs of texts.

    Raises:
        ConfigError: The settings name none.
    """
    if settings.cross_encoder is None:
        raise ConfigError(
            "a metric asks for encoder = 'cross', but embedder.cross_encoder names no model; "
            "set it to a cross-encoder's name or folder, or leave encoder at 'bi'"
        )
    return HuggingFaceCrossEncoder(settings.cross_encoder, settings.revision)


@lru_cache(maxsize=2)
def load_verifier(profile: str, model: str, revision: str, runtime: str) -> "LocalModel":
    """Return the model of a verifier.

    Args:
        profile: Name or file of the profile.
        model: Name at the hub, or a folder.
        revision: Branch, tag or commit at the hub.
        runtime: `auto`, `transformers` or `onnx`.
    """
    from tasks.models.judges.verifiers.local_engine import require_in_process  # noqa: PLC0415 loads numpy
    from tasks.models.judges.verifiers.onnx_model import OnnxModel, find_onnx  # noqa: PLC0415 loads onnxruntime
    from tasks.models.judges.verifiers.transformers_model import TransformersModel  # noqa: PLC0415 loads torch

    how, folder = require_in_process(load_profile(profile)), Path(model)
    if runtime == "onnx" or (runtime == "auto" and folder.is_dir() and find_onnx(folder) is not None):
        return OnnxModel(folder)
    return TransformersModel(model, revision, how)
