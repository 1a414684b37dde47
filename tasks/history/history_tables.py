"""Define the database tables of the history."""

from sqlalchemy import JSON, Column, Float, Index, Integer, MetaData, String, Table, Text, UniqueConstraint

from tasks.runtime.database import Layout

FORMAT = 1
"""Version of the table layout, incremented with each change."""

_TIME = Float(53)
_FIGURE = Float(53)
_CONTENT = JSON(none_as_null=True)
METADATA = MetaData()

RUNS = Table(
    "assay_history_runs",
    METADATA,
    Column("run_id", String(64), primary_key=True),
    Column("name", Text, nullable=False),
    Column("created", _TIME, nullable=False),
    Column("folder", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("content", _CONTENT, nullable=False),
    Column("outcome", _CONTENT),
    Index("assay_history_runs_by_name", "name", "created"),
)
"""One row per run. `created` is in seconds since 1970; `content` holds what is never searched for."""

METRICS = Table(
    "assay_history_metrics",
    METADATA,
    Column("run_id", String(64), primary_key=True),
    Column("metric", Text, primary_key=True),
    Column("slice_column", Text, primary_key=True),
    Column("slice", Text, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("direction", String(16), nullable=False),
    Column("bound_low", _FIGURE),
    Column("bound_high", _FIGURE),
    Column("mean", _FIGURE),
    Column("low", _FIGURE),
    Column("high", _FIGURE),
    Column("deviation", _FIGURE),
    Column("scored", Integer, nullable=False),
    Column("undefined", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
)
"""One row per run and metric, and per slice; `slice_column` and `slice` are empty for all rows of a run."""

INCIDENTS = Table(
    "assay_history_incidents",
    METADATA,
    Column("incident_id", String(32), primary_key=True),
    Column("name", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("is_open", Integer),
    Column("opened", _TIME, nullable=False),
    Column("seen", _TIME, nullable=False),
    Column("closed", _TIME),
    Column("times", Integer, nullable=False),
    Column("sentence", Text, nullable=False),
    Column("run_id", String(64), nullable=False),
    Column("closing_run_id", String(64), nullable=False),
    Column("details", _CONTENT, nullable=False),
    UniqueConstraint("name", "key", "is_open", name="assay_history_incidents_open_once"),
    Index("assay_history_incidents_by_name", "name", "opened"),
)
"""One row per incident. `is_open` is 1 while the incident is open and null after, so that only one can be open."""

MESSAGES = Table(
    "assay_history_messages",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False),
    Column("recipient", Text, nullable=False),
    Column("alert_id", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("created", _TIME, nullable=False),
    Column("content", _CONTENT, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("reply", Text, nullable=False),
    Column("ended", _TIME),
    Column("holder", String(32)),
    Column("held_until", _TIME),
    UniqueConstraint("name", "recipient", "alert_id", name="assay_history_messages_once"),
    Index("assay_history_messages_by_state", "name", "state"),
)
"""One row per alert and recipient, in the order of `number`. Until `held_until` only `holder` may send it."""

SILENCES = Table(
    "assay_history_silences",
    METADATA,
    Column("silence_id", String(32), primary_key=True),
    Column("name", Text, nullable=False),
    Column("begins", _TIME, nullable=False),
    Column("ends", _TIME, nullable=False),
    Column("reason", Text, nullable=False),
)
"""One row per period in which no message about an evaluation is sent."""

ACKNOWLEDGEMENTS = Table(
    "assay_history_acknowledgements",
    METADATA,
    Column("incident_id", String(32), primary_key=True),
    Column("time", _TIME, nullable=False),
    Column("person", Text, nullable=False),
)
"""One row per incident that a person has taken up."""

FORMATS = Table("assay_history_format", METADATA, Column("version", Integer, primary_key=True, autoincrement=False))
"""One row: the format of the tables above."""

LAYOUT = Layout("history", METADATA, FORMATS, FORMAT)
