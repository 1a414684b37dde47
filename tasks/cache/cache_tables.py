"""Define the database tables of the answer cache."""

from sqlalchemy import BigInteger, Column, Float, Integer, LargeBinary, MetaData, String, Table

from tasks.runtime.database import Layout

FORMAT = 1
"""Version of the table layout, incremented with each change."""

METADATA = MetaData()

ANSWERS = Table(
    "assay_answers",
    METADATA,
    Column("key", LargeBinary(32), primary_key=True),
    Column("step", String(32), nullable=False),
    Column("checksum", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("used", BigInteger, nullable=False),
    Column("value", LargeBinary, nullable=False),
)
"""One row per answer. `created` and `used` are seconds since 1970; `checksum` is the CRC-32 of key and value."""

LEASES = Table(
    "assay_leases",
    METADATA,
    Column("key", LargeBinary(32), primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("expires", Float(53), nullable=False),
)
"""One row per answer that a process is computing. `expires` is in seconds since 1970 by the database's clock."""

FORMATS = Table("assay_format", METADATA, Column("version", Integer, primary_key=True, autoincrement=False))
"""One row: the format of the tables above."""

LAYOUT = Layout("cache", METADATA, FORMATS, FORMAT)
