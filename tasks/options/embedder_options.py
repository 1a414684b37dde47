"""Declare the options of the embedder."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from tasks.options.embedding_server_options import ServerEmbedderOptions
from tasks.options.model_backends import BUILT_IN, EmbedderBackend, PluginOptions
from tasks.options.model_words import parse_model
from tasks.options.option import Flag, ModelOptions, Option, OptionGroup
from tasks.plugins.load_object import Group


class EmbedderSettings(ModelOptions):
    """An embedder: its backend, and the options of that backend."""

    backend: Annotated[
        EmbedderBackend,
        Option(
            "minilm (packaged, no download), huggingface (needs the extra transformers), server (a model behind an "
            "OpenAI-compatible /v1/embeddings) or a plugin: module:attribute or an entry point.",
            path=False,
            may_hold_secret=True,
            affects_scores=True,
        ),
    ] = "minilm"
    server: Annotated[
        ServerEmbedderOptions | None,
        Option(
            "For server: its address and model.",
            path=False,
            may_hold_secret=True,
            affects_scores=True,
            examples=[{"urls": ["http://localhost:8001/v1"]}],
        ),
    ] = None
    model: Annotated[
        str | None,
        Option(
            "For huggingface: the model's name or folder.",
            path=False,
            may_hold_secret=False,
            affects_scores=True,
            examples=["intfloat/e5-base-v2"],
        ),
    ] = None
    revision: Annotated[
        str,
        Option("For huggingface: the model's revision.", path=False, may_hold_secret=False, affects_scores=True),
    ] = "main"
    cross_encoder: Annotated[
        str | None,
        Option(
            "Name or folder of the cross-encoder for metrics with encoder = 'cross'.",
            path=False,
            may_hold_secret=False,
            affects_scores=True,
            examples=["cross-encoder/stsb-roberta-base"],
        ),
    ] = None
    options: Annotated[
        PluginOptions,
        Option(
            "For a plugin: its arguments, with secrets as env:NAME or block:NAME.",
            path=False,
            may_hold_secret=True,
            affects_scores=True,
        ),
    ] = Field(default_factory=dict)

    @property
    def is_plugin(self) -> bool:
        """Whether it is a plugin."""
        return self.backend not in BUILT_IN[Group.EMBEDDERS]


class EmbedderOptions(OptionGroup):
    """The option that says which model embeds texts."""

    embedder: Annotated[
        EmbedderSettings,
        BeforeValidator(parse_model),
        Option(
            "The embedder, which turns texts into vectors.",
            path=False,
            may_hold_secret=False,
            affects_scores=True,
            cli=Flag(
                long="--embedder",
                metavar="minilm|URL",
                help="The packaged embedder, or the /v1 URL of an embedding server.",
                default="minilm",
            ),
        ),
    ] = EmbedderSettings()
