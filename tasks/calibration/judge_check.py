"""Ask a judge about planted changes of claims of a finished run, and make its certificate of the verdicts.

A changed question is a row with one claim, which the stage `verdicts` computes as any other, with the cache. Only
repetitions are asked past it. The verdicts before the change are those of the run.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from metric_core.calibration.judge_check import (
    CheckResult,
    JudgedClaim,
    Moved,
    PlantedQuestion,
    assess,
    choose_questions,
)
from metric_core.calibration.planted_changes import CHANGES, REPEATED, CheckedClaim, Effect
from metric_core.errors import ConfigError
from metric_core.evidence import ALL_CONTEXTS
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus, Side, VerdictKind
from metric_core.stages import Product, Stage
from metric_core.statistics.resampling import SEED
from tasks.calibration.certificates import find_certificate
from tasks.engine.registry import STAGES
from tasks.models.judges.protocol import IN_PROCESS, Judge
from tasks.models.judges.routed_judge import judge_for, members_of
from tasks.opening.run_models import RunModels
from tasks.opening.uncached_models import UncachedModels
from tasks.options.judged_settings import JudgedSettings
from tasks.options.narrow import narrow
from tasks.record.judge_quality import Certificate, ChangeEntry
from tasks.record.stored_figures import JudgeName
from tasks.rows.records import build_table, read_samples_table
from tasks.runs.finished_run import FinishedRun
from tasks.runs.judge_family import warn_of_family
from tasks.runtime.release import version
from tasks.stages.verdicts import VerdictsSettings

QUESTIONS = 300
"""Largest number of questions of a certificate."""

_MOST_CLAIMS = 600
"""Number of claims to choose from."""
_OTHERS = 5
"""Number of rows whose passages a claim is offered instead of its own."""
_CLAIM = "claim"
_STEADY = {change.name for change in CHANGES if change.effect is Effect.NONE}


def certify_judge(
    run: FinishedRun, settings: JudgedSettings, models: RunModels, budget: int = QUESTIONS
) -> Certificate:
    """Ask the judge of a run about changed claims of its rows.

    Args:
        settings: Settings of the run, with the addresses of launched judges.
        models: Models that have not been opened for another run.
        budget: Largest number of questions.

    Raises:
        ConfigError: The run has no verdicts on claims against passages, or the judge is not that of the run any more.
        AssayError: The judge cannot be asked.
    """
    judge = open_judge_of(run, settings, models)
    identity = judge.fingerprint(QuestionKind.VERDICT)
    claims = read_claims(run, judge.identity.model)
    if not claims:
        raise ConfigError(
            f"the run in {run.folder} has no verdicts on claims against all contexts of a row, which a check changes; "
            "take a run with faithfulness or context_recall"
        )
    is_fixed = all(each.identity.backend in IN_PROCESS for each in members_of(judge))
    questions = choose_questions(claims, budget, is_fixed=is_fixed)
    answers = _Answers(narrow(settings, VerdictsSettings, products=(Product.RESPONSE_CLAIMS_BY_CONTEXTS,)), models)
    moved, failed = _compare(questions, answers)
    if _STEADY.isdisjoint(each.change for each in moved):
        raise ConfigError(
            "the judge gave no usable answer to questions that must not move a verdict: see `assay judge try`, or "
            "take a run with more rows"
        )
    name = JudgeName(judge.identity.backend, judge.identity.model, judge.identity.revision)
    rows, supported = len({each.row for each in moved}), float(np.mean([each.verdict for each in claims]))
    return _certificate(run, (name, identity), assess(moved, supported), failed, (rows, answers.asked))


def open_judge_of(run: FinishedRun, settings: JudgedSettings, models: RunModels) -> Judge:
    """Open the judge that gave the verdicts of a run.

    Args:
        settings: Settings of the run, with the addresses of launched judges.
        models: Models that have not been opened for another run.

    Raises:
        ConfigError: The run asked for no verdicts, or its judge is another one by now.
        AssayError: The judge cannot be asked.
    """
    if QuestionKind.VERDICT not in run.record.judge_fingerprints:
        raise ConfigError(
            f"the run in {run.folder} asked no judge for verdicts, so there is nothing to check. Take a run with a "
            "metric of claims, such as faithfulness."
        )
    judge = judge_for(models.open_judges(settings), QuestionKind.VERDICT)
    if run.record.judge_fingerprints.get(QuestionKind.VERDICT) != judge.fingerprint(QuestionKind.VERDICT):
        raise ConfigError(
            f"the judge is not the one of the run in {run.folder} any more: its model, prompts or settings differ. "
            "Evaluate the rows again with `assay run`; then check the judge on the new run."
        )
    return judge


def certificate_of(judge: Judge) -> Certificate | None:
    """Return the certificate of a run's judge of verdicts; None if it has none."""
    answering = judge_for(judge, QuestionKind.VERDICT)
    if not answering.can_answer(QuestionKind.VERDICT):
        return None
    identity = answering.identity
    name = JudgeName(identity.backend, identity.model, identity.revision)
    return find_certificate(name, answering.fingerprint(QuestionKind.VERDICT))


