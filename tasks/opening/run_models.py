"""Open the models of a run: the only place that turns settings into judges, embedders and recognizers."""

import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import lru_cache, partial
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from metric_core.calibration.sure_threshold import SureThreshold
from metric_core.errors import AssayError, ConfigError
from metric_core.question_kinds import KindGroup, QuestionKind
from tasks.models.embedders.protocol import CrossEncoder, Embedder
from tasks.models.judges.panel import CascadeRule, PanelJudge
from tasks.models.judges.protocol import Judge
from tasks.models.judges.routed_judge import RoutedJudge, needs_sentences
from tasks.models.protocol import Models
from tasks.models.recognizers.protocol import EntityRecognizer
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.opening.backends import JudgeHelpers, import_judge_client, load_embedder, open_embedder, open_judge
from tasks.opening.caches import open_cache
from tasks.opening.custom_models import CustomRecognizer
from tasks.opening.local_models import load_cross_encoder, load_pipeline
from tasks.opening.model_memory import ServedModels
from tasks.options.embedder_options import EmbedderSettings
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.judged_settings import JudgedSettings
from tasks.options.language_options import LanguageSettings
from tasks.options.narrow import narrow
from tasks.options.settings import Settings
from tasks.runtime.threads import ThreadLimitError, start_thread

if TYPE_CHECKING:
    from tasks.cache.cached_judge import CachedJudge
    from tasks.cache.cached_models import CachedEmbedder

_RUNS = 8
"""Number of runs whose connections a process keeps open; a run that is displaced by later ones reconnects."""

T = TypeVar("T")
M = TypeVar("M", SingleJudgeSettings, EmbedderSettings)


