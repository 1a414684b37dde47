"""Declare the options that say where the relevance judgments of the rows come from."""

from typing import Annotated

from pydantic import AfterValidator

from tasks.options.option import Flag, Option, OptionGroup
from tasks.runtime.credentials import refuse_secrets


class JudgmentOptions(OptionGroup, affects_scores=True):
    """The options that say where the relevance judgments of the rows come from."""

    qrels: Annotated[
        Annotated[str, AfterValidator(refuse_secrets)] | None,
        Option(
            "File of relevance judgments: TREC qrels (QUERY 0 PASSAGE GRADE), the table of BEIR, or qrels that were "
            "exported. They become the column relevance_judgments of the rows.",
            holds="address",
            cli=Flag(
                long="--qrels",
                metavar="PATH",
                help="File of relevance judgments: TREC qrels, the table of BEIR, or exported qrels.",
            ),
            examples=["judgments/qrels.txt"],
        ),
    ] = None
    query_id_column: Annotated[
        str | None,
        Option(
            "Column of the data with the ids that queries have in the file of qrels. Default: query_id or qid, else "
            "the row id.",
            holds="text",
            cli=Flag(
                long="--query-id-column",
                metavar="NAME",
                help="Column with the ids of the queries in qrels. Default: query_id, qid or row id.",
            ),
            examples=["topic"],
        ),
    ] = None