def read_claims(run: FinishedRun, judge: str) -> list[JudgedClaim]:
    """Return claims of a run that were judged against all contexts of their row, in random order.

    Args:
        judge: Name of the judge's model.
    """
    samples = [each for shard in run.samples() for each in read_samples_table(shard)]
    contexts = {each.row_id: each.retrieved_contexts or () for each in samples}
    rows = [row for row, passages in contexts.items() if any(passage.strip() for passage in passages)]
    texts = {
        (row["row_id"], row["claim_id"]): row["text"]
        for row in run.rows(Stage.CLAIMS, rows).select(["row_id", "claim_id", "text"]).to_pylist()
    }
    verdicts = run.rows(Stage.VERDICTS, rows).select(["row_id", "kind", "premise", "claim_id", "verdict"]).to_pylist()
    judged = [
        row
        for row in verdicts
        if (row["kind"], row["premise"]) == (VerdictKind.SUPPORT, ALL_CONTEXTS)
        and row["verdict"] is not None
        and texts.get((row["row_id"], row["claim_id"]))
    ]
    generator = np.random.default_rng(SEED)
    order = [judged[at] for at in generator.permutation(len(judged))]
    seen: Counter[str] = Counter()
    turns = []
    for row in order:
        turns.append(seen[row["row_id"]])
        seen[row["row_id"]] += 1
    first_of_rows = [order[at] for at in np.argsort(turns, kind="stable")[:_MOST_CLAIMS]]
    return [
        JudgedClaim(
            row["row_id"],
            CheckedClaim(
                texts[row["row_id"], row["claim_id"]],
                contexts[row["row_id"]],
                tuple(contexts[rows[at]] for at in generator.integers(len(rows), size=_OTHERS)),
                judge,
            ),
            row["verdict"],
        )
        for row in first_of_rows
    ]


class _Answers:
    """Verdicts of a judge on changed claims.

    Args:
        settings: Settings of the stage.
    """

    def __init__(self, settings: VerdictsSettings, models: RunModels) -> None:
        self.asked = 0
        """Number of questions that were asked, without those that were cached."""
        self._settings = settings
        self._models = models

    def find(self, questions: Sequence[PlantedQuestion], *, again: bool = False) -> list[int | None]:
        """Return the verdict on each question; None without a usable answer.

        Args:
            again: True to ask past the cache, where cached answers stay.
        """
        models = UncachedModels(self._models) if again else self._models
        output = STAGES[Stage.VERDICTS].compute(_tables(questions), self._settings, models.select(self._settings))
        self.asked += output.usage.questions - output.usage.stored
        found = {
            int(row["row_id"]): row["verdict"]
            for row in output.table.select(["row_id", "premise", "verdict"]).to_pylist()
            if row["premise"] == ALL_CONTEXTS
        }
        return [found[at] for at in range(len(questions))]


def _tables(questions: Sequence[PlantedQuestion]) -> dict[Stage, pa.Table]:
    """Return each question as a row with one claim."""
    samples = [
        {
            "row_id": str(at),
            "row_number": at + 1,
            "response": each.changed.claim,
            "retrieved_contexts": list(each.changed.passages),
        }
        for at, each in enumerate(questions)
    ]
    claims = [
        {
            "row_id": str(at),
            "side": Side.RESPONSE,
            "claim_id": _CLAIM,
            "text": each.changed.claim,
            "status": AnswerStatus.ANSWERED,
        }
        for at, each in enumerate(questions)
    ]
    return {Stage.SAMPLES: build_table(Stage.SAMPLES, samples), Stage.CLAIMS: build_table(Stage.CLAIMS, claims)}


def _compare(questions: Sequence[PlantedQuestion], answers: _Answers) -> tuple[list[Moved], Counter[str]]:
    """Ask the questions.

    Returns:
        What became of the verdicts, and the number of questions without a usable answer by change.
    """
    changed = [each for each in questions if each.change.change is not None]
    repeated = [each for each in questions if each.change.change is None]
    twice = [each for each in repeated if each.change is REPEATED]
    now = dict(zip(map(id, changed), answers.find(changed), strict=True)) if changed else {}
    now |= dict(zip(map(id, repeated), answers.find(repeated, again=True), strict=True)) if repeated else {}
    before: dict[int, int | None] = {id(each): each.judged.verdict for each in questions}
    before |= dict(zip(map(id, twice), answers.find(twice, again=True), strict=True)) if twice else {}
    moved, failed = [], Counter[str]()
    for each in questions:
        was, is_now = before[id(each)], now[id(each)]
        if was is None or is_now is None:
            failed[each.change.name] += 1
        else:
            moved.append(Moved(each.change.name, each.judged.row, was != is_now, was))
    return moved, failed


def _certificate(
    run: FinishedRun, judge: tuple[JudgeName, str], result: CheckResult, failed: Counter[str], sizes: tuple[int, int]
) -> Certificate:
    """Return a certificate.

    Args:
        judge: The judge and the fingerprint of its verdicts.
        failed: Number of questions without a usable answer, by change.
        sizes: Numbers of rows and of questions asked.
    """
    about = {change.name: change.about for change in CHANGES}
    changes = tuple(
        ChangeEntry(
            change=each.change,
            about=about[each.change],
            effect=each.effect,
            asked=each.asked,
            wrong=each.wrong,
            share=each.share,
            p=each.p,
            is_fault=each.is_fault,
            failed=failed[each.change],
        )
        for each in result.findings
    )
    return Certificate(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        identity=judge[1],
        judge=judge[0],
        run=str(run.folder),
        rows=sizes[0],
        questions=sizes[1],
        flips=result.flips,
        asked=result.asked,
        changes=changes,
        warnings=warn_of_family(run.samples(), judge[0].model),
        versions={"rag-assay": version()},
    )
