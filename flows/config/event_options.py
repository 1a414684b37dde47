"""Declare the options of runs that an event of an index starts."""

from typing import Annotated

from pydantic import AfterValidator

from tasks.options.option import Option, OptionGroup
from tasks.runtime.credentials import refuse_secrets

LONGEST_WAIT = 600.0
"""Seconds that an event waits at most, even if others keep coming."""

_LEAST_DEBOUNCES = 4
"""Number of times `debounce_seconds` that it waits if that is longer: an ordinary burst is evaluated once."""


class EventSettings(OptionGroup, affects_scores=False):
    """Options that say which events start a run, what they may announce, and how long a run waits for further ones."""

    index: Annotated[
        str,
        Option(
            "Indexes whose events start an evaluation; * stands for any characters.",
            holds="text",
            pattern=r"^[A-Za-z0-9*][A-Za-z0-9._*-]*$",
        ),
    ] = "*"
    datasets: Annotated[
        Annotated[str, AfterValidator(refuse_secrets)] | None,
        Option(
            "Folder, or beginning of URLs, in which the data sets that events announce must lie. Default: the folder "
            "of `source`.",
            holds="address",
            examples=["s3://bucket/handbook"],
        ),
    ] = None
    debounce_seconds: Annotated[
        float,
        Option(
            "Seconds that an event of an index waits for a later one; a burst of events is evaluated once.",
            renamed_from="quiet_seconds",
            ge=0,
            le=3600,
        ),
    ] = 10.0

    @property
    def longest_wait(self) -> float:
        """The maximum number of seconds that an event waits.

        >>> EventSettings().longest_wait, EventSettings(debounce_seconds=300).longest_wait
        (600.0, 1200.0)
        """
        return max(LONGEST_WAIT, _LEAST_DEBOUNCES * self.debounce_seconds)
