"""Describe the languages of a run for a page: those of the rows, and those on which its models were measured."""

from tasks.models.recognizers.detection import UNKNOWN, language_name
from tasks.record.run_record import RunRecord


def language_view(record: RunRecord) -> dict[str, str] | None:
    """Return the languages of the rows and of the models as texts; None for a run that did not detect them."""
    rows = record.languages
    if not rows:
        return None
    named = (f"{'not clear' if code == UNKNOWN else language_name(code)} {count:,}" for code, count in rows.items())
    measured = {
        "judge": record.judge.languages,
        "embedder": () if record.embedder is None else record.embedder.languages,
    }
    models = (
        f"{name} measured on {', '.join(map(language_name, languages))}"
        for name, languages in measured.items()
        if languages
    )
    return {"rows": ", ".join(named), "models": ", ".join(models)}
