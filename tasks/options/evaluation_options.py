"""Compose the options that say what is evaluated, and by which metrics and models."""

from metric_core.question_kinds import KindGroup
from tasks.options.cache_options import CacheOptions
from tasks.options.citation_options import CitationOptions
from tasks.options.embedder_options import EmbedderOptions
from tasks.options.judge_options import JudgeOptions
from tasks.options.key_point_options import KeyPointOptions
from tasks.options.language_options import LanguageOptions
from tasks.options.metric_options import MetricOptions, VerdictKind
from tasks.options.retriever_options import RetrieverChoice
from tasks.options.source_options import DataOptions


# pydantic takes the fields of the last base first: read the groups from the bottom up.
class EvaluationOptions(
    CacheOptions,
    LanguageOptions,
    EmbedderOptions,
    JudgeOptions,
    RetrieverChoice,
    CitationOptions,
    KeyPointOptions,
    MetricOptions,
    DataOptions,
):
    """Options of an evaluation, wherever it is computed. All options that can change a score are among them."""

    @property
    def verdict_kind(self) -> VerdictKind:
        """The value of `verdict`, or the default for the judge that gives the verdicts.

        The built-in judge ranks claims better than it decides on them, and a response has few claims, so the share of
        claims above one half is 0 or 1 for most rows and throws its ranking away (`benchmarks/verdict_kinds.py`).

        >>> EvaluationOptions().verdict_kind, EvaluationOptions(judge="http://localhost:8000/v1").verdict_kind
        ('probability', 'binary')
        """
        if self.verdict is not None:
            return self.verdict
        judges = self.judges_of(KindGroup.VERDICTS)
        return "probability" if all(judge.answering_facts.ranks_claims for judge in judges) else "binary"
