"""Measure judges behind real vLLM servers: a language model, a verifier, a decision model, replicas, and vLLM alone.

    python -m benchmarks.gpu_judge --python .venv-vllm/bin/python --tokenizer MODEL     # 8 B, weights made up, on a GPU
    python -m benchmarks.gpu_judge --cpu                                                # small, without a GPU
    python -m benchmarks.gpu_judge --model models/writer --parts writer batches         # weights of your own

Speed needs no meaning: models have the architecture and the size of real ones, and weights that vLLM makes up. Parts:

- writer: a whole `assay run` with metrics that ask an 8 B language model for labels: rows per second, the share of the
  limit of its server, and the share of prompt tokens that its prefix cache had. Then tokens per second that it writes
- replicas: the same run with two servers
- verifier, decision: runs of faithfulness and context_recall whose judge classifies pairs, or answers typed questions
- batches: verdicts in requests of 16 conversations, and of one: how long both take, and how far they differ
- offline: the same verdicts by vLLM's own `LLM.chat`, without a server or this client

Prints the machine. Needs the rows of the peer benchmark in `../shared/peer` beside the repository, and a quiet machine.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.client_cpu import ROWS, rows
from benchmarks.judge_cost import ASSAY, run_measured
from benchmarks.targets import at_least, at_most
from metric_core.prompts.judge_questions import ChoiceQuestion, ask_claims, ask_verdict
from metric_core.prompts.prompt_set import load_prompts
from tasks.models.judges.openai import grouping
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.models.judges.openai.request_body import chat_messages
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.launch_options import LaunchSettings
from tasks.options.load_profile import load_profile
from tasks.processes.judge_service import launch_for_scope
from tests.vllm.build_judge_cpu import judge_cpu

PARTS = ("writer", "replicas", "verifier", "decision", "batches", "offline")
TARGET, TOLERANCE = 0.9, 1e-3
WARM_UP = [ask_verdict(f"The ferry sails {i} times a day.", "It sails at noon.") for i in range(8)]
LABELS = "context_precision,context_utilization,nv_accuracy,nv_context_relevance,nv_response_groundedness"
VERDICTS = "faithfulness,context_recall"
WRITTEN_TOKENS = 128
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
_VOCABULARY = 49_152

_LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
_QWEN = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}
_ROBERTA = {"architectures": ["RobertaForSequenceClassification"], "model_type": "roberta", "num_labels": 2}
_SMALL = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256}
_WIDE = {"head_dim": 64, "num_key_value_heads": 2}
_8B = {
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
}

CONFIGS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "writer": {
        "8b": {**_LLAMA, **_8B, "intermediate_size": 14336, "max_position_embeddings": 8192},
        "small": {**_LLAMA, **_SMALL, **_WIDE, "max_position_embeddings": 8192},
    },
    "decision": {
        "8b": {**_QWEN, **_8B, "num_hidden_layers": 36, "intermediate_size": 12288, "max_position_embeddings": 8192},
        "small": {**_QWEN, **_SMALL, **_WIDE, "max_position_embeddings": 8192},
    },
    "verifier": {
        "8b": {
            **_ROBERTA,
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "intermediate_size": 4096,
            "max_position_embeddings": 514,
        },
        "small": {**_ROBERTA, **_SMALL, "max_position_embeddings": 514},
    },
}
"""Role -> size -> configuration: Llama 3.1 8B, Qwen3 8B, RoBERTa-large."""

_PACKAGED = Path(__file__).parents[1] / "tasks" / "options" / "profiles"
PROFILES = {
    "verifier": Path(__file__).with_name("classifier.toml"),
    "decision": _PACKAGED / "pplx-decider-1.1.toml",
}

OFFLINE = """
import json, sys, time
from vllm import LLM, SamplingParams
from vllm.sampling_params import StructuredOutputsParams

