"""Open the model of a backend: one function for each backend that `tasks/options/model_backends.py` declares."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from metric_core.errors import ConfigError
from tasks.models.clients.observed_model import ModelMemory, NoMemory
from tasks.models.embedders.huggingface_embedder import HuggingFaceEmbedder
from tasks.models.embedders.minilm import MiniLm
from tasks.models.embedders.protocol import Embedder
from tasks.models.judges.protocol import Judge
from tasks.models.judges.scripted import ScriptedJudge
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.opening.custom_models import CustomEmbedder, CustomJudge
from tasks.opening.local_models import load_verifier
from tasks.options.embedder_options import EmbedderSettings
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.load_profile import load_profile
from tasks.options.verifier_options import VerifierOptions

if TYPE_CHECKING:
    from tasks.models.judges.verifiers.question_plan import SentenceSplitter


@dataclass(frozen=True, slots=True)
class JudgeHelpers:
    """The models that a judge may use besides its own. Each is opened when it is called.

    Args:
        embedder: Opens the embedder of the run.
        pipeline: Loads the spaCy pipeline of the run.
        memory: The models of servers that gave cached answers.
    """

    embedder: Callable[[], Embedder]
    pipeline: Callable[[], SpacyPipeline]
    memory: ModelMemory


JudgeOpener: TypeAlias = Callable[[SingleJudgeSettings, JudgeHelpers], Judge]
EmbedderOpener: TypeAlias = Callable[[EmbedderSettings, ModelMemory], Embedder]


def open_judge(settings: SingleJudgeSettings, helpers: JudgeHelpers) -> Judge:
    """Return the judge that settings name.

    Raises:
        ConfigError: The settings lack what the backend needs.
        MissingDependencyError: The library that runs it is not installed.
        JudgeError: No server can be used, the model cannot be loaded, or it is not that of the profile.
        PluginError: The plugin cannot be used.
    """
    return JUDGES.get(settings.backend, _open_custom_judge)(settings, helpers)


def open_embedder(settings: EmbedderSettings, memory: ModelMemory) -> Embedder:
    """Return the embedder that settings name.

    Args:
        memory: The models of servers that gave cached vectors.

    Raises:
        ConfigError: The settings lack what the backend needs, or name the model in the wrong place.
        EmbedderError: No server can be used.
        PluginError: The plugin cannot be used.
    """
    return EMBEDDERS.get(settings.backend, _open_custom_embedder)(settings, memory)


@lru_cache(maxsize=4)
def load_embedder(settings: EmbedderSettings) -> Embedder:
    """Return an embedder that runs in this process, loaded once: loading it costs more than using it."""
    return open_embedder(settings, NoMemory())


def open_splitter(judge: SingleJudgeSettings, pipeline: Callable[[], SpacyPipeline]) -> "SentenceSplitter":
    """Return the splitter of texts into sentences for a verifier.

    Args:
        pipeline: Loads the pipeline, if the profile needs sentences.
    """
    from tasks.models.judges.verifiers.question_plan import SentenceSplitter  # noqa: PLC0415 loads the client

    if not load_profile(judge.profile or "").chunks.needs_sentences:
        return SentenceSplitter(lambda texts: [[text] for text in texts], "")
    loaded = pipeline()
    return SentenceSplitter(loaded.verbatim_sentences, f"verbatim {loaded.identity!r}")


def import_judge_client(settings: SingleJudgeSettings) -> None:
    """Import what the first request to the server of a judge needs."""
    if settings.profile is None:
        from tasks.models.judges.openai.openai_judge import OpenAIJudge  # noqa: F401, PLC0415
    else:
        from tasks.models.judges.verifiers.open_served import open_served_verifier  # noqa: F401, PLC0415


def _open_builtin(settings: SingleJudgeSettings, helpers: JudgeHelpers) -> Judge:
    from tasks.models.judges.builtin import BuiltinJudge  # noqa: PLC0415 compiles many patterns

    del settings
    return BuiltinJudge(helpers.embedder(), helpers.pipeline())


def _connect_judge(settings: SingleJudgeSettings, helpers: JudgeHelpers) -> Judge:
    """Return a judge behind a server: a language model, or with a profile a model that only verifies."""
    if settings.server is None:
        raise ConfigError("judge.backend is 'server', but judge.server does not say where it is; set judge.server.urls")
    if settings.profile is None:
        from tasks.models.judges.openai.openai_judge import OpenAIJudge  # noqa: PLC0415 loads the client

        return OpenAIJudge(settings.server, helpers.memory)
    from tasks.models.judges.verifiers.open_served import open_served_verifier  # noqa: PLC0415 loads the client

    return open_served_verifier(
        load_profile(settings.profile),
        settings.server,
        open_splitter(settings, helpers.pipeline),
        check_canaries=settings.canaries,
        memory=helpers.memory,
    )


def _run_verifier(settings: SingleJudgeSettings, helpers: JudgeHelpers) -> Judge:
    """Return a judge that runs a verifier in this process, after its canaries."""
    from tasks.models.judges.verifiers.local_engine import open_local_verifier  # noqa: PLC0415 loads numpy

    if settings.profile is None:
        raise ConfigError("judge.backend is 'verifier', but judge.profile names no profile; set one, such as 'factcg'")
    profile, chosen = load_profile(settings.profile), settings.verifier or VerifierOptions()
    name = chosen.model or profile.model
    model = load_verifier(settings.profile, name, chosen.revision, chosen.runtime)
    splitter = open_splitter(settings, helpers.pipeline)
    return open_local_verifier(profile, name, model, splitter, check_canaries=settings.canaries)


def _read_script(settings: SingleJudgeSettings, helpers: JudgeHelpers) -> Judge:
    del helpers
    if settings.script is None:
        raise ConfigError("judge.backend is 'scripted', but judge.script names no file with answers")
    return ScriptedJudge.from_file(settings.script)


def _open_custom_judge(settings: SingleJudgeSettings, helpers: JudgeHelpers) -> Judge:
    del helpers
    if settings.profile is not None:
        raise ConfigError(
            f"judge.profile is {settings.profile!r}, but judge.backend is {settings.backend!r}; a profile is for the "
            "backends server and verifier"
        )
    return CustomJudge(settings.backend, settings.options)


def _load_huggingface(settings: EmbedderSettings, memory: ModelMemory) -> Embedder:
    del memory
    if settings.model is None:
        raise ConfigError("embedder.backend is 'huggingface', but embedder.model names no model")
    return HuggingFaceEmbedder(settings.model, settings.revision)


def _connect_embedder(settings: EmbedderSettings, memory: ModelMemory) -> Embedder:
    from tasks.models.embedders.openai_embedder import OpenAIEmbedder  # noqa: PLC0415 loads the client

    if settings.server is None:
        raise ConfigError(
            "embedder.backend is 'server', but embedder.server does not say where it is; set embedder.server.urls"
        )
    if settings.model is not None:
        raise ConfigError(
            f"embedder.backend is 'server', but embedder.model, which names {settings.model!r}, is for huggingface; "
            "name the server's model in embedder.server.model, or leave it out if the server has only one"
        )
    return OpenAIEmbedder(settings.server, memory)


def _open_custom_embedder(settings: EmbedderSettings, memory: ModelMemory) -> Embedder:
    del memory
    return CustomEmbedder(settings.backend, settings.options)


JUDGES: Mapping[str, JudgeOpener] = {
    "builtin": _open_builtin,
    "server": _connect_judge,
    "verifier": _run_verifier,
    "scripted": _read_script,
}
EMBEDDERS: Mapping[str, EmbedderOpener] = {
    "minilm": lambda _settings, _memory: MiniLm(),
    "huggingface": _load_huggingface,
    "server": _connect_embedder,
}
