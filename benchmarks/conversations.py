"""Compare the faithfulness of turns judged by their own passages with that judged by all that came before.

    python -m benchmarks.conversations

The rows are answers of people and models in the conversations of MTRAG, whose faithfulness people rated from 1 to 4.
The built-in judge scores each by the passages of its turn alone, with those of earlier turns, and with the earlier
answers too, as if these were sources. The table has Spearman's correlation with the people, and the difference to the
passages alone with an interval from a paired bootstrap that draws conversations. Needs the labelled data in
`../shared/meta_eval` beside the repository; says so and ends without it.
"""

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.labelled_examples import DATA, rows
from benchmarks.verdict_kinds import KINDS, Floats, evaluate, resamples, spearman, with_interval
from tasks.opening.run_models import RunModels
from tasks.plugins.metric_lookup import parse_metric

FILE = "rag_mtrag_human"
LABEL = "label_faithfulness"
ARMS = ("own passages", "earlier passages too", "earlier answers too")


def main() -> None:
    """Print a line for each premise and kind of verdict, for all turns and for those that follow others."""
    if not (DATA / f"{FILE}.parquet").is_file():
        sys.exit(f"skipped: the labelled data is missing, there is no {DATA / FILE}.parquet")
    found = [row for row in rows(FILE) if row[LABEL] is not None]
    request, models = parse_metric("faithfulness"), RunModels()
    scored = {arm: evaluate(added, request, models) for arm, added in _arms(found).items()}
    print(f"{'turns':10} {'verdicts':12} {'premise':22} {'rows':>4} {'mean':>6}  {'Spearman':^22} {'difference':^24}")
    for name, least in (("all", 1), ("follow-ups", 2)):
        for kind in KINDS:
            kept = [
                number
                for number, row in enumerate(found)
                if row["turn"] >= least and all(scored[arm][kind][str(number)] is not None for arm in ARMS)
            ]
            labels = np.array([float(found[number][LABEL]) for number in kept])
            groups = np.array([found[number]["group_id"] for number in kept])
            values: dict[str, Floats] = {
                arm: np.array([scored[arm][kind][str(number)] for number in kept], float) for arm in ARMS
            }
            draws = {arm: [spearman(labels[d], values[arm][d]) for d in resamples(groups)] for arm in ARMS}
            for arm in ARMS:
                own = spearman(labels, values[arm])
                change = np.array(draws[arm]) - np.array(draws[ARMS[0]])
                shown = with_interval(own - spearman(labels, values[ARMS[0]]), change, sign="+")
                print(
                    f"{name:10} {kind:12} {arm:22} {len(kept):4} {values[arm].mean():6.3f}  "
                    f"{with_interval(own, np.array(draws[arm])):22} {'' if arm == ARMS[0] else shown:24}",
                    flush=True,
                )


def _arms(found: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the rows as each premise shows them. A conversation has the same passages whoever answers."""
    passages: dict[str, dict[int, Sequence[str]]] = defaultdict(dict)
    for row in found:
        passages[row["group_id"]].setdefault(row["turn"], row["retrieved_contexts"])
    earlier = [
        [text for turn, texts in sorted(passages[row["group_id"]].items()) if turn < row["turn"] for text in texts]
        for row in found
    ]
    answers = [[said["text"] for said in row["history"] if said["speaker"] == "agent"] for row in found]
    new = [
        list(dict.fromkeys(text for text in texts if text not in row["retrieved_contexts"]))
        for row, texts in zip(found, earlier, strict=True)
    ]
    both = [[*texts, *said] for texts, said in zip(new, answers, strict=True)]
    return {
        ARMS[0]: list(found),
        **{
            arm: [{**row, "earlier_contexts": texts or None} for row, texts in zip(found, added, strict=True)]
            for arm, added in zip(ARMS[1:], (new, both), strict=True)
        },
    }


if __name__ == "__main__":
    main()
