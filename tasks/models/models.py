"""Opens the judges and models that settings name, once a process: loading a model costs more than using it."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from metric_core.errors import AssayError, ConfigError
from tasks.cache.cache_address import engine_url, normalize_address
from tasks.embedders.huggingface_embedder import HuggingFaceCrossEncoder, HuggingFaceEmbedder
from tasks.embedders.minilm import MiniLm
from tasks.embedders.protocol import CrossEncoder, Embedder
from tasks.judges.builtin import BuiltinJudge
from tasks.judges.panel import PanelJudge
from tasks.judges.protocol import Judge
from tasks.judges.scripted import ScriptedJudge
from tasks.models.custom_models import CustomEmbedder, CustomJudge, CustomRecognizer
from tasks.options.embedder_options import EmbedderSettings
from tasks.options.judge_options import JudgeSettings
from tasks.options.judged_settings import JudgedSettings
from tasks.options.language_options import LanguageSettings
from tasks.prefect_support.secret_blocks import read_secret_block
from tasks.recognizers.protocol import EntityRecognizer
from tasks.recognizers.spacy_pipeline import SpacyPipeline
from tasks.runtime import credentials
from tasks.runtime.home import assay_home

if TYPE_CHECKING:
    from tasks.cache.answer_cache import AnswerCache
    from tasks.cache.cached_judge import CachedJudge

credentials.READERS["block"] = read_secret_block

ANSWERS = "answers.db"
"""The store of answers in ASSAY_HOME."""

Planner: TypeAlias = Callable[[JudgeSettings, Callable[[], "CachedJudge"]], Judge]
"""Gets a judge's settings and the way to open it, and gives the one that is to be asked in its place."""

_MET: set[str] = set()
_MEETING = Lock()

_PLANNER: ContextVar[Planner | None] = ContextVar("planner", default=None)


def open_cache(answers: str | None = None) -> "AnswerCache":
    """The store of answers at an address; by default a file in ASSAY_HOME. Nothing is opened before it is used."""
    return _open_cache(engine_url(normalize_address(answers or str(assay_home() / ANSWERS))))


@lru_cache(maxsize=16)
def _open_cache(url: str) -> "AnswerCache":
    from tasks.cache.answer_cache import AnswerCache  # noqa: PLC0415 who runs nothing need not load its database

    return AnswerCache(url)


def open_pipeline(settings: LanguageSettings) -> SpacyPipeline:
    """The spaCy pipeline that splits sentences and, unless the user has another recogniser, finds entities."""
    return _pipeline(settings.pipeline)


@lru_cache(maxsize=4)
def _pipeline(name: str) -> SpacyPipeline:
    return SpacyPipeline(name)


def open_recognizer(settings: LanguageSettings, answers: str | None = None) -> EntityRecognizer:
    """The model that finds entities, in each text once."""
    from tasks.cache.cached_models import CachedRecognizer  # noqa: PLC0415

    own = None if settings.recognizer is None else CustomRecognizer(settings.recognizer, settings.options)
    return CachedRecognizer(own or open_pipeline(settings), open_cache(answers))


def open_embedder(settings: EmbedderSettings, answers: str | None = None) -> Embedder:
    """The model that turns texts into vectors, each text once."""
    from tasks.cache.cached_models import CachedEmbedder  # noqa: PLC0415

    return CachedEmbedder(_embedder(settings), open_cache(answers))


def _embedder(settings: EmbedderSettings) -> Embedder:
    if settings.backend == "server":
        return _open_embedding_server(settings, os.getpid())
    return _load_embedder(settings)


@lru_cache(maxsize=4)
def _load_embedder(settings: EmbedderSettings) -> Embedder:
    if settings.backend == "minilm":
        return MiniLm()
    if settings.is_own:
        return CustomEmbedder(settings.backend, settings.options)
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


