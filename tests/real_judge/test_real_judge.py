"""A language model judges rows of the example on processors: nothing fails that need not, and what it says is sound."""

import json
import math
import subprocess
from pathlib import Path

import httpx
import pytest

from metric_core.prompts.judge_questions import NO, YES, ChoiceQuestion, ask_verdict
from metric_core.prompts.prompt_set import load_prompts
from metric_core.records import AnswerStatus
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.models.judges.openai.server_features import ChoiceConstraint, JsonConstraint
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.launch_options import LaunchSettings
from tasks.processes.judge_service import JudgeRecord, launch_for_scope, stop_judge
from tasks.runtime.machine import find_free_memory
from tests.real_judge.judge_real import NAME, judge_real
from tests.structure.house import ROOT
from tests.vllm.build_judge_cpu import judge_cpu

EXAMPLE = ROOT / "examples" / "handbook.jsonl"
ROWS = 2
TIMEOUT = 900
VLLM_BYTES = 9 * 1024**3
"""Memory that vLLM for CPUs takes with the model in float32, and some for the conversion before."""

PASSAGE = "The office opens at nine and closes at five. Visitors sign in at the front desk."
CLAIMS = {"The office opens at nine.": YES, "Visitors sign in at the front desk.": YES, "The office opens at ten.": NO}
UNSURE = (
    "The office is open all day.",
    "The office is closed in the evening.",
    "Visitors have to register.",
    "Everybody signs in at the front desk.",
    "The front desk is near the door.",
)

pytestmark = [pytest.mark.prefect, pytest.mark.models]


def assay(*words: str) -> str:
    """Return what a command prints."""
    done = subprocess.run(["assay", *words], capture_output=True, text=True, check=False, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def check_verdicts(url: str) -> None:
    """Assert that plain claims get the right verdicts, each with its probability."""
    judge = OpenAIJudge(ServerJudgeOptions(urls=(url,), timeout=TIMEOUT))
    try:
        answers = judge.choose([ask_verdict(claim, PASSAGE) for claim in CLAIMS])
        assert judge.features.json is JsonConstraint.RESPONSE_FORMAT
        assert judge.features.choice in (ChoiceConstraint.GRAMMAR, ChoiceConstraint.STRUCTURED_OUTPUTS)
    finally:
        judge.close()
    assert [answer.status for answer in answers] == [AnswerStatus.ANSWERED] * len(CLAIMS)
    assert [answer.label for answer in answers] == list(CLAIMS.values())
    assert all(answer.probabilities is not None for answer in answers)


def test_plain_claims_get_the_right_verdicts(llama: JudgeRecord) -> None:
    check_verdicts(llama.url)


def read_out(url: str, question: ChoiceQuestion) -> float:
    """Return the probability of yes from the first token after a prompt that is put together here."""
    prompt = load_prompts("en").render(question)
    turns = (("system", prompt.system), ("user", prompt.user), ("assistant", ""))
    text = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns)
    asked = {"prompt": text.removesuffix("<|im_end|>\n"), "n_predict": 1, "n_probs": 100, "temperature": 0}
    reply = httpx.post(f"{url.removesuffix('/v1')}/completion", json=asked, timeout=TIMEOUT).raise_for_status().json()
    shares = dict.fromkeys((YES, NO), 0.0)
    for token in reply["completion_probabilities"][0]["top_logprobs"]:
        for label in shares:
            if token["token"].strip() and label.startswith(token["token"].strip().lower()):
                shares[label] += math.exp(token["logprob"])
    return shares[YES] / sum(shares.values())


def test_probabilities_of_the_chat_are_those_of_the_next_token(llama: JudgeRecord) -> None:
    questions = [ask_verdict(claim, PASSAGE) for claim in (*CLAIMS, *UNSURE)]
    judge = OpenAIJudge(ServerJudgeOptions(urls=(llama.url,), timeout=TIMEOUT))
    try:
        answers = judge.choose(questions)
    finally:
        judge.close()
    told = [answer.probabilities[YES] for answer in answers if answer.probabilities is not None]
    by_hand = [read_out(llama.url, question) for question in questions]
    print([(round(one, 3), round(other, 3)) for one, other in zip(told, by_hand, strict=True)])
    assert told == pytest.approx(by_hand, abs=0.02)


def test_whole_rows_are_judged_no_cell_fails_and_the_time_is_known_before(
    llama: JudgeRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert llama.speed is not None
    config = tmp_path / "assay.toml"
    config.write_text(
        f'source = "{EXAMPLE}"\nlimit = {ROWS}\nout = "run"\n'
        f'judge = {{backend = "server", server = {{urls = ["{llama.url}"], timeout = {TIMEOUT}}}}}\n'
    )
    assert "at what was measured when the judge was started (reads" in assay("plan", str(config))
    print(assay("run", str(config), "--verbose"))
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert {metric["metric"]: metric["reasons"] for metric in summary["metrics"] if metric["failed"]} == {}
    usage = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["usage"]
    print(f"{llama.speed}; {usage}")
    assert usage["cached_tokens"] > usage["prompt_tokens"] / 2  # beginnings are read once


@pytest.fixture(scope="module")
def folder() -> Path:
    """Return the model as vLLM reads it, converted once."""
    judge, vllm = judge_real(), judge_cpu()
    if not vllm.is_complete():
        pytest.skip(f"there is no vLLM for CPUs in {vllm.path}: build it with `just judge-cpu`")
    if (free := find_free_memory() or 0) < VLLM_BYTES:
        pytest.skip(
            f"vLLM needs {VLLM_BYTES / 1024**3:.0f} GiB for the model in float32, and {free / 1024**3:.1f} are free"
        )
    folder = judge.path / "vllm"
    if not (folder / "tokenizer.json").exists():  # it is written last
        code = "import gguf_to_folder as g, pathlib, sys; g.convert(*map(pathlib.Path, sys.argv[1:]))"
        converting = [str(vllm.python), "-c", code, str(judge.model), str(folder)]
        subprocess.run(converting, cwd=ROOT / "tests" / "vllm", check=True, timeout=TIMEOUT)
    return folder


def test_vllm_serves_the_same_model(home: Path, folder: Path) -> None:
    stop_judge(home)
    settings = LaunchSettings.model_validate(
        {
            "python": str(judge_cpu().python),
            "model": str(folder),
            "served_name": NAME,
            "dtype": "float32",
            "max_model_len": 2048,
            "extra_args": ["--enforce-eager", "--max-num-seqs", "16", "--no-enable-chunked-prefill"],
            "environment": {
                "HF_HUB_OFFLINE": "1",
                "VLLM_CPU_KVCACHE_SPACE": "1",
                "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            },
        }
    )
    with launch_for_scope(settings, home) as judge:
        check_verdicts(judge.url)
