"""Check the judge of a finished run with planted changes of its rows, and keep its certificate."""

from dataclasses import dataclass
from pathlib import Path

from flows.execution.rerun_plan import config_of
from flows.execution.run import launched_judges
from tasks.calibration.certificates import save_certificate
from tasks.calibration.judge_check import certify_judge
from tasks.opening.run_models import RunModels
from tasks.options.judged_settings import JudgedSettings
from tasks.options.narrow import narrow
from tasks.record.judge_quality import Certificate
from tasks.reports.run.report_page import write_report
from tasks.runs.finished_run import FinishedRun
from tasks.runs.run_folder import RunFolder


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """A checked judge.

    Args:
        kept: File that later runs of the judge read.
    """

    certificate: Certificate
    kept: Path


def check_judge(folder: Path, budget: int) -> JudgeCheck:
    """Check the judge of a run, and write the certificate for later runs and into the folder of this one.

    Args:
        folder: Folder of the run.
        budget: Largest number of questions.

    Raises:
        AssayError: The run has no claims to change, its judge is another one by now, or it cannot be asked.
    """
    run = FinishedRun(folder)
    config = config_of(run)
    with launched_judges(config) as urls:
        settings = narrow(config.with_launched_judges(urls), JudgedSettings, refresh=False)
        certificate = certify_judge(run, settings, RunModels(config.tables_root), budget)
    kept = save_certificate(certificate)
    written = RunFolder(run.folder)
    written.write_record(run.record.extend(certificate=certificate))
    write_report(run.folder)
    return JudgeCheck(certificate, kept)
