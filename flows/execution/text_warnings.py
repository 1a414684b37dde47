"""Warn about texts of a run that its models were not made for: too long to be read at once, or in other languages."""

from collections.abc import Mapping, Sequence
from typing import Any

from metric_core.stages import Stage
from tasks.models.recognizers.detection import UNKNOWN, language_name
from tasks.rows.computed_tables import RunTables


def text_warnings(tables: RunTables, manifest: Mapping[str, Any]) -> list[str]:
    """Return sentences about the texts of a run that its models were not made for.

    Args:
        tables: Tables of the run.
        manifest: Content of run.json.
    """
    noticed = tables.total
    warnings = [_describe_long_texts(noticed.long_texts, manifest)] if noticed.long_texts else []
    models = _measured_models(manifest, set(tables.stages))
    known = set.intersection(*map(set, models.values())) if models else set[str]()
    others = {code: rows for code, rows in noticed.languages.items() if code not in {*known, UNKNOWN}}
    return [*warnings, _describe_languages(noticed.languages, others, models)] if models and others else warnings


def count_languages(tables: RunTables) -> dict[str, int]:
    """Return the number of rows of a run by ISO 639 code of their language, the most frequent first."""
    return dict(sorted(tables.total.languages.items(), key=lambda item: -item[1]))


def _describe_long_texts(count: int, manifest: Mapping[str, Any]) -> str:
    texts, vectors = ("text is", "its vector is") if count == 1 else ("texts are", "their vectors are")
    return (
        f"{count:,} {texts} longer than the embedder {manifest['embedder']['model']} reads at once; {vectors} averaged "
        "over windows that cover the whole text"
    )


def _measured_models(manifest: Mapping[str, Any], stages: set[Stage]) -> dict[str, list[str]]:
    """Return the languages on which the models that the run used were measured, for models that say so."""
    judge, embedder = manifest.get("judge") or {}, manifest.get("embedder") or {}
    uses_embedder = Stage.SIMILARITY in stages or judge.get("backend") == "builtin"
    models = {"judge": judge.get("languages"), "embedder": embedder.get("languages") if uses_embedder else None}
    return {name: list(languages) for name, languages in models.items() if languages}


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
