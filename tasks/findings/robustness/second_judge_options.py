"""Declare the option for a second judge, which shows whether outcomes hang on the first one."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from tasks.options.finding_options import FindingOptions
from tasks.options.judge_options import SingleJudge, SingleJudgeSettings
from tasks.options.option import Flag, Option


def _check_second(judge: SingleJudgeSettings | None) -> SingleJudgeSettings | None:
    if judge is not None and judge.launch is not None:
        raise ValueError("a run does not launch its second judge: start it with `assay judge start`, and give its URL")
    return judge


class SecondJudgeOptions(FindingOptions, affects_scores=False):
    """The option for a second judge."""

    second_judge: Annotated[
        Annotated[SingleJudge | None, AfterValidator(_check_second)],
        Option(
            "Another judge, which is asked about at most a tenth of the rows: those on which the outcomes of the gate "
            "and of the comparison with the baseline hang. The scores stay those of the judge.",
            cli=Flag(long="--second-judge", metavar="builtin|URL", help="Another judge for rows that decide."),
            examples=["http://gpu2:8000/v1"],
        ),
    ] = None

    @property
    def other_judges(self) -> Mapping[str, SingleJudgeSettings]:
        """The second judge, if there is one."""
        return {} if self.second_judge is None else {"second judge": self.second_judge}

    def alone(self) -> Mapping[str, Any]:
        """Return the options without a second judge: a run that is not one of a series is compared with nothing."""
        return {"second_judge": None}
