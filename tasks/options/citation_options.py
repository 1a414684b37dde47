"""Declare the option that says how the responses cite."""

from typing import Annotated

from pydantic import AfterValidator

from metric_core.claims.citation_pattern import pattern_problem
from tasks.options.option import Flag, Option, OptionGroup


def _check_pattern(pattern: str | None) -> str | None:
    problem = None if pattern is None else pattern_problem(pattern)
    if problem is not None:
        raise ValueError(f"the pattern {pattern!r} {problem}")
    return pattern


class CitationOptions(OptionGroup, affects_scores=True):
    """The option that says how the responses cite."""

    citation_pattern: Annotated[
        str | None,
        AfterValidator(_check_pattern),
        Option(
            "Regular expression (RE2) of citation markers that are not recognized by default, with a group around "
            "the label. Markers are not part of the claims that are judged.",
            holds="text",
            cli=Flag(
                long="--citation-pattern",
                metavar="REGEX",
                help="Further form of citation markers, with a group around the label.",
            ),
            examples=[r"\(see note (\d+)\)"],
        ),
    ] = None
