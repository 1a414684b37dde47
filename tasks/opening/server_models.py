"""Connect to the servers of judges and embedders."""

from typing import TYPE_CHECKING

from metric_core.errors import ConfigError
from tasks.model_clients.served_model import Recognize
from tasks.models.embedders.protocol import Embedder
from tasks.models.judges.protocol import Judge
from tasks.options.embedder_options import EmbedderSettings
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.load_profile import load_profile

if TYPE_CHECKING:
    from tasks.models.judges.verifiers.question_plan import SentenceSplitter


def import_judge_client(settings: SingleJudgeSettings) -> None:
    """Import what the first request to the server of a judge needs."""
    if settings.profile is None:
        from tasks.models.judges.openai.openai_judge import OpenAIJudge  # noqa: F401, PLC0415
    else:
        from tasks.models.judges.verifiers.open_served import open_served_verifier  # noqa: F401, PLC0415


def connect_judge(settings: SingleJudgeSettings, recognize: Recognize) -> Judge:
    """Return a judge behind a server, after probing the features of the server.

    Args:
        recognize: Compares the model with those that gave cached answers.

    Raises:
        ConfigError: The settings do not say where the server is.
        JudgeError: No replica can be used.
    """
    from tasks.models.judges.openai.openai_judge import OpenAIJudge  # noqa: PLC0415 loads the client

    if settings.server is None:
        raise ConfigError("judge.backend is 'server', but judge.server does not say where it is; set judge.server.urls")
    return OpenAIJudge(settings.server, recognize)


def connect_verifier(settings: SingleJudgeSettings, splitter: "SentenceSplitter", recognize: Recognize) -> Judge:
    """Return a judge that asks a model behind a server which only verifies, after its canaries.

    Args:
        settings: Settings of the judge, with a profile.
        recognize: Compares the model with those that gave cached answers.

    Raises:
        ConfigError: The settings do not say where the server is, or the profile is for no server.
        JudgeError: No replica can be used, or the model is not that of the profile.
    """
    from tasks.models.judges.verifiers.open_served import open_served_verifier  # noqa: PLC0415 loads the client

    if settings.server is None:
        raise ConfigError("judge.backend is 'server', but judge.server does not say where it is; set judge.server.urls")
    profile = load_profile(settings.profile or "")
    return open_served_verifier(
        profile, settings.server, splitter, check_canaries=settings.canaries, recognize=recognize
    )


def connect_embedder(settings: EmbedderSettings, recognize: Recognize) -> Embedder:
    """Return an embedder behind a server.

    Args:
        recognize: Compares the model with those that gave cached vectors.

    Raises:
        ConfigError: The settings do not say where the server is, or name the model in the wrong place.
        EmbedderError: No replica can be used.
    """
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
    return OpenAIEmbedder(settings.server, recognize)
