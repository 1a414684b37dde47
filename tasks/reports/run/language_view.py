"""Describe the languages of a run for a page: those of the rows, and those on which its models were measured."""

from collections.abc import Mapping
from typing import Any

from tasks.models.recognizers.detection import UNKNOWN, language_name


def language_view(manifest: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the languages of the rows and of the models as texts; None for a run that did not detect them.

    Args:
        manifest: Content of run.json.

    >>> language_view({"languages": {"en": 45, "zh": 3}, "judge": {"languages": ["en"]}})
    {'rows': 'English 45, Chinese 3', 'models': 'judge measured on English'}
    """
    rows = manifest.get("languages")
    if not rows:
        return None
    named = (f"{'not clear' if code == UNKNOWN else language_name(code)} {count:,}" for code, count in rows.items())
    measured = {name: (manifest.get(name) or {}).get("languages") for name in ("judge", "embedder")}
    models = (
        f"{name} measured on {', '.join(map(language_name, languages))}"
        for name, languages in measured.items()
        if languages
    )
    return {"rows": ", ".join(named), "models": ", ".join(models)}
