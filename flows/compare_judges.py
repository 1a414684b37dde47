"""Compare judges on the same labels: calibrate each, and list its agreement with people, its cost and its speed."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from flows.calibrate import calibrate_plan, prepare_calibration
from flows.config.calibration_request import CalibrationRequest
from flows.config.loading import CONFIG_SUFFIXES, load_config
from flows.planning.capabilities import scoring_kinds
from flows.planning.planner import plan_run
from metric_core.calibration.calibrate import measure_human_agreement
from metric_core.declarations.metric import MetricRequest
from metric_core.errors import ConfigError
from metric_core.question_kinds import KindGroup
from metric_core.statistics.resampling import Interval
from tasks.calibration.calibration_files import Calibration
from tasks.calibration.common_rows import find_common_rows
from tasks.calibration.label_pairing import pair_labels
from tasks.calibration.run_labels import RunLabels
from tasks.metering.money import money_of
from tasks.options.cost_options import Prices
from tasks.options.judge_options import GroupJudgeSettings, JudgeOptions, JudgeSettings, SingleJudgeSettings
from tasks.options.narrow import narrow
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.usage import KindUsage, Usage

_PER_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A judge to compare.

    Args:
        name: Name as the user gave it.
    """

    name: str
    judge: JudgeSettings
    prices: Prices


@dataclass(frozen=True, slots=True)
class ComparedJudge:
    """The agreement of a judge with people on the rows that all judges scored.

    Args:
        agreement: Agreement as in a calibration; None if so few rows do not determine it.
        interval: 95 % interval of the agreement; None for too few rows or groups.
    """

    name: str
    agreement: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class JudgeCost:
    """The cost of a judge per 1,000 rows. A cost is None if it is unknown because all answers were cached.

    Args:
        asked: Number of questions that it was asked in this comparison.
        tokens: Tokens sent and generated.
        money: Amount of money; None also without prices.
        seconds: Seconds of the stages per question that was asked.
    """

    asked: int
    tokens: float | None
    money: float | None
    currency: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class JudgesResult:
    """The result of a comparison of judges.

    Args:
        rows: Number of labelled rows that all judges scored.
        judges: Judges, the one that agrees most first.
    """

    metric: str
    rows: int
    judges: tuple[ComparedJudge, ...]
    costs: Mapping[str, JudgeCost]
    calibrations: Mapping[str, Calibration]
    folders: Mapping[str, str]


def parse_candidates(words: str, prices: Prices) -> tuple[Candidate, ...]:
    """Return the judges that a user names.

    Args:
        words: Backends, URLs, and configuration files that name a judge, separated by commas.
        prices: Prices of judges that are not named by a file with prices.

    Raises:
        ConfigError: There are fewer than two, one is named twice, or one cannot be used.

    >>> [each.judge.backend for each in parse_candidates("builtin,http://localhost:8000/v1", Prices())]
    ['builtin', 'server']
    """
    names = [word.strip() for word in words.split(",") if word.strip()]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ConfigError(f"--judges needs at least two different judges, separated by commas; got {words!r}")
    return tuple(_candidate(name, prices) for name in names)


def _candidate(name: str, prices: Prices) -> Candidate:
    if name.endswith(CONFIG_SUFFIXES):
        config = load_config(Path(name))
        named = config.judge.by_group.get(KindGroup.VERDICTS, config.judge)
        own = None if named.server is None else named.server.prices
        of_file = config.prices if "prices" in config.model_fields_set else prices
        return Candidate(name, config.judge, of_file if own is None else own)
    try:
        return Candidate(name, JudgeOptions.model_validate({"judge": name}).judge, prices)
    except ValueError as error:
        raise ConfigError(
            f"the judge {name!r} cannot be used: {error}. Name builtin, a URL, a plugin, or a configuration file"
        ) from error


