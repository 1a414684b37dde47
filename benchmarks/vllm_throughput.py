"""Compare the throughput of the judge client on a served vLLM with that of vLLM's own offline `LLM.chat`.

    python -m benchmarks.vllm_throughput                    # 256 verdicts, on the vLLM for CPUs of `just judge-cpu`
    python -m benchmarks.vllm_throughput --single           # also with one conversation per request

Both get the same conversations in the same order, with the same constraint and log-probabilities, and start with an
empty prefix cache; starting and a few conversations to warm up do not count. Needs the rows of the peer benchmark in
`../shared/peer` beside the repository, a quiet machine and a few minutes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.targets import at_least, at_most
from metric_core.prompts.judge_questions import ChoiceQuestion, ask_verdict
from metric_core.prompts.prompt_set import load_prompts
from tasks.models.judges.openai import grouping
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.models.judges.openai.request_body import chat_messages
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.launch_options import LaunchSettings
from tasks.processes.judge_service import launch_for_scope
from tests.vllm.build_judge_cpu import judge_cpu

ROWS = Path(__file__).resolve().parents[1].parent / "shared" / "peer" / "bench_rows.jsonl"
TARGET, TOLERANCE = 0.9, 1e-3
WINDOW, SEQUENCES, WARM_UP = 2048, 32, 8

OFFLINE = """
import json, sys, time
from vllm import LLM, SamplingParams
from vllm.sampling_params import StructuredOutputsParams

def main():
    given = json.load(open(sys.argv[1]))
    llm = LLM(given["model"], dtype="float32", max_model_len=given["window"], enforce_eager=True,
              max_num_seqs=given["sequences"], enable_chunked_prefill=False, disable_log_stats=True)
    parameters = SamplingParams(temperature=0.0, max_tokens=1, logprobs=20,
                                structured_outputs=StructuredOutputsParams(choice=["yes", "no"]))
    llm.chat(given["warm_up"], parameters, use_tqdm=False)
    start = time.monotonic()
    outputs = llm.chat(given["conversations"], parameters, use_tqdm=False)
    seconds = time.monotonic() - start
    json.dump({"seconds": seconds, "texts": [output.outputs[0].text for output in outputs]}, open(sys.argv[2], "w"))

if __name__ == "__main__":
    main()
"""


def questions(number: int) -> list[ChoiceQuestion]:
    """Return verdicts on claims of references, passage by passage."""
    with ROWS.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    every = (
        ask_verdict(claim, passage)
        for row in rows
        for passage in row["retrieved_contexts"]
        for claim in row["reference"].split(". ")
    )
    return list(islice(every, number))


def measure_server(asked: list[ChoiceQuestion], warm_up: list[ChoiceQuestion], most: int) -> tuple[float, list[Any]]:
    """Return the seconds that a fresh server and the client take, and the answers."""
    judge = judge_cpu()
    settings = LaunchSettings.model_validate(
        {
            "python": str(judge.python),
            "model": str(judge.model),
            "dtype": "float32",
            "max_model_len": WINDOW,
            "extra_args": ["--enforce-eager", "--max-num-seqs", str(SEQUENCES), "--no-enable-chunked-prefill"],
            "environment": {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "0-1"},
            "start_timeout": 600,
        }
    )
    with tempfile.TemporaryDirectory() as home, launch_for_scope(settings, Path(home)) as running:
        grouping.LABELS_PER_REQUEST = most
        client = OpenAIJudge(ServerJudgeOptions(urls=(running.url,), timeout=600))
        client.choose(warm_up)
        start = time.monotonic()
        answers = client.choose(asked)
        seconds = time.monotonic() - start
        print(f"several conversations per request: {client.features.batches and most > 1}", flush=True)
        client.close()
    return seconds, answers


def offline(asked: list[ChoiceQuestion], warm_up: list[ChoiceQuestion]) -> dict[str, Any]:
    """Return the seconds that `LLM.chat` takes for the same conversations, and its labels."""
    prompts, judge = load_prompts("en"), judge_cpu()
    content = {
        "model": str(judge.model),
        "window": WINDOW,
        "sequences": SEQUENCES,
        "conversations": [chat_messages(prompts.render(question), True) for question in asked],
        "warm_up": [chat_messages(prompts.render(question), True) for question in warm_up],
    }
    threads = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "0-1"}
    with tempfile.TemporaryDirectory() as folder:
        given, result, script = (Path(folder, name) for name in ("given.json", "result.json", "offline.py"))
        given.write_text(json.dumps(content), encoding="utf-8")
        script.write_text(OFFLINE, encoding="utf-8")
        command = [str(judge.python), str(script), str(given), str(result)]
        subprocess.run(command, check=True, env={**os.environ, **threads}, stdout=sys.stderr)
        done: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return done


def main() -> None:
    """Measure both sides and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=256)
    parser.add_argument("--single", action="store_true", help="also with one conversation per request")
    options = parser.parse_args()
    if not ROWS.is_file() or not judge_cpu().is_complete():
        sys.exit(f"needs {ROWS} and a vLLM for CPUs in {judge_cpu().path} (`just judge-cpu`)")
    asked = questions(options.questions)
    warm_up = [ask_verdict(f"The ferry sails {i} times a day.", "It sails at noon.") for i in range(WARM_UP)]
    seconds, answers = measure_server(asked, warm_up, 16)
    chat = offline(asked, warm_up)
    share = chat["seconds"] / seconds
    same = sum(answer.label == text for answer, text in zip(answers, chat["texts"], strict=True))
    print(f"LLM.chat: {len(asked) / chat['seconds']:.2f} conversations per second, {chat['seconds']:.1f} s")
    print(f"judge client and server: {len(asked) / seconds:.2f} conversations per second, {seconds:.1f} s")
    print(f"equal labels: {same} of {len(asked)}")
    print(at_least("share of the throughput of LLM.chat", share, TARGET))
    if options.single:
        single, alone = measure_server(asked, warm_up, 1)
        pairs = list(zip(answers, alone, strict=True))
        far = max(abs(a.probabilities["yes"] - b.probabilities["yes"]) for a, b in pairs)
        print(f"one conversation per request: {len(asked) / single:.2f} per second, {single:.1f} s")
        print(at_most("largest difference of a probability", far, TOLERANCE))


if __name__ == "__main__":
    main()
