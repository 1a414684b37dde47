"""Everything that a finding of an installed package is written with."""

from rag_assay._packages import open_packages

open_packages()

from tasks.documents.blocks import Items, Line, Section, make_table, own  # noqa: E402
from tasks.findings.finding import Finding, RunRecords, WrittenRows  # noqa: E402 the packages are open only now
from tasks.findings.parts import Figure  # noqa: E402
from tasks.record.findings import FindingMap, FindingPart  # noqa: E402

__all__ = [
    "Figure",
    "Finding",
    "FindingMap",
    "FindingPart",
    "Items",
    "Line",
    "RunRecords",
    "Section",
    "WrittenRows",
    "make_table",
    "own",
]
