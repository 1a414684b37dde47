"""Warn if a judge judges answers of models of its own family, if traces name the model that gave the answers."""

import json
from collections import Counter
from collections.abc import Iterable

import pyarrow as pa

from metric_core.parsing.model_families import family_of

_COLUMN = "model"
"""Column of a row from traces with the name of the model that answered."""


def warn_of_family(samples: Iterable[pa.Table], judge: str) -> tuple[str, ...]:
    """Return a sentence if answers come from models of the judge's family; nothing otherwise.

    Args:
        samples: Tables of samples; only the column `extras` is read.
        judge: Name of the judge's model.
    """
    family = family_of(judge)
    if family is None:
        return ()
    texts = (text for table in samples for text in table["extras"].to_pylist())
    names = (json.loads(text).get(_COLUMN) for text in texts if text and f'"{_COLUMN}"' in text)
    related = Counter(name for name in names if isinstance(name, str) and family_of(name) == family)
    if not related:
        return ()
    sentence = (
        f"judge and evaluated model are of one family: {judge} judges {related.total():,} answers of "
        f"{', '.join(related)}. Judges may prefer answers of their own family; with labels of people, `assay "
        "calibrate` shows whether this one does"
    )
    return (sentence,)
