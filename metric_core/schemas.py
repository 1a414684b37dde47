"""Arrow schemas of the stage tables, which are the contract between packages.

The metadata of a schema contains its stage and version; readers reject tables of other versions. Increment a version
when a column changes its meaning, not only when it changes its type.
"""

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from metric_core.stages import Stage

_RUBRIC = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("description", pa.string())])
_JUDGMENT = pa.struct([pa.field("id", pa.string(), nullable=False), pa.field("grade", pa.float64(), nullable=False)])
_KEY_POINT = pa.struct(
    [pa.field("text", pa.string(), nullable=False), pa.field("importance", pa.string(), nullable=False)]
)
_PART = pa.struct(
    [
        pa.field("passage", pa.string(), nullable=False),
        *(pa.field(name, pa.float64(), nullable=False) for name in ("start", "end", "share")),
    ]
)
_EVIDENCE_SPAN = pa.struct(
    [
        pa.field("document", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("text", pa.string(), nullable=False),
        pa.field("grade", pa.float64(), nullable=False),
        pa.field("before", pa.string()),
        pa.field("after", pa.string()),
        pa.field("state", pa.string(), nullable=False),
        pa.field("change", pa.string()),
        pa.field("near", pa.string()),
        pa.field("parts", pa.list_(_PART)),
    ]
)
_OTHER_LANGUAGE = pa.struct(
    [pa.field(name, pa.string(), nullable=False) for name in ("text", "language", "expected_language")]
)
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
    """Schema of a stage table.

    Args:
        version: Version, incremented with every change of meaning.
        optional: Columns that a table without values in them is stored without, so that its digest does not depend on
            them.
    """

    stage: Stage
    version: int
    fields: tuple[pa.Field, ...]
    optional: tuple[str, ...] = ()

    @property
    def arrow(self) -> pa.Schema:
        """Arrow schema, with stage and version in its metadata."""
        return self.arrow_without(())

    def arrow_without(self, lacking: Collection[str]) -> pa.Schema:
        """Return the Arrow schema of a table that is stored without some of the optional columns.

        >>> CLAIMS.arrow_without(["importance"]).names == [name for name in CLAIMS.arrow.names if name != "importance"]
        True
        """
        fields = [field for field in self.fields if field.name not in lacking]
        return pa.schema(fields, metadata={"assay.stage": str(self.stage), "assay.version": str(self.version)})

    def can_read(self, version: str) -> bool:
        """Return whether tables with this version in their metadata can be read.

        >>> CLAIMS.can_read(str(CLAIMS.version)), CLAIMS.can_read("?")
        (True, False)
        """
        return version == str(self.version)


def _text(name: str, nullable: bool = True) -> pa.Field:
    return pa.field(name, pa.string(), nullable=nullable)


_ROW_ID = _text("row_id", nullable=False)
_OUTCOME = (_text("status", nullable=False), _text("reason"))
_PANEL = pa.field("panel", pa.list_(_PANEL_VOTE))
_REPLY = _text("reply")
"""Reply of the judge, truncated to `LONGEST_REPLY` characters.

A reply is stored on the first of the rows that come from it, because a list of claims or questions is one reply. A
separate table of replies would need a join by stage, row and position. For choices, only replies without a usable label
are stored, because the label itself is in the row.
"""

LONGEST_REPLY = 4000
"""Maximum length of a stored reply in characters. A truncated reply ends with its original length."""

SAMPLES = TableSchema(
    Stage.SAMPLES,
    3,
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
        pa.field("retrieved_context_scores", pa.list_(pa.float64())),
        _text("session_id"),
        _text("conversation"),
        _text("earlier_turns"),
        pa.field("earlier_contexts", pa.list_(pa.string())),
        pa.field("tool_results", pa.list_(pa.string())),
        pa.field("earlier_answers", pa.list_(pa.string())),
        pa.field("relevance_judgments", pa.list_(_JUDGMENT)),
        pa.field("key_points", pa.list_(_KEY_POINT)),
        pa.field("evidence_spans", pa.list_(_EVIDENCE_SPAN)),
        pa.field("point_evidence", pa.list_(pa.list_(_EVIDENCE_SPAN))),
    ),
    optional=(
        *("retrieved_context_scores", "session_id", "conversation"),
        *("earlier_turns", "earlier_contexts", "tool_results", "earlier_answers"),
        *("relevance_judgments", "key_points", "evidence_spans", "point_evidence"),
    ),
)
"""Rows to evaluate. `row_number` counts from 1 in the source; `extras` is JSON of all other columns of the source.

`point_evidence` has a list for each key point. It is apart from them because its places change with the index, while
the test stays the same."""

FOLLOW_UPS = TableSchema(Stage.FOLLOW_UPS, 1, (_ROW_ID, _text("question"), *_OUTCOME, _REPLY))
"""Questions of a conversation that can be understood without what was said before, one per row with earlier turns.
`question` is null unless answered: the question of the row is then used as it is."""

CLAIMS = TableSchema(
    Stage.CLAIMS,
    4,
    (
        _ROW_ID,
        _text("side", nullable=False),
        _text("claim_id"),
        _text("text"),
        pa.field("start", pa.int32()),
        pa.field("end", pa.int32()),
        pa.field("sentence", pa.int32()),
        pa.field("citations", pa.list_(pa.string())),
        *_OUTCOME,
        _REPLY,
        _text("importance"),
    ),
    optional=("importance",),
)
"""Claims and sentences. A side without any, or with an unusable reply, has one row with a null claim_id. `reply` is set
on the first row of a side that the judge was asked about.

`start`, `end` and `sentence` are the place of a claim in its text (see records.Place), null if no sentence resembles
it. `citations` are the labels of the citation markers that belong to it; the markers are not part of `text`. All four
are null for context sentences. `importance` is that of a key point, null if it is vital for want of another."""

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
"""Entities as written, once per text and label. `passage` is the rank of the context from 0, null for the reference.

Of the contexts, the table holds the entities that the reference names too; all, if a metric needs them."""

