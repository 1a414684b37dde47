"""Open the models of a run whose judges answer past the cache."""

from tasks.models.judges.protocol import Judge
from tasks.opening.run_models import RunModels
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.judged_settings import JudgedSettings


class UncachedModels(RunModels):
    """The models of a run, whose judges answer past the cache; what is cached stays as it is."""

    def __init__(self, models: RunModels) -> None:
        super().__init__()
        self._run = models

    def open_judge(self, judge: SingleJudgeSettings, settings: JudgedSettings) -> Judge:
        """Return the judge without its cache."""
        return self._run.open_cached_judge(judge, settings).uncached
