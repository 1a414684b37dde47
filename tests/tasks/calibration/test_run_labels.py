"""Labels of a run whose rows have weights, and the corrected mean that follows."""

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from metric_core.calibration.sampled_labels import estimate_label_mean
from metric_core.schemas import SAMPLES
from tasks.calibration.run_labels import RunLabels, weigh
from tasks.record.run_record import RecordedConfig


def run_of(weights: str | None, numbers: dict[str, float]) -> Any:
    rows = [{"row_id": row, "extras": json.dumps({"w": number})} for row, number in numbers.items()]
    table = pa.Table.from_pylist([{field.name: row.get(field.name) for field in SAMPLES.fields} for row in rows])
    return SimpleNamespace(record=SimpleNamespace(config=RecordedConfig(weights=weights)), samples=lambda: [table])


def test_labels_of_rows_and_verdicts_count_by_the_weights_of_rows() -> None:
    rows = RunLabels(("a", "b"), (1.0, 0.0), (1.0, None))
    numbers = {"a": 1.0, "b": 3.0}
    assert weigh(rows, run_of(None, numbers)) is rows
    assert weigh(None, run_of("w", numbers)) is None
    weighted = weigh(rows, run_of("w", numbers))
    assert weighted is not None
    assert weighted.weights == [0.5, 1.5]


def test_a_corrected_mean_counts_rows_by_weight() -> None:
    is_rare = np.arange(300) % 5 == 0
    numbers = {f"{row}": 4.0 if rare else 1.0 for row, rare in enumerate(is_rare)}
    labels = [None if row % 2 else float(not rare or row % 3 == 0) for row, rare in enumerate(is_rare)]
    plain = RunLabels([*numbers], np.where(is_rare, 0.4, 0.95).tolist(), labels)
    weighted = weigh(plain, run_of("w", numbers))
    assert weighted is not None
    once, by_weight = (estimate_label_mean(each.as_sample()).estimate for each in (plain, weighted))
    assert once.value == pytest.approx(0.87, abs=0.03)
    assert by_weight.value == pytest.approx(0.67, abs=0.04)
