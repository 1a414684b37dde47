"""Define the base classes of the settings of stages that use models."""

from collections.abc import Sequence
from typing import Annotated

from metric_core.prompts.judge_questions import Kind
from tasks.options.cache_options import CacheOptions
from tasks.options.embedder_options import EmbedderOptions
from tasks.options.judge_options import JudgeOptions
from tasks.options.language_options import LanguageOptions
from tasks.options.option import Option


class StoredSettings(CacheOptions):
    """Base of the settings of stages that use models, whose output is cached."""

    only_options = False


class JudgedSettings(JudgeOptions, EmbedderOptions, LanguageOptions, StoredSettings, affects_scores=False):
    """Base of the settings of stages that ask a judge. The built-in judge uses the embedder and the pipeline."""

    only_options = False

    refresh: Annotated[bool, Option("Ask the judge even if its answers are cached.")] = False

    def asked_kinds(self, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
        """Return the kinds of questions that a stage with these settings may ask.

        Args:
            kinds: Kinds of questions that the stage may ask with any settings.
        """
        return tuple(kinds)
