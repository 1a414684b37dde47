"""Find the judge's part in the variance of the means of a run, from rows that were asked about again."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metric_core.columns import USER_INPUT
from metric_core.stages import Stage
from metric_core.statistics.judge_variance import read_judge_variance, split_variance
from tasks.rows.computed_tables import RunTables
from tasks.runs.judge_drift import ASKED_AGAIN, read_findings


def read_second_judgments(manifest: Mapping[str, Any]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return metric -> row id -> the score of a row of a run and the one when it was judged again.

    Metrics are left out if parts of their scores are texts of the judge, which are not asked for again.

    Args:
        manifest: Content of run.json.
    """
    again = manifest.get(ASKED_AGAIN) or {}
    scores = again.get("scores") or {}
    return {
        metric: {row: (first, second) for row, (first, second) in scores[metric].items()}
        for metric in again.get("variance") or ()
        if metric in scores
    }


def find_judge_variance(findings: Mapping[str, Any], tables: RunTables) -> dict[str, dict[str, Any]]:
    """Return metric -> entry of `judge_variance` in run.json: the judge's variance and its share in that of the mean.

    Rows of the run that were asked about again count; without them those of the anchor.

    Args:
        findings: Content of run.json, with what was asked again.
    """
    own = (findings.get(ASKED_AGAIN) or {}).get("variance")
    variances = own or read_findings(findings).get("variance") or {}
    if not variances:
        return {}
    scores = pa.concat_tables(tables.shards(Stage.AGGREGATION, ["row_id", "metric", "value"]))
    samples = pa.concat_tables(tables.shards(Stage.SAMPLES, ["row_id", USER_INPUT]))
    found = {}
    for metric, entry in variances.items():
        cells = scores.filter(pc.and_(pc.equal(scores["metric"], metric), pc.is_valid(scores["value"])))
        places = pc.index_in(cells["row_id"], value_set=samples["row_id"].combine_chunks())
        questions = samples[USER_INPUT].take(places)
        shares = split_variance(
            cells["value"].to_numpy().astype(np.float64),
            read_judge_variance(entry),
            None if questions.null_count else questions.to_pylist(),
        )
        if shares is not None:
            found[metric] = {**entry, "of_anchor": not own, "shares": asdict(shares), "advice": shares.advise()}
    return found
