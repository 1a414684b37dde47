"""Measure on labelled claims of a run whether other prompts bring its judge closer to people."""

from dataclasses import dataclass, replace
from pathlib import Path

from metric_core.calibration.labels import LabelRules, Scale
from metric_core.declarations.metric import MetricRequest
from metric_core.errors import ConfigError, SourceError
from metric_core.prompts.examples import SetAside
from metric_core.prompts.judge_questions import YES
from metric_core.prompts.prompt_set import load_prompts
from metric_core.question_kinds import QuestionKind
from metric_core.statistics.bounded_means import Bounds, estimate_interval
from metric_core.statistics.resampling import SEED, Interval
from tasks.calibration.common_rows import find_common_rows
from tasks.calibration.judge_check import open_judge_of
from tasks.calibration.label_items import list_verdicts
from tasks.calibration.prompt_examples import find_labelled_claims
from tasks.calibration.stored_labels import STORED, pair_stored
from tasks.models.judges.routed_judge import judge_for
from tasks.opening.run_models import RunModels
from tasks.options.judge_options import GroupJudgeSettings, J
from tasks.options.judged_settings import JudgedSettings
from tasks.runs.finished_run import FinishedRun

_BEFORE, _AFTER = "before", "after"


@dataclass(frozen=True, slots=True)
class PromptCheck:
    """The agreement of a judge with people under two sets of prompts, on the same labelled claims.

    Args:
        claims: Number of claims that were judged with both.
        before: Share of claims on which people and the judge of the run agree.
        after: The same with the other prompts.
        difference: 95 % interval of `after` less `before`; None for too few claims.
        mended: Number of claims that only the other prompts judge as people do.
        broken: Number of claims that only the prompts of the run judge as people do.
        failed: Number of claims without a usable answer.
    """

    claims: int
    before: float
    after: float
    difference: Interval | None
    mended: int
    broken: int
    failed: int


def check_prompts(run: FinishedRun, request: MetricRequest, settings: JudgedSettings, folder: Path) -> PromptCheck:
    """Ask the judge of a run about labelled claims with other prompts; its verdicts with its own are those of the run.

    Labels among which the examples of either were chosen measure nothing.

    Args:
        settings: Settings of the run, with the addresses of launched judges.
        folder: Folder of the other prompts.

    Raises:
        SourceError: There are too few labels of claims.
        ConfigError: The judge is not that of the run any more, or these are its prompts.
        AssayError: The judge cannot be asked.
    """
    prompts = load_prompts(folder)
    own = open_judge_of(run, settings, RunModels())
    other = judge_for(RunModels().open_judges(_with_prompts(settings, folder)), QuestionKind.VERDICT)
    if own.fingerprint(QuestionKind.VERDICT) == other.fingerprint(QuestionKind.VERDICT):
        raise ConfigError(
            f"the judge of {run.folder} reads no prompts, or those in {folder} already; name a run of a judge server "
            "with other prompts"
        )
    _, paired = pair_stored(run, request, LabelRules(STORED), None)
    if paired.of_run is None or paired.of_run.weights is None:
        raise SourceError(
            f"the labels of {request.key} are about whole rows, but prompts are checked on claims: label these, too "
            "(`assay label --claims`)"
        )
    aside = SetAside() if prompts.examples is None else prompts.examples.aside
    claims = [
        claim
        for claim in find_labelled_claims(run, list_verdicts(run, request))
        if not aside.holds(claim.item.digest, claim.item.question)
    ]
    answers = other.choose([claim.question for claim in claims])
    said = {
        claim.item.key: float(answer.label == YES)
        for claim, answer in zip(claims, answers, strict=True)
        if answer.label is not None
    }
    of_run = paired.of_run
    labels = [label if key in said else None for key, label in zip(of_run.rows, of_run.labels, strict=True)]
    before = replace(of_run, labels=labels)
    after = replace(before, scores=[said.get(key, 0.0) for key in of_run.rows])
    rows = find_common_rows({_BEFORE: before, _AFTER: after}, Scale.BINARY)
    was, now = rows.agreements(_BEFORE), rows.agreements(_AFTER)
    return PromptCheck(
        claims=len(was),
        before=rows.units(was).mean,
        after=rows.units(now).mean,
        difference=estimate_interval(rows.units(now - was), Bounds(-1.0, 1.0), SEED, _AFTER),
        mended=int((now > was).sum()),
        broken=int((now < was).sum()),
        failed=len(claims) - len(said),
    )


def _with_prompts(settings: JudgedSettings, folder: Path) -> JudgedSettings:
    """Return settings in which all judges that read prompts read those of a folder."""

    def changed(judge: J) -> J:
        update: dict[str, object] = {}
        if judge.server is not None and judge.profile is None:
            update["server"] = judge.server.model_copy(update={"prompts": str(folder.absolute())})
        if isinstance(judge, GroupJudgeSettings):
            update["panel"] = tuple(map(changed, judge.panel))
        return judge.model_copy(update=update)

    groups: dict[str, object] = {group: changed(judge) for group, judge in settings.judge.by_group.items()}
    judge = changed(settings.judge).model_copy(update=groups)
    return settings.model_copy(update={"judge": judge, "panel": tuple(map(changed, settings.panel))})
