"""Load models into this process, each once: loading a model costs more than using it."""

from functools import lru_cache

from metric_core.errors import ConfigError
from tasks.models.embedders.huggingface_embedder import HuggingFaceCrossEncoder, HuggingFaceEmbedder
from tasks.models.embedders.minilm import MiniLm
from tasks.models.embedders.protocol import CrossEncoder, Embedder
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.opening.custom_models import CustomEmbedder
from tasks.options.embedder_options import EmbedderSettings


@lru_cache(maxsize=4)
def load_pipeline(name: str) -> SpacyPipeline:
    """Return an installed spaCy pipeline."""
    return SpacyPipeline(name)


@lru_cache(maxsize=4)
def load_embedder(settings: EmbedderSettings) -> Embedder:
    """Return an embedder that runs in this process.

    Raises:
        ConfigError: The backend is `huggingface`, and the settings name no model.
    """
    if settings.backend == "minilm":
        return MiniLm()
    if settings.is_plugin:
        return CustomEmbedder(settings.backend, settings.options)
    if settings.model is None:
        raise ConfigError("embedder.backend is 'huggingface', but embedder.model names no model")
    return HuggingFaceEmbedder(settings.model, settings.revision)


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
