"""Find the judge's part in the variance of the means of a run, from rows that were asked about again."""

from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metric_core.columns import USER_INPUT
from metric_core.stages import Stage
from metric_core.statistics.judge_variance import JudgeVariance, split_variance
from tasks.findings.anchor.anchor_record import AnchorRecord
from tasks.findings.repeats.repeat_record import AskedAgain
from tasks.findings.variance.variance_record import VarianceRecord
from tasks.rows.computed_tables import RunTables


def find_judge_variance(
    own: AskedAgain | None, anchor: AnchorRecord | None, tables: RunTables
) -> dict[str, VarianceRecord]:
    """Return metric -> the judge's variance and its share in that of the mean.

    Rows of the run that were asked about again count; without them those of the anchor.

    Args:
        own: Rows of the run that were asked about again; None without any.
        anchor: Anchor of the run; None without one.
    """
    of_anchor = None if anchor is None else anchor.asked_again
    is_own = own is not None and bool(own.variance)
    variances = ((own if is_own else of_anchor) or AskedAgain()).variance
    if not variances:
        return {}
    scores = pa.concat_tables(tables.shards(Stage.AGGREGATION, ["row_id", "metric", "value"]))
    samples = pa.concat_tables(tables.shards(Stage.SAMPLES, ["row_id", USER_INPUT]))
    found = {}
    for metric, variance in variances.items():
        cells = scores.filter(pc.and_(pc.equal(scores["metric"], metric), pc.is_valid(scores["value"])))
        places = pc.index_in(cells["row_id"], value_set=samples["row_id"].combine_chunks())
        questions = samples[USER_INPUT].take(places)
        shares = split_variance(
            cells["value"].to_numpy().astype(np.float64),
            variance,
            None if questions.null_count else questions.to_pylist(),
        )
        if shares is not None:
            known = {each.name: getattr(variance, each.name) for each in fields(JudgeVariance)}
            found[metric] = VarianceRecord(**known, of_anchor=not is_own, shares=shares, advice=shares.advise())
    return found