QUESTIONS = TableSchema(
    Stage.QUESTIONS,
    2,
    (_ROW_ID, pa.field("k", pa.int32()), _text("text"), pa.field("noncommittal", pa.bool_()), *_OUTCOME, _REPLY),
)
"""Questions regenerated from the response; one row with a null k if there are none. `reply` is on the first row."""

VERDICTS = TableSchema(
    Stage.VERDICTS,
    4,
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
        _text("statement"),
        _text("premise_text"),
    ),
)
"""One verdict per claim and premise, 1 or 0, null unless answered; claim_id is "" for usefulness. An answer in three
levels is two rows, of the kinds `support` (`full_support` if a metric requests it) and `partial_support`; the votes of
a panel are in the first.

`statement` and `premise_text` are the texts of a verdict that a metric requested on a statement or a premise of its
own; claim_id and premise are then digests of them (see records.VerdictRequest).

`panel` has the label (null if unusable) and its probability from each judge of a panel; it is null if there is only one
judge. `reply` is set for verdicts without a usable label, and on the first of the relevant sentences, which the judge
lists in one reply."""

EXPLANATIONS = TableSchema(
    Stage.EXPLANATIONS,
    3,
    (
        _ROW_ID,
        _text("kind", nullable=False),
        _text("claim_id", nullable=False),
        _text("premise", nullable=False),
        _text("text"),
        *_OUTCOME,
        _REPLY,
        _text("metric"),
        _text("template"),
    ),
)
"""Explanations by the judge; `text` is null unless answered. Those of verdicts have the keys of the verdicts. Those of
ratings have the kind "rating", and metric and template of the rating; their claim_id and premise are empty."""

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
"""One rating per metric, template and vote, as the judge gave it; `number` is null if it is a label. `panel` is as in
VERDICTS. `reply` is set for ratings in JSON, and on the first vote without a usable label."""

SIMILARITIES = TableSchema(
    Stage.SIMILARITY,
    1,
    (_ROW_ID, _text("pair", nullable=False), pa.field("k", pa.int32()), pa.field("cosine", pa.float64()), *_OUTCOME),
)
"""Similarity of a pair of texts (see records.Pair); k is the number of the regenerated question, 0 for other pairs."""

LANGUAGES = TableSchema(
    Stage.LANGUAGES,
    1,
    (_ROW_ID, _text("language", nullable=False), pa.field("others", pa.list_(_OTHER_LANGUAGE))),
)
"""One row per sample. `language` is that of question, response and reference together, "und" if it is not clear.
`others` are the texts that are certainly in another language than expected: the `response` than the question, `claims`
and `questions` than the response that they restate."""

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
"""One cell per row and metric; value is null unless scored. `label` is the category of a categorical score, whose value
is null, or the scale of the value if rows have different scales."""

_LOST_POINT = pa.struct([pa.field("claim_id", pa.string(), nullable=False), pa.field("part", pa.string())])

DIAGNOSES = TableSchema(
    Stage.DIAGNOSIS,
    3,
    (
        _ROW_ID,
        _text("diagnosis"),
        _text("part"),
        _text("reason"),
        pa.field("declines", pa.bool_(), nullable=False),
        _text("refusal_kind"),
        pa.field("refusal_by_judge", pa.bool_(), nullable=False),
        pa.field("lacking", pa.list_(pa.string())),
        pa.field("key_points", pa.int32()),
        pa.field("lost_points", pa.list_(_LOST_POINT)),
        _text("points_digest"),
    ),
    optional=("key_points", "lost_points", "points_digest"),
)
"""One row per sample. `diagnosis` is null where a row cannot be diagnosed, for `reason`; `part` is the part of the
system that the fault is due to; `refusal_kind` is null unless the row declines in a known form; `lacking` are verdicts
that the run has not asked for and that could have shown another fault. `key_points` is the number of key points of the
row, `lost_points` are those that the response lacks, each with the part of the system that lost it, null if unknown;
`points_digest` is that of the texts of its key points. All three are null where no key points were judged."""

SCHEMAS: dict[Stage, TableSchema] = {
    schema.stage: schema
    for schema in (
        SAMPLES,
        FOLLOW_UPS,
        CLAIMS,
        ENTITIES,
        QUESTIONS,
        VERDICTS,
        EXPLANATIONS,
        RATINGS,
        SIMILARITIES,
        LANGUAGES,
        SCORES,
        DIAGNOSES,
    )
}

EVIDENCE_COLUMNS: dict[Stage, tuple[str, ...]] = {
    Stage.CLAIMS: (
        *("row_id", "status", "reason", "side", "claim_id", "text"),
        *("start", "end", "sentence", "citations", "importance"),
    ),
    Stage.ENTITIES: ("row_id", "status", "reason", "side", "text"),
    Stage.QUESTIONS: ("row_id", "status", "reason", "text", "noncommittal"),
    Stage.RATINGS: ("row_id", "status", "reason", "metric", "template", "value", "number"),
    Stage.VERDICTS: ("row_id", "status", "reason", "kind", "claim_id", "premise", "verdict", "probability"),
    Stage.SIMILARITY: ("row_id", "status", "reason", "pair", "k", "cosine"),
}
"""Columns that evidence is made of; no formula reads the others, such as the replies of the judge."""
