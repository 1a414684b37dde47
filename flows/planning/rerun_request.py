"""The parameters of the flow `rerun`: the run to run again, and the options that differ."""

from typing import Any, Literal, TypeAlias, TypeVar

from pydantic import Field

from flows.config.run_config import RunConfig
from metric_core.question_kinds import KindGroup
from metric_core.stages import Stage
from tasks.options.judge_options import JudgeOptions, JudgeSettings
from tasks.options.optional_options import optional, with_fields
from tasks.options.settings import Settings

Options = TypeVar("Options", bound=JudgeOptions)

Rows: TypeAlias = Literal["failed", "changed", "all"]
"""The rows to recompute."""

_RENEWED = (
    optional(RunConfig, ["metrics", "judge"])
    | optional(JudgeSettings, KindGroup)
    | optional(RunConfig, ["cache", "tables", "on_bad_row", "fail_on_failed", "budget"])
    | optional(RunConfig, ["out"], default="runs/<time>-<source>-rerun")
)
"""The options that a rerun may set."""


@with_fields(_RENEWED)
class RerunRequest(Settings):
    """The run to run again, which rows and stages of it to recompute, and the options that differ."""

    run: str = Field(description="Run folder.")
    rows: Rows | None = Field(
        None,
        description="Rows with a failed cell, rows that the source has changed or added since, or all. Default: all "
        "with a stage, else those with a failed cell.",
    )
    stage: Stage | None = Field(None, description="First stage to recompute. Default: all.")

    @property
    def chosen_rows(self) -> Rows:
        """The rows to recompute: a named stage is recomputed for all rows unless the request names rows.

        >>> RerunRequest(run="runs/first").chosen_rows, RerunRequest(run="runs/first", stage="verdicts").chosen_rows
        ('failed', 'all')
        """
        if self.rows is not None:
            return self.rows
        return "failed" if self.stage is None else "all"

    @property
    def changes(self) -> dict[str, Any]:
        """The options that are set, by name; those of groups of questions by the name of the group."""
        return {name: value for name in _RENEWED if (value := getattr(self, name))}

    def apply(self, old: Options) -> Options:
        """Return the options of the rerun.

        The judges of groups of questions stay, unless the request names others.
        """
        changes = self.changes
        judge: JudgeSettings = changes.pop("judge", old.judge)
        named = {group: changes.pop(group) for group in KindGroup if group in changes}
        by_group = {**old.judge.by_group, **judge.by_group, **named}
        groups = {str(group): each for group, each in by_group.items()}
        kept = {"out": None, "baseline": None}
        return old.model_copy(update={**kept, **changes, "judge": judge.model_copy(update=groups)})
