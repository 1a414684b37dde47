"""Declare the options of the anchor: rows that every run judges, so that a change of the judge shows."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from tasks.options.finding_options import FindingOptions
from tasks.options.option import Option, OptionGroup
from tasks.options.source_options import split_pairs
from tasks.options.text_forms import table_from_text
from tasks.runtime.credentials import refuse_secrets


class AnchorSettings(OptionGroup, affects_scores=False):
    """The rows of the anchor, and the labels that people gave them."""

    source: Annotated[
        Annotated[str, AfterValidator(refuse_secrets)],
        Option(
            "The anchor: data with responses that never change, as a file, folder or URL like the source of a run.",
            holds="address",
            examples=["anchor.jsonl"],
        ),
    ]
    column_map: Annotated[
        Annotated[dict[str, str], BeforeValidator(table_from_text(split_pairs))],
        Option(
            "Column of the anchor = column of a sample, where the names differ.",
            holds="text",
            examples=[{"prompt": "user_input"}],
        ),
    ] = Field(default_factory=dict)
    id_column: Annotated[
        str | None,
        Option(
            "Column with the ids of the rows. Default: row_id or id, else a digest of the content.",
            holds="text",
            examples=["ticket"],
        ),
    ] = None
    labels: Annotated[
        Annotated[dict[str, str], BeforeValidator(table_from_text(split_pairs))],
        Option(
            "Metric = column of the anchor with the labels of people for it. Every run then says how far its judge "
            "agrees with them.",
            holds="text",
            examples=[{"faithfulness": "faithful"}],
        ),
    ] = Field(default_factory=dict)
    positive: Annotated[
        str | None, Option("Label that means yes. Default: 1, yes or true.", holds="text", examples=["supported"])
    ] = None
    drift: Annotated[
        float,
        Option(
            "Share of changed verdicts that shows a judge that changes under its name: each run asks about as many "
            "anchor rows again as detect it within seven runs, in 80 of 100 cases. 0 asks nothing again.",
            ge=0,
            le=1,
            examples=[0.1],
        ),
    ] = 0.1


class AnchorOptions(FindingOptions, affects_scores=False):
    """The option for rows that every run judges."""

    anchor: Annotated[
        AnchorSettings | None,
        Option(
            "Rows that never change, which every run judges too: if their scores change, the judge did. Their answers "
            "are cached; a few are asked for again in each run.",
            examples=[{"source": "anchor.jsonl"}],
        ),
    ] = None

    def locate_sources(self, locate: Callable[[str], str | None]) -> Mapping[str, Any]:
        """Return the anchor with the absolute path of its source."""
        anchor = self.anchor
        return {} if anchor is None else {"anchor": anchor.model_copy(update={"source": locate(anchor.source)})}

    def alone(self) -> Mapping[str, Any]:
        """Return no anchor: it shows a change of the judge from run to run."""
        return {"anchor": None}