def main():
    given = json.load(open(sys.argv[1]))
    llm = LLM(**given["engine"], disable_log_stats=True)
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


@dataclass(frozen=True)
class Bench:
    """A machine with vLLM, and the size of what is measured on it.

    Args:
        folder: Folder for models, homes and runs.
        python: Python interpreter of the environment with vLLM.
        tokenizer: Folder of a model whose tokenizer all models use; special tokens begin its replies.
        model: Folder of a language model with real weights, in place of one whose weights are made up.
        cpu: True for small models and the flags that vLLM needs on a CPU.
    """

    folder: Path
    python: Path
    tokenizer: Path
    model: Path | None
    cpu: bool
    rows: int
    questions: int

    @property
    def environment(self) -> dict[str, str]:
        """Variables of vLLM."""
        on_cpu = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"} if self.cpu else {}
        return {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", **on_cpu}

    def model_of(self, role: str) -> Path:
        """Return the folder of the model of a role, written if need be."""
        if role == "writer" and self.model is not None:
            return self.model
        folder = self.folder / f"model-{role}"
        if not folder.exists():
            folder.mkdir()
            for name in _TOKENIZER:
                if (self.tokenizer / name).is_file():
                    shutil.copy(self.tokenizer / name, folder)
            tokens = {"vocab_size": _VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 1}
            config = {**CONFIGS[role]["small" if self.cpu else "8b"], **tokens, "torch_dtype": self.dtype}
            (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return folder

    @property
    def dtype(self) -> str:
        """Type of the weights."""
        return "float32" if self.cpu else "bfloat16"

    def settings(self, role: str, replicas: int) -> LaunchSettings:
        """Return how a server of a role is launched, beside others on the same GPU."""
        extra = [] if role == "writer" and self.model is not None else ["--load-format", "dummy"]
        extra += ["--runner", "pooling"] if role == "verifier" else []
        if self.cpu:  # on a CPU, a seeded request with chunked prefill ends vLLM
            extra += ["--enforce-eager", "--max-num-seqs", "16"]
            extra += ["--no-enable-chunked-prefill"] if role == "writer" else []
        return LaunchSettings.model_validate(
            {
                "python": str(self.python),
                "model": str(self.model_of(role)),
                "served_name": role,
                "dtype": self.dtype,
                "max_model_len": 512 if role == "verifier" else 8192 if not self.cpu else 4096,
                "gpu_memory_utilization": None if self.cpu else 0.9 / replicas,
                "extra_args": extra,
                "environment": self.environment,
                "start_timeout": 1200,
            }
        )

    @contextmanager
    def serve(self, role: str, replicas: int = 1) -> Iterator[list[str]]:
        """Yield the URLs of running servers."""
        with ExitStack() as stack:
            settings = self.settings(role, replicas)
            homes = [self.folder / f"home-{role}-{number}" for number in range(replicas)]
            yield [stack.enter_context(launch_for_scope(settings, home)).url for home in homes]

    def run(self, name: str, metrics: str, judge: dict[str, Any]) -> dict[str, Any]:
        """Evaluate the rows by `assay run`, each time without cached answers; return its run.json."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(self.rows)), encoding="utf-8")
        config = {
            "source": str(folder / "rows.jsonl"),
            "metrics": metrics,
            "judge": {"backend": "server", **judge},
            "fail_on_failed": 1.0,
            "out": str(folder / "run"),
        }
        (folder / "assay.yaml").write_text(json.dumps(config), encoding="utf-8")
        home = {"ASSAY_HOME": str(folder / "home")}
        try:
            run_measured([ASSAY, "run", str(folder / "assay.yaml"), "--json"], home)
        finally:
            run_measured([ASSAY, "server", "stop"], home)
        manifest: dict[str, Any] = json.loads((folder / "run" / "run.json").read_text(encoding="utf-8"))
        return manifest


def print_run(name: str, manifest: Mapping[str, Any]) -> None:
    """Print a line per server of a run."""
    usage = manifest["usage"]
    batches = (manifest["judge_features"] or {}).get("batches", False)
    failed = f"{sum(usage['failed'].values()):,} of {usage['questions']:,} answers failed"
    for server in manifest["throughput"]["servers"]:
        cached = server["cached_tokens"]
        found = (
            "cached tokens unknown" if cached is None else f"{cached / server['prompt_tokens']:.0%} of tokens cached"
        )
        print(
            f"{name}: {server['rows_per_second']:.3g} rows/s, {server['requests']:,} requests, "
            f"{server['prompt_tokens']:,} prompt tokens, {found}, batches {batches}, "
            f"{server['in_flight']:.0f} in flight; {failed}",
            flush=True,
        )


def questions(number: int) -> list[ChoiceQuestion]:
    """Return verdicts on claims of references, passage by passage."""
    every = (
        ask_verdict(claim, passage)
        for row in rows(number)
        for passage in row["retrieved_contexts"]
        for claim in row["reference"].split(". ")
    )
    return list(islice(every, number))


def ask(url: str, asked: Sequence[ChoiceQuestion], most: int) -> tuple[float, list[Any]]:
    """Return the seconds that the client takes for verdicts, and the answers.

    Args:
        most: Conversations in a request.
    """
    usual = grouping.LABELS_PER_REQUEST
    grouping.LABELS_PER_REQUEST = most
    client = OpenAIJudge(ServerJudgeOptions(urls=(url,), timeout=600))
    try:
        client.choose(WARM_UP)
        start = time.monotonic()
        answers = client.choose(asked)
        return time.monotonic() - start, answers
    finally:
        client.close()
        grouping.LABELS_PER_REQUEST = usual


def measure_writing(url: str, number: int) -> None:
    """Print how fast replies are written, whose text is noise and is cut off."""
    client = OpenAIJudge(ServerJudgeOptions(urls=(url,), timeout=600, max_output_tokens=WRITTEN_TOKENS))
    start = time.monotonic()
    answers = client.generate([ask_claims(row["response"], row["user_input"]) for row in rows(number)])
    seconds = time.monotonic() - start
    client.close()
    tokens = sum(answer.usage.output_tokens for answer in answers)
    print(
        f"writer: writes {tokens / seconds:,.0f} tokens/s, {number} replies of {tokens / number:.0f} tokens", flush=True
    )


def measure_batches(url: str, asked: Sequence[ChoiceQuestion]) -> tuple[float, list[Any]]:
    """Print what requests with several conversations save; return the seconds with them, and the answers."""
    # Each with passages of its own: the second would find those of the first in the prefix cache.
    seconds, answers = ask(url, asked, 16)
    fresh = [ask_verdict(each.texts["claim"], f"Again. {each.texts['context']}") for each in asked]
    single, _ = ask(url, fresh, 1)
    _, alone = ask(url, asked, 1)
    pairs = [(a.probabilities, b.probabilities) for a, b in zip(answers, alone, strict=True)]
    far = max((abs(a["yes"] - b["yes"]) for a, b in pairs if a and b), default=0.0)
    for name, taken in (("16 conversations per request", seconds), ("one conversation per request", single)):
        print(f"{name}: {len(asked) / taken:.2f} verdicts/s, {taken:.1f} s", flush=True)
    print(at_most("largest difference of a probability", far, TOLERANCE), flush=True)
    return seconds, answers


def measure_offline(bench: Bench, asked: Sequence[ChoiceQuestion]) -> dict[str, Any]:
    """Return the seconds that `LLM.chat` takes for the same conversations, and its labels."""
    prompts = load_prompts("en")
    dummy = {} if bench.model is not None else {"load_format": "dummy"}
    small = {"enforce_eager": True, "max_num_seqs": 16, "enable_chunked_prefill": False} if bench.cpu else {}
    length = 4096 if bench.cpu else 8192
    content = {
        "engine": {
            "model": str(bench.model_of("writer")), "dtype": bench.dtype, "max_model_len": length, **dummy, **small
        },
        "conversations": [chat_messages(prompts.render(question), True) for question in asked],
        "warm_up": [chat_messages(prompts.render(question), True) for question in WARM_UP],
    }  # fmt: skip
    given, result, script = (bench.folder / name for name in ("given.json", "result.json", "offline.py"))
    given.write_text(json.dumps(content), encoding="utf-8")
    script.write_text(OFFLINE, encoding="utf-8")
    command = [str(bench.python), str(script), str(given), str(result)]
    subprocess.run(command, check=True, env={**os.environ, **bench.environment}, stdout=sys.stderr)
    done: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return done


def measure_writer(bench: Bench, parts: Sequence[str]) -> None:
    """Measure what needs a server of the language model, then the model without one."""
    asked, batches = questions(bench.questions), None
    if {"writer", "batches", "offline"}.intersection(parts):
        with bench.serve("writer") as (url,):
            if "writer" in parts:
                print_run("writer", bench.run("writer", LABELS, {"server": {"urls": [url], "timeout": 600}}))
                measure_writing(url, min(bench.rows, 64))
            if {"batches", "offline"}.intersection(parts):
                batches = measure_batches(url, asked)
    if "replicas" in parts:
        with bench.serve("writer", replicas=2) as urls:
            print_run("replica", bench.run("replicas", LABELS, {"server": {"urls": urls, "timeout": 600}}))
    if "offline" in parts and batches is not None:
        (seconds, answers), chat = batches, measure_offline(bench, asked)
        same = sum(answer.label == text for answer, text in zip(answers, chat["texts"], strict=True))
        print(f"LLM.chat: {len(asked) / chat['seconds']:.2f} verdicts/s, {same} of {len(asked)} labels equal")
        print(at_least("share of the throughput of LLM.chat", chat["seconds"] / seconds, TARGET), flush=True)


def measure_profile(bench: Bench, role: str) -> None:
    """Measure a verifier, whose made-up weights answer no canary and prefer no label."""
    lines = PROFILES[role].read_text(encoding="utf-8").splitlines()
    profile = bench.folder / f"{role}.toml"
    profile.write_text("\n".join(line for line in lines if not line.startswith("least_label_mass")), encoding="utf-8")
    assert load_profile(str(profile)).route == load_profile(str(PROFILES[role])).route
    with bench.serve(role) as urls:
        judge = {"profile": str(profile), "canaries": False, "server": {"urls": urls, "timeout": 600}}
        print_run(role, bench.run(role, VERDICTS, judge))


def describe_machine(cpu: bool) -> str:
    """Return the name of the processor that computes."""
    if cpu:
        names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        return f"{len(names)} x {names[0].partition(':')[2].strip()}" if names else platform.processor()
    command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Measure the parts, and print a line about each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--cpu", action="store_true", help="small models on the vLLM of `just judge-cpu`")
    parser.add_argument("--python", type=Path, default=judge_cpu().python)
    parser.add_argument(
        "--tokenizer", type=Path, default=judge_cpu().model, help="folder of a model with a chat template"
    )
    parser.add_argument("--model", type=Path, help="folder of a language model with real weights")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--questions", type=int, default=256)
    options = parser.parse_args()
    if not ROWS.is_file() or not options.python.is_file():
        sys.exit(f"needs {ROWS}, and a Python with vLLM: there is no {options.python}")
    print(f"{describe_machine(options.cpu)}, {'small' if options.cpu else '8 B'} models", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        facts = {name: value for name, value in vars(options).items() if name != "parts"}
        bench = Bench(folder=Path(folder), **facts)
        measure_writer(bench, options.parts)
        for role in PROFILES:
            if role in options.parts:
                measure_profile(bench, role)


if __name__ == "__main__":
    main()
