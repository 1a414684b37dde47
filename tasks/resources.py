"""Opens the judges and models that settings name, once a process: loading a model costs more than using it."""

from contextlib import suppress
from functools import lru_cache

from metric_core.errors import AssayError, ConfigError
from tasks.embed.huggingface import HuggingFaceCrossEncoder, HuggingFaceEmbedder
from tasks.embed.minilm import MiniLm
from tasks.embed.protocol import CrossEncoder, Embedder
from tasks.embed.stored import StoredEmbedder
from tasks.home import assay_home
from tasks.judge.builtin import BuiltinJudge
from tasks.judge.protocol import Judge
from tasks.judge.scripted import ScriptedJudge
from tasks.ner.spacy_pipeline import SpacyPipeline
from tasks.settings import EmbedderSettings, JudgeSettings, LanguageSettings

VECTORS = "vectors.db"
"""The store of vectors in ASSAY_HOME."""


@lru_cache(maxsize=4)
def open_pipeline(settings: LanguageSettings) -> SpacyPipeline:
    """The spaCy pipeline that finds entities and splits sentences."""
    return SpacyPipeline(settings.pipeline)


@lru_cache(maxsize=4)
def open_embedder(settings: EmbedderSettings) -> Embedder:
    """The model that turns texts into vectors, each text once on this machine."""
    return StoredEmbedder(_embedder(settings), assay_home() / VECTORS)


def _embedder(settings: EmbedderSettings) -> Embedder:
    if settings.backend == "minilm":
        return MiniLm()
    if settings.model is None:
        raise ConfigError("embedder.backend is 'huggingface', but embedder.model names no model")
    return HuggingFaceEmbedder(settings.model, settings.revision)


@lru_cache(maxsize=4)
def open_cross_encoder(settings: EmbedderSettings) -> CrossEncoder:
    """The model that scores pairs of texts."""
    if settings.cross_encoder is None:
        raise ConfigError(
            "a metric asks for encoder = 'cross', but embedder.cross_encoder names no model; "
            "set it to a cross-encoder's name or folder, or leave encoder at 'bi'"
        )
    return HuggingFaceCrossEncoder(settings.cross_encoder, settings.revision)


def open_judge(settings: JudgeSettings, embedder: EmbedderSettings, language: LanguageSettings) -> Judge:
    """The judge; how it was launched makes no difference."""
    return _open_judge(settings.model_copy(update={"launch": None}), embedder, language)


@lru_cache(maxsize=4)
def _open_judge(settings: JudgeSettings, embedder: EmbedderSettings, language: LanguageSettings) -> Judge:
    if settings.backend == "builtin":
        return BuiltinJudge(open_embedder(embedder), open_pipeline(language))
    if settings.backend == "server":
        return _open_server(settings)
    if settings.script is None:
        raise ConfigError("judge.backend is 'scripted', but judge.script names no file with answers")
    return ScriptedJudge.from_file(settings.script)


def preload(embedder: EmbedderSettings, language: LanguageSettings) -> None:
    """Loads the models that almost every run uses; one that can not be loaded is the run's to complain about."""
    with suppress(AssayError):
        open_pipeline(language).entities([""])
        open_embedder(embedder).embed([""])


def _open_server(settings: JudgeSettings) -> Judge:
    from tasks.judge.server.judge import ServerJudge  # noqa: PLC0415 who has no server need not load its client

    if settings.server is None:
        raise ConfigError("judge.backend is 'server', but judge.server does not say where it is; set judge.server.urls")
    return ServerJudge(settings.server)
