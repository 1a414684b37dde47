"""Declare what the options of findings have in common."""

from collections.abc import Callable, Mapping
from typing import Any

from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.option import OptionGroup


class FindingOptions(OptionGroup, affects_scores=False):
    """Options of a finding, which belong to its room."""

    @property
    def other_judges(self) -> Mapping[str, SingleJudgeSettings]:
        """The judges that the finding asks besides those of the run, by what they are."""
        return {}

    def locate_sources(self, locate: Callable[[str], str | None]) -> Mapping[str, Any]:
        """Return the options that hold paths, by name, with absolute ones.

        Args:
            locate: Function that returns a source with its absolute path.
        """
        del locate
        return {}

    def alone(self) -> Mapping[str, Any]:
        """Return the options, by name, that a run has instead which is not one of a series."""
        return {}
