"""Declare the options of the embedder."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from tasks.options.embedding_server_options import ServerEmbedderOptions
from tasks.options.model_backends import (
    PLUGIN,
    Backend,
    EmbedderBackend,
    PluginOptions,
    describe_backends,
    find_backend,
)
from tasks.options.model_words import parse_model
from tasks.options.option import Flag, ModelOptions, Option, OptionGroup
from tasks.plugins.load_object import Group


class EmbedderSettings(ModelOptions, affects_scores=True):
    """An embedder: its backend, and the options of that backend."""

    backend: Annotated[
        EmbedderBackend,
        Option(
            describe_backends(Group.EMBEDDERS),
            holds="secret",
        ),
    ] = "minilm"
    server: Annotated[
        ServerEmbedderOptions | None,
        Option("For server: its address and model.", examples=[{"urls": ["http://localhost:8001/v1"]}]),
    ] = None
    model: Annotated[
        str | None,
        Option("For huggingface: the model's name or folder.", holds="text", examples=["intfloat/e5-base-v2"]),
    ] = None
    revision: Annotated[str, Option("For huggingface: the model's revision.", holds="text")] = "main"
    cross_encoder: Annotated[
        str | None,
        Option(
            "Name or folder of the cross-encoder for metrics with encoder = 'cross'.",
            holds="text",
            examples=["cross-encoder/stsb-roberta-base"],
        ),
    ] = None
    options: Annotated[
        PluginOptions, Option("For a plugin: its arguments, with secrets as env:NAME or block:NAME.", holds="secret")
    ] = Field(default_factory=dict)

    @property
    def is_plugin(self) -> bool:
        """Whether it is a plugin."""
        return self.facts is PLUGIN

    @property
    def facts(self) -> Backend:
        """The facts about its backend."""
        return find_backend(Group.EMBEDDERS, self.backend)


class EmbedderOptions(OptionGroup, affects_scores=True):
    """The option that says which model embeds texts."""

    embedder: Annotated[
        EmbedderSettings,
        BeforeValidator(parse_model),
        Option(
            "The embedder, which turns texts into vectors.",
            holds="text",
            cli=Flag(
                long="--embedder",
                metavar="minilm|URL",
                help="The packaged embedder, or the /v1 URL of an embedding server.",
                default="minilm",
            ),
        ),
    ] = EmbedderSettings()
