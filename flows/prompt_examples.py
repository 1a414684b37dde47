"""Write labels of people into a folder of prompts as examples, and check whether prompts help the judge of a run."""

from pathlib import Path

from flows.execution.rerun_plan import config_of
from flows.execution.run import launched_judges
from flows.planning.capabilities import scoring_kinds
from metric_core.declarations.metric import MetricRequest
from metric_core.errors import ConfigError
from metric_core.prompts.examples import EXAMPLES, Examples, SetAside
from metric_core.prompts.prompt_set import load_prompts
from metric_core.question_kinds import QuestionKind
from tasks.calibration.label_items import list_verdicts
from tasks.calibration.prompt_check import PromptCheck, check_prompts
from tasks.calibration.prompt_examples import choose_examples, find_labelled_claims
from tasks.options.judged_settings import JudgedSettings
from tasks.options.narrow import narrow
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.atomic_files import write_output


def write_examples(folder: Path, run: FinishedRun, metric: str, count: int, *, replace: bool = False) -> Examples:
    """Choose labelled claims of a run as examples, and write them into a folder of prompts.

    Args:
        metric: Key of the metric that the labels are about.
        replace: Replace examples that the folder has.

    Raises:
        AssayError: There are too few labels, the folder holds no prompts, or has examples.
    """
    if load_prompts(folder).examples is not None and not replace:
        raise ConfigError(
            f"{folder} has examples. Others would ask every question with examples again, and other labels would "
            "measure the judge: --replace writes them all the same"
        )
    items = list_verdicts(run, _find_request(run, metric), aside=SetAside())
    examples = choose_examples(find_labelled_claims(run, items), count, metric)
    write_output(folder / EXAMPLES, examples.to_json(), "the examples", ConfigError)
    return examples


def check_prompts_of_run(folder: Path, run: FinishedRun, metric: str) -> PromptCheck:
    """Ask the judge of a run about labelled claims with the prompts in a folder.

    Args:
        metric: Key of the metric that the labels are about.

    Raises:
        AssayError: There are too few labels, or the judge cannot be asked.
    """
    config = config_of(run)
    with launched_judges(config) as urls:
        settings = narrow(config.with_launched_judges(urls), JudgedSettings, refresh=False)
        return check_prompts(run, _find_request(run, metric), settings, folder)


def _find_request(run: FinishedRun, metric: str) -> MetricRequest:
    """Return a metric of a run that reads verdicts on claims, and nothing else."""
    able = {each.key: each for each in run.requests if scoring_kinds(each) == [QuestionKind.VERDICT]}
    if metric not in able:
        raise ConfigError(
            f"examples are labelled claims, and {metric!r} is no metric of {run.folder} that reads verdicts on claims "
            f"alone; these do: {', '.join(able) or 'none'}"
        )
    return able[metric]
