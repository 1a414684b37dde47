"""Open the models of a dry run: judges that count in place of judges that answer."""

from collections.abc import Sequence
from functools import partial

from metric_core.calibration.sure_threshold import SureThreshold
from metric_core.prompts.judge_questions import ChoiceQuestion, question_digest
from tasks.models.judges.panel import CascadeRule, PanelJudge
from tasks.models.judges.protocol import ChoiceAnswer, Judge
from tasks.opening.backends import open_splitter
from tasks.opening.counting_judge import NOT_ASKED, CountingJudge, Ledger
from tasks.opening.local_models import load_pipeline
from tasks.opening.run_models import RunModels
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.judged_settings import JudgedSettings

_DIGITS = 8
"""Hexadecimal digits of a question's digest that stand for a random number."""


class DryRunModels(RunModels):
    """The models of a dry run; all but the judges are those of a run.

    Args:
        models: Models of the run, whose judges answer from the cache only.
    """

    def __init__(self, ledger: Ledger, models: RunModels) -> None:
        super().__init__()
        self._ledger = ledger
        self._models = models

    def _rule(self, cheaper: Judge, thresholds: Sequence[SureThreshold], writer: str) -> CascadeRule:
        return _ExpectedRule(self._ledger, cheaper, thresholds, writer)

    def _panel(self, members: Sequence[Judge], rule: CascadeRule | None = None) -> PanelJudge:
        """Return a panel, which may repeat judges, because unreachable ones look alike."""
        return PanelJudge(members, rule)

    def open_judge(self, judge: SingleJudgeSettings, settings: JudgedSettings) -> Judge:
        """Return a judge that counts in place of one that answers."""
        return self._open_once(
            (judge.model_dump_json(), settings.model_dump_json()),
            lambda: CountingJudge(
                self._ledger,
                judge,
                partial(self._models.open_cached_judge, judge, settings),
                partial(open_splitter, judge, partial(load_pipeline, settings.language)),
            ),
        )


class _ExpectedRule(CascadeRule):
    """A rule that expects as many sure answers as the labels were drawn from, where an answer is not cached.

    Args:
        ledger: Counts the questions that the cheaper judge answers alone.
    """

    def __init__(self, ledger: Ledger, cheaper: Judge, thresholds: Sequence[SureThreshold], writer: str) -> None:
        super().__init__(cheaper, thresholds, writer)
        self._ledger = ledger

    def is_sure(self, question: ChoiceQuestion, answer: ChoiceAnswer) -> bool:
        """Return whether an answer is accepted, or is expected to be: always the same for a question."""
        threshold = self.thresholds.get(question.about)
        is_sure = super().is_sure(question, answer)
        if threshold is not None and answer.reason == NOT_ASKED:
            is_sure = int(question_digest(question)[:_DIGITS], 16) < threshold.share * 16**_DIGITS
        self._ledger.spared += is_sure
        return is_sure
