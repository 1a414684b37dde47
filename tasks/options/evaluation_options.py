"""Compose the options that say what is evaluated, and by which metrics and models."""

from tasks.options.cache_options import CacheOptions
from tasks.options.embedder_options import EmbedderOptions
from tasks.options.judge_options import JudgeOptions
from tasks.options.language_options import LanguageOptions
from tasks.options.metric_options import MetricOptions
from tasks.options.retriever_options import RetrieverChoice
from tasks.options.source_options import DataOptions


# pydantic takes the fields of the last base first: read the groups from the bottom up.
class EvaluationOptions(
    CacheOptions,
    LanguageOptions,
    EmbedderOptions,
    JudgeOptions,
    RetrieverChoice,
    MetricOptions,
    DataOptions,
):
    """Options of an evaluation, wherever it is computed. All options that can change a score are among them."""
