"""Select the rows of each check of a rule about slices, and set slices with too few rows aside."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from metric_core.errors import ConfigError
from metric_core.gates.drafts import Draft
from metric_core.gates.rules import RuleKind, SliceSelection
from metric_core.statistics.pairs import ScoreColumns
from metric_core.statistics.slices import RowSlices, Slice

_LISTED = 10
"""Maximum number of slices to name in a sentence."""


class ColumnParts:
    """The cells of metrics, divided into the slices that rules are about.

    Args:
        slices: Slices of all rows of both runs, by column.
    """

    def __init__(self, slices: Sequence[RowSlices]) -> None:
        self._slices = {sliced.column: sliced for sliced in slices}
        self._parts: dict[tuple[str, str], dict[str, ScoreColumns]] = {}

    def select(
        self, selection: SliceSelection | None, column: ScoreColumns
    ) -> Iterator[tuple[Slice | None, ScoreColumns]]:
        """Yield the cells of each slice that a rule is about; those of all rows if it is about none.

        Raises:
            ConfigError: The rows are not divided by this column.
        """
        if selection is None:
            yield None, column
            return
        if selection.column not in self._slices:
            known = ", ".join(self._slices) or "nothing"
            raise ConfigError(
                f"the gate has a rule about slices by {selection.column}, but the rows are sliced by: {known}"
            )
        key = (column.metric, selection.column)
        if key not in self._parts:
            self._parts[key] = column.split(self._slices[selection.column])
        parts = self._parts[key]
        for value in parts if selection.values is None else selection.values:
            yield Slice(selection.column, value), parts.get(value, replace(column, a={}, b={}))


def name_slice(draft: Draft, part: Slice | None) -> Draft:
    """Return the draft of a check as one about a slice.

    Args:
        part: The slice; None for all rows.
    """
    if part is None:
        return draft
    check = replace(draft.check, slice=part)
    if draft.is_small and not check.rows and check.kind is RuleKind.ABSOLUTE:
        check = replace(check, reason="no row of the slice has a score")
    return replace(draft, check=check)


def leave_out_small(drafts: Sequence[Draft]) -> tuple[list[Draft], list[str]]:
    """Leave out slices with too few rows, and say so.

    If a rule has no other slice for a metric, it has decided nothing: one inconclusive check stays.

    Args:
        drafts: Drafts of all checks of a gate.

    Returns:
        The drafts that stay, and sentences on those that do not.
    """
    by_rule: dict[tuple[str, str, str], list[Draft]] = {}
    for draft in drafts:
        if draft.check.slice is not None:
            by_rule.setdefault(_rule_of(draft), []).append(draft)
    stay, listed = [], dict[tuple[str, str], list[str]]()
    for draft in drafts:
        siblings = by_rule.get(_rule_of(draft), [])
        small = [sibling for sibling in siblings if sibling.is_small]
        if draft.check.slice is None or not draft.is_small:
            stay.append(draft)
        elif draft is small[0]:
            named = _list_slices(small)
            metrics = listed.setdefault((draft.check.rule, named), [])
            if draft.check.metric not in metrics:
                metrics.append(draft.check.metric)
            if len(small) == len(siblings):
                reason = f"every slice of {draft.check.slice.column} has too few rows"
                stay.append(
                    replace(draft, check=replace(draft.check, slice=None, rows=0, observed=None, reason=reason))
                )
    sentences = [
        f"{', '.join(metrics)}, {rule}: left out for too few rows: {named}" for (rule, named), metrics in listed.items()
    ]
    return stay, sentences


def _rule_of(draft: Draft) -> tuple[str, str, str]:
    column = "" if draft.check.slice is None else draft.check.slice.column
    return draft.check.rule, draft.check.metric, column


def _list_slices(drafts: Sequence[Draft]) -> str:
    named = [f"{draft.check.slice} ({draft.check.rows})" for draft in drafts[:_LISTED]]
    more = [f"{len(drafts) - _LISTED} more"] if len(drafts) > _LISTED else []
    return ", ".join([*named, *more])
