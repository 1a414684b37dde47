"""The launched vLLM supports what the server judge needs: constrained replies with log-probabilities."""

import json
import math
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from metric_core.errors import JudgeError
from tasks.options.launch_options import LaunchSettings
from tasks.processes.judge_service import JudgeRecord, judge_status, launch_judge
from tasks.processes.system_processes import find_process
from tests.vllm.conftest import MODEL

PROMPT = "Paris is the capital of France. Is Paris in France? Answer yes or no."


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": PROMPT}]
    response = httpx.post(
        f"{url}/chat/completions", json={"model": MODEL, "messages": messages, "temperature": 0, **body}, timeout=600
    )
    assert response.status_code == 200, response.text
    return dict(response.json())


def test_server_lists_the_model_by_name(vllm_url: str) -> None:
    [model] = httpx.get(f"{vllm_url}/models").json()["data"]
    assert (model["id"], model["max_model_len"]) == (MODEL, 2048)


def test_status_reports_the_running_judge(vllm_judge: JudgeRecord, vllm_home: Path) -> None:
    status = judge_status(vllm_home)
    assert status.healthy
    assert status.record is not None
    assert (status.record.url, status.record.model) == (vllm_judge.url, MODEL)


def test_judge_belongs_to_the_process_that_launched_it(
    vllm_judge: JudgeRecord, vllm_settings: LaunchSettings, vllm_home: Path
) -> None:
    assert find_process(vllm_judge.pid) is not None
    with pytest.raises(JudgeError, match=f"belongs to the run of process {os.getpid()} and ends with it"):
        launch_judge(vllm_settings, vllm_home)


def test_a_choice_is_one_of_the_labels_with_log_probabilities(vllm_url: str) -> None:
    reply = post(
        vllm_url,
        {
            "structured_outputs": {"choice": ["yes", "no"]},
            "logprobs": True,
            "top_logprobs": 20,
            "max_completion_tokens": 8,
        },
    )
    [choice] = reply["choices"]
    assert choice["message"]["content"] in ("yes", "no")
    top = choice["logprobs"]["content"][0]["top_logprobs"]
    assert all(math.exp(entry["logprob"]) <= 1 for entry in top)
    assert {entry["token"].strip().lower()[:1] for entry in top} >= {"y", "n"}


def test_a_reply_fits_its_schema(vllm_url: str) -> None:
    schema = {
        "type": "object",
        "properties": {"claims": {"type": "array", "items": {"type": "string", "maxLength": 40}, "maxItems": 3}},
        "required": ["claims"],
        "additionalProperties": False,
    }
    json_schema = {"name": "claims", "schema": schema, "strict": True}
    reply = post(
        vllm_url, {"response_format": {"type": "json_schema", "json_schema": json_schema}, "max_completion_tokens": 200}
    )
    value = json.loads(reply["choices"][0]["message"]["content"])
    assert value.keys() == {"claims"}
    assert all(isinstance(claim, str) for claim in value["claims"])


def test_shared_prefixes_are_found_in_the_prefix_cache(vllm_url: str) -> None:
    context = "The ferry crosses the sound in forty minutes, every hour. " * 20
    replies = [
        post(vllm_url, {"messages": [{"role": "user", "content": f"{context}{end}"}], "max_completion_tokens": 1})
        for end in ("Is it late?", "Is it slow?")
    ]
    assert replies[1]["usage"]["prompt_tokens_details"]["cached_tokens"] > 200