def open_judges(settings: JudgedSettings) -> Judge:
    """The judge that a stage asks: one, or a panel."""
    lead, *others = [
        open_judge(member, settings.embedder, settings.language, settings.cache, refresh=settings.refresh)
        for member in (settings.judge, *settings.panel)
    ]
    if not others:
        return lead
    panel = PanelJudge([lead, *others])
    if _PLANNER.get() is None:  # judges that are out of reach look alike in a plan
        panel.reject_duplicates()
    return panel


def open_judge(
    settings: JudgeSettings,
    embedder: EmbedderSettings,
    language: LanguageSettings,
    answers: str | None = None,
    *,
    refresh: bool = False,
) -> Judge:
    """The judge, with the answers that it gave before; how it was launched makes no difference.

    Args:
        settings: who it is.
        embedder: for the builtin judge.
        language: for the builtin judge.
        answers: address of the store of answers; by default a file in ASSAY_HOME.
        refresh: ask although the answers are in the store.
    """
    from tasks.cache.cached_judge import CachedJudge  # noqa: PLC0415

    def opened() -> CachedJudge:
        if settings.backend == "scripted":
            return CachedJudge(_scripted(settings), open_cache(answers), refresh=refresh)
        reached = settings.model_copy(update={"launch": None, "max_concurrent_stages": None})
        judge = _open_judge(reached, embedder, language, answers, os.getpid())
        return CachedJudge(judge, open_cache(answers), refresh=refresh)

    planner = _PLANNER.get()
    return opened() if planner is None else planner(settings, opened)


@contextmanager
def replace_judges(planner: Planner) -> Iterator[None]:
    """Puts another judge in the place of every judge that this thread opens in the block."""
    token = _PLANNER.set(planner)
    try:
        yield
    finally:
        _PLANNER.reset(token)


@lru_cache(maxsize=16)
def _open_judge(
    settings: JudgeSettings, embedder: EmbedderSettings, language: LanguageSettings, answers: str | None, process: int
) -> Judge:
    del process  # that of the connections: a process that was forked from it needs its own
    if settings.backend == "builtin":
        return BuiltinJudge(open_embedder(embedder, answers), open_pipeline(language))
    if settings.is_own:
        return CustomJudge(settings.backend, settings.options)
    return _open_server(settings)


def _scripted(settings: JudgeSettings) -> Judge:
    """Read every time: a script is short, and may change while the process lives."""
    if settings.script is None:
        raise ConfigError("judge.backend is 'scripted', but judge.script names no file with answers")
    return ScriptedJudge.from_file(settings.script)


def reset_clients_for_run(run_id: str) -> None:
    """Forgets servers when this process first hears of a run: a model at an address, or a prompt, may have changed."""
    with _MEETING:
        if run_id not in _MET:
            _open_judge.cache_clear()
            _open_embedding_server.cache_clear()
            _MET.add(run_id)


def preload(embedder: EmbedderSettings, language: LanguageSettings) -> None:
    """Loads the models that almost every run uses; one that can not be loaded is the run's to complain about."""
    with suppress(AssayError):
        open_pipeline(language).entities([""])
        if embedder.backend != "server" and not embedder.is_own:
            open_embedder(embedder).embed([""])


@lru_cache(maxsize=4)
def _open_embedding_server(settings: EmbedderSettings, process: int) -> Embedder:
    del process  # as in _open_judge
    from tasks.embedders.openai_embedder import OpenAIEmbedder  # noqa: PLC0415 who has no server need not load its client

    if settings.server is None:
        raise ConfigError(
            "embedder.backend is 'server', but embedder.server does not say where it is; set embedder.server.urls"
        )
    if settings.model is not None:
        raise ConfigError(
            f"embedder.backend is 'server', but embedder.model, which names {settings.model!r}, is for huggingface; "
            "name the server's model in embedder.server.model, or leave it out if the server has only one"
        )
    return OpenAIEmbedder(settings.server)


def _open_server(settings: JudgeSettings) -> Judge:
    from tasks.judges.openai.openai_judge import OpenAIJudge  # noqa: PLC0415 who has no server need not load its client

    if settings.server is None:
        raise ConfigError("judge.backend is 'server', but judge.server does not say where it is; set judge.server.urls")
    return OpenAIJudge(settings.server)