class RunModels:
    """The judges and embedding servers that one run has opened in this process. May be used from several threads.

    Runs do not share them, because the model at an address, or a prompt, may have changed since the previous run.
    Models that are loaded into the process are shared by all runs.

    Args:
        tables: Path or URL of the table store of the run, which knows the models that gave its rows; None for none.
        read_only: True to leave the table store as it is.
    """

    def __init__(self, tables: str | None = None, *, read_only: bool = False) -> None:
        self._tables = tables
        self._read_only = read_only
        self._opened: dict[Hashable, Any] = {}
        self._lock = RLock()
        self.processes: int | None = None
        """Number of processes that share the servers of the run; None if this one has them alone, or does not know."""

    def select(self, settings: Settings) -> Models:
        """Return the models that settings name, without opening them."""
        return _SelectedModels(self, narrow(settings, JudgedSettings))

    def open_judges(self, settings: JudgedSettings) -> Judge:
        """Return the judge of a stage; with a panel, a cascade or judges of groups of questions, all judges as one.

        Raises:
            AssayError: A judge cannot be opened, or two judges of a panel or cascade are the same.
        """
        opened: dict[SingleJudgeSettings, Judge] = {}

        def open_once(judge: SingleJudgeSettings) -> Judge:
            alone = narrow(judge, SingleJudgeSettings)
            if alone not in opened:
                opened[alone] = self.open_judge(alone, settings)
            return opened[alone]

        def open_panel(lead: SingleJudgeSettings, others: Sequence[SingleJudgeSettings]) -> Judge:
            if not others:
                return open_once(lead)
            members = [narrow(each, SingleJudgeSettings) for each in (lead, *others)]
            return self._panel([self.open_judge(member, settings) for member in members])

        default = open_panel(settings.judge, settings.panel)
        by_group = {group: open_panel(judge, judge.panel) for group, judge in settings.judge.by_group.items()}
        sentences = None
        if needs_sentences(default, by_group):
            from tasks.models.judges.builtin.sentence_claims import SentenceClaims  # noqa: PLC0415 compiles patterns

            sentences = SentenceClaims(partial(load_pipeline, settings.language))
        is_routed = bool(by_group) or sentences is not None
        routed = RoutedJudge(default, by_group, sentences) if is_routed else default
        if settings.cascade is None:
            return routed
        if settings.panel or KindGroup.VERDICTS in by_group:
            raise ConfigError("a cascade gives the verdicts: leave out `panel` and `judge.verdicts`, or `cascade`")
        if settings.cascade.first.launch is not None:
            raise ConfigError("a run does not launch the cheaper judge of a cascade: start it, and give its URL")
        cheaper = open_once(settings.cascade.first)
        writer = routed.fingerprint(QuestionKind.CLAIMS) if routed.can_answer(QuestionKind.CLAIMS) else ""
        rule = self._rule(cheaper, settings.cascade.thresholds or (), writer)
        cascade = self._panel([default, cheaper], rule)
        return RoutedJudge(cascade, by_group, sentences) if is_routed else cascade

    def _rule(self, cheaper: Judge, thresholds: Sequence[SureThreshold], writer: str) -> CascadeRule:
        return CascadeRule(cheaper, thresholds, writer)

    def _panel(self, members: Sequence[Judge], rule: CascadeRule | None = None) -> PanelJudge:
        panel = PanelJudge(members, rule)
        panel.reject_duplicates()
        return panel

    def open_judge(self, judge: SingleJudgeSettings, settings: JudgedSettings) -> Judge:
        """Return one judge, which answers repeated questions from the cache.

        Args:
            judge: The judge to open. Its launch settings have no effect.
            settings: The models that a built-in judge works with, and the address of the cache.
        """
        return self.open_cached_judge(judge, settings)

    def open_cached_judge(self, judge: SingleJudgeSettings, settings: JudgedSettings) -> "CachedJudge":
        """Return one judge with its cache; see `open_judge`."""
        from tasks.cache.cached_judge import CachedJudge  # noqa: PLC0415 loads the database driver

        answering = _answering(judge)
        if answering.facts.is_reopened:
            opened = self._open_judge(answering, settings)
        else:
            opened = self._open_once(_judge_key(answering, settings), lambda: self._open_judge(answering, settings))
        return CachedJudge(opened, open_cache(settings.cache), refresh=settings.refresh)

    def open_embedder(self, settings: EmbedderSettings, cache: str | None = None) -> "CachedEmbedder":
        """Return the embedder, which takes the vectors of repeated texts from the cache.

        Args:
            settings: The embedder to open.
            cache: Address of the cache; None for a file in ASSAY_HOME.
        """
        from tasks.cache.cached_models import CachedEmbedder  # noqa: PLC0415 loads the database driver

        if settings.facts.is_served:
            key = ("embedder", settings, cache)
            shared = _share(settings, self.processes)
            embedder = self._open_once(key, lambda: open_embedder(shared, self._memory(cache)))
        else:
            embedder = load_embedder(settings)
        return CachedEmbedder(embedder, open_cache(cache))

    def _open_judge(self, judge: SingleJudgeSettings, settings: JudgedSettings) -> Judge:
        helpers = JudgeHelpers(
            partial(self.open_embedder, settings.embedder, settings.cache),
            partial(load_pipeline, settings.language),
            self._memory(settings.cache),
        )
        return open_judge(_share(judge, self.processes), helpers)

    def _memory(self, cache: str | None) -> ServedModels:
        return ServedModels(cache, self._tables, self._read_only)

    def _open_once(self, key: Hashable, connect: Callable[[], T]) -> T:
        with self._lock:
            if key not in self._opened:
                early = _EARLY.pop((os.getpid(), key), None)
                self._opened[key] = connect() if early is None else early.result()
            opened: T = self._opened[key]
            return opened


