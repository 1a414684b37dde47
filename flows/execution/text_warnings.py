"""Warn about texts of a run that its models were not made for: too long to be read at once."""

from collections.abc import Iterable, Mapping
from typing import Any

from tasks.runtime.usage import StageUsage
from tasks.tables.table_store import StageRef


def text_warnings(refs: Iterable[StageRef], manifest: Mapping[str, Any]) -> list[str]:
    """Return sentences about the texts of a run that its models were not made for.

    Args:
        refs: Tables of all stages and shards.
        manifest: Content of run.json.
    """
    noticed = sum((ref.usage for ref in refs), StageUsage())
    return [_describe_long_texts(noticed.long_texts, manifest)] if noticed.long_texts else []


def _describe_long_texts(count: int, manifest: Mapping[str, Any]) -> str:
    texts, vectors = ("text is", "its vector is") if count == 1 else ("texts are", "their vectors are")
    return (
        f"{count:,} {texts} longer than the embedder {manifest['embedder']['model']} reads at once; {vectors} averaged "
        "over windows that cover the whole text"
    )
