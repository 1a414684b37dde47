"""Warn about what a run met: texts that its models were not made for, conversations, servers and unable judges."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.planning.metric_plan import MetricPlan, judges_conversations
from metric_core.claims.unread_markers import find_unread_marker
from metric_core.columns import EARLIER_TURNS, RESPONSE, RETRIEVED_CONTEXT_IDS
from metric_core.stages import Stage
from tasks.models.embedders.protocol import EmbedderIdentity
from tasks.models.recognizers.detection import UNKNOWN, language_name
from tasks.options.conversation_options import ConversationOptions
from tasks.options.language_options import LanguageSettings
from tasks.options.model_backends import find_backend
from tasks.plugins.load_object import Group
from tasks.record.run_record import RunRecord
from tasks.rows.computed_tables import RunTables
from tasks.runtime.activity import describe_cut_off
from tasks.runtime.usage import StageUsage
from tasks.runtime.wording import quote_names

_PACKAGED_PIPELINE = re.compile(r"([a-z]{2,3})_\w+$")

_OTHER_LANGUAGES = {
    "response": "the responses of {rows} are in another language than the question ({named})",
    "claims": (
        "the judge wrote the claims of {rows} in another language than the response ({named}), so that verdicts on "
        "them compare two languages: prompts in that language, or a better model, may help"
    ),
    "questions": (
        "the judge wrote the questions of {rows} in another language than the response ({named}), so that their "
        "similarity to the user's question says little"
    ),
}
"""Name of what may be in another language -> sentence about it."""


@dataclass(frozen=True, slots=True)
class LanguageCounts:
    """The number of rows of a run by language.

    Args:
        rows: ISO 639 code of the language of a row -> number of rows, the most frequent first.
        others: Name of a text in another language than expected, its language and the expected one -> number of rows.
    """

    rows: Mapping[str, int]
    others: Mapping[tuple[str, str, str], int]


def count_languages(tables: RunTables) -> LanguageCounts:
    """Count the rows of a run by language."""
    rows, others = Counter[str](), Counter[tuple[str, str, str]]()
    for shard in tables.shards(Stage.LANGUAGES, ["language", "others"]):
        rows.update({each["values"]: each["counts"] for each in shard["language"].value_counts().to_pylist()})
        found = (each for chunk in shard["others"].chunks for each in chunk.flatten().to_pylist())
        others.update((each["text"], each["language"], each["expected_language"]) for each in found)
    return LanguageCounts(dict(sorted(rows.items(), key=lambda item: (-item[1], item[0]))), others)


def text_warnings(tables: RunTables, record: RunRecord, languages: LanguageCounts) -> list[str]:
    """Return sentences about the texts of a run that its models were not made for."""
    long_texts = tables.total.long_texts
    warnings = [_describe_long_texts(long_texts, record.embedder)] if long_texts else []
    warnings += _describe_other_languages(languages.others)
    models = _measured_models(record, set(tables.stages))
    known = set.intersection(*map(set, models.values())) if models else set[str]()
    others = {code: rows for code, rows in languages.rows.items() if code not in {*known, UNKNOWN}}
    return [*warnings, _describe_languages(languages.rows, others, models)] if models and others else warnings


def _describe_long_texts(count: int, embedder: EmbedderIdentity | None) -> str:
    texts, vectors = ("text is", "its vector is") if count == 1 else ("texts are", "their vectors are")
    model = "" if embedder is None else embedder.model
    return (
        f"{count:,} {texts} longer than the embedder {model} reads at once; {vectors} averaged over windows that cover "
        "the whole text"
    )


def _measured_models(record: RunRecord, stages: set[Stage]) -> dict[str, list[str]]:
    """Return the languages on which the models that the run used were measured, for models that say so."""
    judge, embedder = record.judge, record.embedder
    uses_embedder = Stage.SIMILARITY in stages or find_backend(Group.JUDGES, judge.backend).compares_vectors
    models: dict[str, Sequence[str]] = {"judge": judge.languages}
    if embedder is not None and uses_embedder:
        models["embedder"] = embedder.languages
    if Stage.ENTITIES in stages and record.recognizer is None:
        models["pipeline of entities"] = _languages_of_pipelines(record.config.language)
    return {name: list(languages) for name, languages in models.items() if languages}


def _languages_of_pipelines(language: Mapping[str, Any]) -> list[str]:
    """Return the languages of the pipelines of a run; none if the name of the main one does not begin with its own.

    >>> _languages_of_pipelines({"pipeline": "en_core_web_sm", "pipelines": {"fr": "fr_core_news_sm"}})
    ['en', 'fr']
    """
    named = _PACKAGED_PIPELINE.match(language.get("pipeline") or LanguageSettings().pipeline)
    return [] if named is None else [named[1], *(language.get("pipelines") or ())]


def _describe_other_languages(rows: Mapping[tuple[str, str, str], int]) -> Iterator[str]:
    """Yield a sentence for each kind of text that is in another language than it should be."""
    for name, sentence in _OTHER_LANGUAGES.items():
        pairs = {(expected, found): count for (text, found, expected), count in rows.items() if text == name}
        if pairs:
            named = ", ".join(
                f"{language_name(found)} for {language_name(expected)} {count:,}"
                for (expected, found), count in sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
            )
            count = sum(pairs.values())
            yield sentence.format(rows=f"{count:,} {'row' if count == 1 else 'rows'}", named=named)


def _describe_languages(rows: Mapping[str, int], others: Mapping[str, int], models: Mapping[str, Sequence[str]]) -> str:
    named = ", ".join(f"{language_name(code)} {count:,}" for code, count in others.items())
    by_languages: dict[tuple[str, ...], list[str]] = {}
    for model, languages in models.items():
        by_languages.setdefault(tuple(languages), []).append(f"the {model}")
    measured = "; ".join(
        f"{' and '.join(names)}: {', '.join(map(language_name, languages))}"
        for languages, names in by_languages.items()
    )
    return (
        f"{sum(others.values()):,} of {sum(rows.values()):,} rows are in languages that models of this run were not "
        f"measured on ({named}), so how far their scores can be trusted is not known. Measured on: {measured}"
    )


def warn_about_turns(options: ConversationOptions, metrics: MetricPlan, tables: RunTables) -> list[str]:
    """Return a sentence about metrics that judge answers, and would judge conversations if they were the only ones."""
    able = [request.key for request in metrics.requests if judges_conversations(request)]
    if options.conversations is not None or not able or len(able) == len(metrics.requests):
        return []
    shards = tables.shards(Stage.SAMPLES, [EARLIER_TURNS])
    if not any(shard[EARLIER_TURNS].null_count < shard.num_rows for shard in shards):
        return []
    sentence = (
        f"the rows are answers of conversations, because other metrics need them: {', '.join(able)} would judge whole "
        'conversations alone, or with conversations = "whole"; "turns" leaves this warning out'
    )
    return [sentence]


def follow_up_warnings(tables: RunTables) -> list[str]:
    """Return a sentence about the follow-up questions of a run that are judged as they are, if there are any."""
    rows, reasons = 0, Counter[str]()
    if Stage.FOLLOW_UPS not in tables.stages:
        return []
    for shard in tables.shards(Stage.FOLLOW_UPS, ["question", "reason"]):
        rows += shard.num_rows
        unasked = (row["reason"] for row in shard.to_pylist() if row["question"] is None)
        reasons.update(reason or "no reason given" for reason in unasked)
    kept = reasons.total()
    if not kept:
        return []
    why = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common())
    sentence = (
        f"{kept:,} of {rows:,} questions that follow others are judged as they are, because the judge gave no "
        f"self-contained one: {why}"
    )
    return [sentence]


def warn_of_unread_markers(tables: RunTables, pattern: str | None) -> list[str]:
    """Return a sentence about responses that may cite in a form that is not read, if there are any.

    Args:
        pattern: Option `citation_pattern`.
    """
    if Stage.CLAIMS not in tables.stages:
        return []
    responses, examples = 0, Counter[str]()
    for shard in tables.shards(Stage.SAMPLES, [RESPONSE, RETRIEVED_CONTEXT_IDS]):
        for row in shard.to_pylist():
            responses += bool(row[RESPONSE])
            found = find_unread_marker(row[RESPONSE] or "", row[RETRIEVED_CONTEXT_IDS] or (), pattern)
            examples.update([] if found is None else [found])
    if not examples:
        return []
    verb = "holds" if examples.total() == 1 else "hold"
    named = quote_names(dict.fromkeys(example for example, _ in examples.most_common()), most=2)
    sentence = (
        f"{examples.total():,} of {responses:,} responses {verb} what looks like citation markers of a form that is "
        f"not read: {named}; citation_pattern (--citation-pattern) has them read"
    )
    return [sentence]


def warn_about_servers(usage: StageUsage, foreign: Sequence[str] = ()) -> Iterator[str]:
    """Yield warnings about the servers that answered for a run.

    Args:
        usage: Cost of all stages.
        foreign: Warnings that cached answers may come from other servers, given if the run used cached answers.
    """
    yield from usage.warnings
    if usage.stored:
        yield from foreign
    cut = usage.cut_off
    if cut.replies:
        yield (
            f"{describe_cut_off(cut.replies, cut.fewest, cut.most)}: the judge wrote much more than the text that it "
            "read asks for, and these answers failed. Use a better model; if the replies are right, raise "
            "max_output_tokens of the judge server"
        )


def warn_of_unanswerable(unable: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return warnings about metrics that are undefined because of the judge.

    >>> warn_of_unanswerable({"clarity": ["criteria_integer"]})[0]
    'clarity is undefined where it needs the judge, which cannot answer questions of kind criteria_integer'
    """
    return tuple(
        f"{metric} is undefined where it needs the judge, which cannot answer questions of kind {', '.join(kinds)}"
        for metric, kinds in unable.items()
    )
