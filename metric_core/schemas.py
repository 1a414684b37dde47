"""The Arrow schema of every stage table: the contract between packages.

A table's schema carries its stage and version in the metadata; a reader that finds another version refuses the
table instead of guessing. Raise a version when a column changes its meaning, not only its type.
"""

from dataclasses import dataclass

import pyarrow as pa

from metric_core.stages import Stage

_RUBRIC = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("description", pa.string())])
_PROBABILITY = pa.struct([pa.field("label", pa.string(), nullable=False), pa.field("probability", pa.float64())])
_PANEL_VOTE = pa.struct(
    [
        pa.field("judge", pa.string(), nullable=False),
        pa.field("label", pa.string()),
        pa.field("probability", pa.float64()),
    ]
)


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A stage's table.

    Args:
        stage: whose table.
        version: raised with every change of meaning.
        fields: the columns.
    """

    stage: Stage
    version: int
    fields: tuple[pa.Field, ...]

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema, with stage and version in its metadata."""
        return pa.schema(self.fields, metadata={"assay.stage": str(self.stage), "assay.version": str(self.version)})


def _text(name: str, nullable: bool = True) -> pa.Field:
    return pa.field(name, pa.string(), nullable=nullable)


_ROW_ID = _text("row_id", nullable=False)
_OUTCOME = (_text("status", nullable=False), _text("reason"))
_PANEL = pa.field("panel", pa.list_(_PANEL_VOTE))
_REPLY = _text("reply")
"""The judge's own words, at most `LONGEST_REPLY` characters of them.

A reply is kept once: on the first of the rows that were made from it, because a list of claims or questions is one
reply. A table of replies would keep it once too, but every reader would have to join it by stage, row and place. A
label that was picked is in the row already, so that of choices only replies without a usable label are kept.
"""

LONGEST_REPLY = 4000
"""Characters of a reply that a table keeps. A longer one ends with the length of the whole."""

SAMPLES = TableSchema(
    Stage.SAMPLES,
    1,
    (
        _ROW_ID,
        pa.field("row_number", pa.int64(), nullable=False),
        _text("user_input"),
        _text("response"),
        pa.field("retrieved_contexts", pa.list_(pa.string())),
        _text("reference"),
        pa.field("reference_contexts", pa.list_(pa.string())),
        pa.field("retrieved_context_ids", pa.list_(pa.string())),
        pa.field("reference_context_ids", pa.list_(pa.string())),
        pa.field("rubrics", pa.list_(_RUBRIC)),
        _text("extras"),
    ),
)
"""The rows to evaluate. `row_number` counts from 1 in the source; `extras` is JSON of the source's other columns."""

CLAIMS = TableSchema(
    Stage.CLAIMS, 2, (_ROW_ID, _text("side", nullable=False), _text("claim_id"), _text("text"), *_OUTCOME, _REPLY)
)
"""Claims and sentences. A side without any, or whose reply was unusable, has one row with a null claim_id. `reply` is
on the first row of a side that the judge was asked about."""

ENTITIES = TableSchema(
    Stage.ENTITIES,
    1,
    (
        _ROW_ID,
        _text("side", nullable=False),
        pa.field("passage", pa.int32()),
        _text("text"),
        _text("label"),
        *_OUTCOME,
    ),
)
"""Entities as written, once a text and label. `passage` is the rank of the context from 0, null for the reference."""

QUESTIONS = TableSchema(
    Stage.QUESTIONS,
    2,
    (_ROW_ID, pa.field("k", pa.int32()), _text("text"), pa.field("noncommittal", pa.bool_()), *_OUTCOME, _REPLY),
)
"""Questions regenerated from the response; one row with a null k where there are none. `reply` is on the first row."""

VERDICTS = TableSchema(
    Stage.VERDICTS,
    3,
    (
        _ROW_ID,
        _text("kind", nullable=False),
        _text("claim_id", nullable=False),
        _text("premise", nullable=False),
        pa.field("verdict", pa.int8()),
        pa.field("probability", pa.float64()),
        *_OUTCOME,
        _PANEL,
        _REPLY,
    ),
)
"""One verdict a (claim, premise), 1 or 0, null unless answered; claim_id is "" for usefulness.

`panel` holds what each judge of a panel said, null where one judge was asked: the label (null: no usable one) and the
judge's probability of it. `reply` is there for verdicts without a usable label, and on the first of the relevant
sentences, which the judge lists in one reply."""

EXPLANATIONS = TableSchema(
    Stage.EXPLANATIONS,
    2,
    (
        _ROW_ID,
        _text("kind", nullable=False),
        _text("claim_id", nullable=False),
        _text("premise", nullable=False),
        _text("text"),
        *_OUTCOME,
        _REPLY,
    ),
)
"""The judge's words on why a verdict is what it is, under the keys of the verdicts; `text` is null unless answered."""

RATINGS = TableSchema(
    Stage.RATINGS,
    3,
    (
        _ROW_ID,
        _text("metric", nullable=False),
        _text("template", nullable=False),
        pa.field("vote", pa.int32(), nullable=False),
        _text("value"),
        pa.field("number", pa.float64()),
        pa.field("probabilities", pa.list_(_PROBABILITY)),
        _text("feedback"),
        *_OUTCOME,
        _PANEL,
        _REPLY,
    ),
)
"""One rating a (metric, template, vote), as the judge gave it; `number` is null where it gave a label. `panel` as in
the verdicts. `reply` is there for written ratings, and on the first vote without a usable label."""

SIMILARITIES = TableSchema(
    Stage.SIMILARITY,
    1,
    (_ROW_ID, _text("pair", nullable=False), pa.field("k", pa.int32()), pa.field("cosine", pa.float64()), *_OUTCOME),
)
"""Similarity of a pair of texts (see records.Pair); k is the number of the regenerated question, 0 for answers."""

SCORES = TableSchema(
    Stage.AGGREGATION,
    1,
    (
        _ROW_ID,
        _text("metric", nullable=False),
        pa.field("value", pa.float64()),
        _text("status", nullable=False),
        _text("reason"),
        _text("label"),
    ),
)
"""One cell a (row, metric): value is null unless scored. `label` is the category where the answer is one (value is null
then), and the scale of the value where every row brings its own."""

SCHEMAS: dict[Stage, TableSchema] = {
    schema.stage: schema
    for schema in (
        SAMPLES,
        CLAIMS,
        ENTITIES,
        QUESTIONS,
        VERDICTS,
        EXPLANATIONS,
        RATINGS,
        SIMILARITIES,
        SCORES,
    )
}
