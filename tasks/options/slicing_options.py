"""Declare the options that say into which slices the rows of a run are divided."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from tasks.options.option import Flag, Option, OptionGroup
from tasks.options.text_forms import list_from_text, split_commas


def drop_repeated(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of columns, each once and in order.

    Raises:
        ValueError: A name is blank.
    """
    if not all(column.strip() for column in columns):
        raise ValueError("a column has a name that is not blank")
    return tuple(dict.fromkeys(columns))


class SlicingOptions(OptionGroup, affects_scores=False):
    """The option that says into which slices the rows of a run are divided."""

    slices: Annotated[
        Annotated[tuple[str, ...], BeforeValidator(list_from_text(split_commas)), AfterValidator(drop_repeated)],
        Option(
            "Columns whose values divide the rows into slices: the summary, comparisons and the report show each "
            "slice separately. Rows without a value are a separate slice.",
            holds="text",
            by_run=True,
            cli=Flag(
                long="--slice",
                metavar="COLUMN,...",
                help="Column whose values divide the rows into slices, each shown separately.",
                repeats=True,
                default="",
            ),
            examples=[["customer", "language"]],
        ),
    ] = ()
