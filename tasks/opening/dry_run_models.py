"""Open the models of a dry run: judges that count in place of judges that answer."""

from collections.abc import Sequence
from functools import partial

from tasks.models.judges.panel import PanelJudge
from tasks.models.judges.protocol import Judge
from tasks.opening.backends import open_splitter
from tasks.opening.counting_judge import CountingJudge, Ledger
from tasks.opening.local_models import load_pipeline
from tasks.opening.run_models import RunModels
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.judged_settings import JudgedSettings


class DryRunModels(RunModels):
    """The models of a dry run; all but the judges are those of a run.

    Args:
        models: Models of the run, whose judges answer from the cache only.
    """

    def __init__(self, ledger: Ledger, models: RunModels) -> None:
        super().__init__()
        self._ledger = ledger
        self._models = models

    def _panel(self, members: Sequence[Judge]) -> PanelJudge:
        """Return a panel, which may repeat judges, because unreachable ones look alike."""
        return PanelJudge(members)

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