def compare_candidates(
    request: CalibrationRequest,
    candidates: tuple[Candidate, ...],
    on_next: Callable[[str, int], None] = lambda _name, _number: None,
) -> JudgesResult:
    """Calibrate each judge on the same labels, and compare them.

    If the configuration names a judge, the candidates give only the verdicts or the ratings of the metric, and that
    judge writes the claims, the same for all. Otherwise each candidate answers all questions. No calibration is saved
    for later runs.

    Args:
        on_next: Called with the name and the number, from 1, of each judge before it is asked.

    Raises:
        AssayError: Anything that the user can fix; the message says how.
    """
    ready = prepare_calibration(request)
    labels: dict[str, RunLabels] = {}
    costs, calibrations, folders = {}, {}, {}
    for number, candidate in enumerate(candidates, start=1):
        on_next(candidate.name, number)
        config = request.config
        changes = {
            "judge": _candidate_judge(config, candidate, ready.metric),
            "cascade": None,
            "out": None if config.out is None else str(Path(config.out) / f"{number}"),
            "prices": candidate.prices,
        }
        config = config.model_copy(update=changes)
        own = prepare_calibration(request.model_copy(update={"config": config, "keep": False}))
        result = calibrate_plan(own, plan_run(own.config))
        run = FinishedRun(result.folder)
        paired = pair_labels(run, ready.metric, ready.data, request.rules)
        if paired.of_run is None:
            raise ConfigError(
                f"{ready.metric.key} has no range, so that judges cannot be compared; name one by --range"
            )
        labels[candidate.name] = paired.of_run
        costs[candidate.name] = _cost(run, ready.metric, candidate.prices)
        calibrations[candidate.name], folders[candidate.name] = result.calibration, result.folder
    rows = find_common_rows(labels, next(iter(calibrations.values())).scale)
    judges = []
    for name, judged in rows.items():
        found = measure_human_agreement(judged, request.seed).figures.get("agreement")
        judges.append(ComparedJudge(name, *((None, None) if found is None else (found.value, found.interval))))
    judges.sort(key=lambda judge: -1.0 if judge.agreement is None else judge.agreement, reverse=True)
    count = len(next(iter(rows.values())).labels)
    return JudgesResult(ready.metric.key, count, tuple(judges), costs, calibrations, folders)


def _candidate_judge(options: JudgeOptions, candidate: Candidate, metric: MetricRequest) -> SingleJudgeSettings:
    """Return the judge of a run in which a candidate judges a metric."""
    if "judge" not in options.model_fields_set:
        return candidate.judge
    groups = {kind.group for kind in scoring_kinds(metric)}
    named = candidate.judge.by_group.get(KindGroup.VERDICTS, candidate.judge)
    panel = getattr(named, "panel", ())
    return options.judge.model_copy(
        update={str(group): narrow(named, GroupJudgeSettings, panel=panel) for group in groups}
    )


def _cost(run: FinishedRun, metric: MetricRequest, prices: Prices) -> JudgeCost:
    """Return the cost of the judge whose answers are the scores of a metric, as if none had been cached."""
    kinds = {str(kind) for kind in scoring_kinds(metric)}
    judges = [judge for judge in run.record.judges if kinds & set(judge.kinds)]
    total = sum((judge.usage for judge in judges if judge.usage is not None), KindUsage())
    if all(judge.features is None for judge in judges):
        free: float | None = 0.0  # a judge in this process
    else:
        free = None
    questions, asked = total.questions, total.questions - total.stored
    if not asked:
        return JudgeCost(0, free, free, prices.currency, None)
    factor = questions / asked * _PER_ROWS / run.record.rows
    of_kinds = [stage for stage in run.record.stages.values() if kinds & set(stage.kinds)]
    seconds = sum(stage.seconds for stage in of_kinds) / asked
    usage = Usage(total.requests, total.prompt_tokens, total.cached_tokens, total.output_tokens)
    money = money_of(prices, usage, seconds * asked)
    return JudgeCost(
        asked,
        (usage.prompt_tokens + usage.output_tokens) * factor,
        free if money is None else money.total * factor,
        prices.currency,
        seconds,
    )


def comparison_content(result: JudgesResult) -> dict[str, Any]:
    """Return a comparison of judges as JSON."""
    return {
        "metric": result.metric,
        "rows": result.rows,
        "judges": [
            {
                **asdict(judge),
                "cost_per_1000_rows": asdict(result.costs[judge.name]),
                "figures": {key: figure.value for key, figure in result.calibrations[judge.name].figures.items()},
                "folder": result.folders[judge.name],
            }
            for judge in result.judges
        ],
    }
