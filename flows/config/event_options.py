"""Declare the options of runs that an event of an index starts."""

from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from tasks.options.option import Option, OptionGroup
from tasks.runtime.credentials import refuse_secrets

_LONGEST_WAIT = 600.0
_LEAST_DEBOUNCES = 4


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
    longest_wait_seconds: Annotated[
        float | None,
        Option(
            "Maximum number of seconds that an event waits, even if others keep coming. Default: 600, or four "
            "times debounce_seconds where that is longer.",
            le=86400,
            examples=[900],
        ),
    ] = None

    @property
    def longest_wait(self) -> float:
        """The maximum number of seconds that an event waits.

        >>> EventSettings().longest_wait, EventSettings(debounce_seconds=300).longest_wait
        (600.0, 1200.0)
        """
        if self.longest_wait_seconds is not None:
            return self.longest_wait_seconds
        return max(_LONGEST_WAIT, _LEAST_DEBOUNCES * self.debounce_seconds)

    @model_validator(mode="after")
    def _leaves_time_to_debounce(self) -> Self:
        least = _LEAST_DEBOUNCES * self.debounce_seconds
        if self.longest_wait < least:
            raise ValueError(
                f"longest_wait_seconds must be at least four times debounce_seconds, here {least:g}, or an "
                "ordinary burst would be evaluated several times"
            )
        return self
