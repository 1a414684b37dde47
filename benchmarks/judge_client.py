"""Ask a judge server the kinds of questions that a run asks, and print the client's cost as JSON.

Used by `judge_cost.py`: `python -m benchmarks.judge_client URL[,URL...] ROWS SAMPLES [CONCURRENCY]`.
"""

import json
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from metric_core.metrics.registry import resolve
from metric_core.prompts.judge_questions import (
    ChoiceQuestion,
    GenerateQuestion,
    JudgeQuestion,
    ask_claims,
    ask_questions,
    ask_usefulness_for_reference,
    ask_verdict,
)
from metric_core.records import AnswerStatus, Sample, Score
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.options.judge_server_options import ServerJudgeOptions

RATED = ("nv_accuracy", "nv_context_relevance", "nv_response_groundedness")


def main() -> None:
    """Ask the questions and print the measurements."""
    urls, rows, samples, *concurrency = sys.argv[1:]
    options = ServerJudgeOptions(urls=tuple(urls.split(",")))
    if concurrency:
        options = options.model_copy(update={"concurrency": int(concurrency[0])})
    judge = OpenAIJudge(options)
    with Path(rows).open(encoding="utf-8") as lines:
        questions = [question for line in islice(lines, int(samples)) for question in questions_of(json.loads(line))]
    choices = [question for question in questions if isinstance(question, ChoiceQuestion)]
    texts = [question for question in questions if isinstance(question, GenerateQuestion)]
    wall, cpu = time.monotonic(), time.process_time()
    statuses = [answer.status for answer in judge.generate(texts)] + [answer.status for answer in judge.choose(choices)]
    cost = {"wall": time.monotonic() - wall, "cpu": time.process_time() - cpu}
    judge.close()
    print(json.dumps({**cost, "failed": len(statuses) - statuses.count(AnswerStatus.ANSWERED)}))


def questions_of(row: dict[str, Any]) -> Iterator[JudgeQuestion]:
    """Return the questions that a run asks about a row, without those that follow from answers."""
    sample = Sample(**{**row, "retrieved_contexts": tuple(row["retrieved_contexts"])})
    user_input, response, reference = row["user_input"], row["response"], row["reference"]
    yield from (ask_claims(text, user_input) for text in (response, reference))
    yield ask_questions(response, 3)
    for claim in response.split(". "):
        yield from (ask_verdict(claim, premise) for premise in (sample.joined_contexts, reference))
    for claim in reference.split(". "):
        for premise in (sample.joined_contexts, response, *row["retrieved_contexts"]):
            yield ask_verdict(claim, premise)
    for passage in row["retrieved_contexts"]:
        yield ask_usefulness_for_reference(passage, user_input, reference)
    for name in RATED:
        requests = resolve(name).request({}).rating_requests(sample)
        if not isinstance(requests, Score):
            yield from (request.question for request in requests)


if __name__ == "__main__":
    main()