class _SelectedModels:
    """The models that the settings of a stage name."""

    def __init__(self, run: RunModels, settings: JudgedSettings) -> None:
        self._run = run
        self._settings = settings

    def judge(self) -> Judge:
        return self._run.open_judges(self._settings)

    def embedder(self) -> Embedder:
        return self._run.open_embedder(self._settings.embedder, self._settings.cache)

    def cross_encoder(self) -> CrossEncoder:
        return load_cross_encoder(self._settings.embedder)

    def recognizer(self) -> EntityRecognizer:
        from tasks.cache.cached_models import CachedRecognizer  # noqa: PLC0415 loads the database driver

        language = self._settings.language
        custom = None if language.recognizer is None else CustomRecognizer(language.recognizer, language.options)
        return CachedRecognizer(custom or self.pipeline(), open_cache(self._settings.cache))

    def pipeline(self) -> SpacyPipeline:
        return load_pipeline(self._settings.language)


def models_for(run_id: str, tables: str) -> RunModels:
    """Return the models of a run in this process, the same for all its stages.

    Args:
        run_id: Id of the flow run.
        tables: Path or URL of its table store.
    """
    return _models_for(run_id, tables, os.getpid())


@lru_cache(maxsize=_RUNS)
def _models_for(run_id: str, tables: str, process: int) -> RunModels:
    del run_id, process  # only keys: a forked process must not use the connections of its parent
    return RunModels(tables)


def open_early(judges: Sequence[SingleJudgeSettings], settings: JudgedSettings, tables: str | None = None) -> None:
    """Begin to open the judges on servers that a run of this process is going to ask, in separate threads.

    Most of the time a server is waited for, while the command has much to import and the cache is connected. What a
    thread needs for its first request is imported here, since two threads that import take turns. The first run that
    opens such a judge takes it, or gets its error.

    Args:
        settings: Settings with which the run opens them.
        tables: Path or URL of the table store of the run.
    """
    served = [_answering(judge) for judge in judges if judge.facts.is_served and judge.launch is None]
    new = {key: judge for judge in served if (key := (os.getpid(), _judge_key(judge, settings))) not in _EARLY}
    for key, judge in new.items():
        import_judge_client(judge)
        future: Future[Any] = Future()
        _EARLY[key] = future
        work = partial(_settle, future, partial(RunModels(tables)._open_judge, judge, settings))  # noqa: SLF001
        try:
            start_thread("open-judge", copy_context().run, work)
        except ThreadLimitError:
            del _EARLY[key]  # the run opens it
    if new:
        with suppress(ThreadLimitError):
            start_thread("open-cache", _connect_cache, settings.cache)


_EARLY: dict[Hashable, "Future[Any]"] = {}
"""The judges that were begun to be opened, by process: a forked one must not use the connections of its parent."""


def _settle(future: "Future[T]", work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 whoever takes the judge gets it
        future.set_exception(error)


def _connect_cache(cache: str | None) -> None:
    """Connect the cache, which the judge asks as soon as its server has replied."""
    with suppress(Exception):  # whoever asks the cache reports its errors
        open_cache(cache).database.read(lambda _connection: None)


def _share(model: M, processes: int | None) -> M:
    """Return a model with the part of its server's requests in flight that one of several processes has."""
    if model.server is None or processes is None:
        return model
    server = model.server.model_copy(update={"concurrency": model.server.share(processes)})
    return model.model_copy(update={"server": server})


def _answering(judge: SingleJudgeSettings) -> SingleJudgeSettings:
    return narrow(judge, SingleJudgeSettings, launch=None, max_concurrent_stages=None)


def _judge_key(answering: SingleJudgeSettings, settings: JudgedSettings) -> Hashable:
    return ("judge", answering, settings.embedder, settings.language, settings.cache)


def preload(embedder: EmbedderSettings, language: LanguageSettings) -> None:
    """Load the models that almost every run uses. The run itself reports a model that cannot be loaded."""
    with suppress(AssayError):
        load_pipeline(language).entities(["It rains."])
        if not embedder.facts.is_served and not embedder.is_plugin:
            RunModels().open_embedder(embedder).embed([""])
