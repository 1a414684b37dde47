"""Turn scores of rows into assessments of MLflow."""

import re
from collections.abc import Mapping
from typing import Any

from tasks.record.run_record import RunRecord
from tasks.reports.exports.scored_rows import Cell, is_judged
from tasks.runs.judge_roles import judge_name

_NOT_IN_NAMES = re.compile(r"[^\w.\- /]+", re.ASCII)
_OWN = "rag-assay"


def mlflow_name(text: str) -> str:
    """Return a name that MLflow accepts.

    >>> mlflow_name("noise_sensitivity(mode=irrelevant)")
    'noise_sensitivity mode irrelevant'
    """
    return _NOT_IN_NAMES.sub(" ", text).strip()


def sources_of(record: RunRecord) -> dict[str, tuple[str, str]]:
    """Return the type and the name of what scored each metric: the judge, or rag-assay itself."""
    kind = "LLM_JUDGE" if record.judge.language_model else "CODE"
    by_judge = (kind, judge_name(record) or _OWN)
    return {metric.key: by_judge if is_judged(metric) else ("CODE", _OWN) for metric in record.metrics}


def make_feedback(name: str, cell: Cell, source: tuple[str, str], metadata: Mapping[str, str]) -> Any:
    """Return the feedback of a score: its value or label with the judge's explanation, or why there is none.

    Args:
        source: Type and name of what scored it.
    """
    from mlflow.entities import AssessmentError, AssessmentSource, Feedback  # noqa: PLC0415 of an extra

    return Feedback(
        name,
        cell.label if cell.value is None else cell.value,
        AssessmentError("NO_SCORE", cell.reason) if cell.has_failed else None,
        source=AssessmentSource(*source),
        rationale=cell.explanation or cell.reason,
        metadata=dict(metadata),
    )
