"""A real vLLM, launched once for all tests as a user would launch it, and stopped at the end."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from tasks.options.launch_options import LaunchSettings
from tasks.processes.judge_service import JudgeRecord, launch_for_scope
from tasks.processes.system_processes import group_members
from tests.vllm.build_judge_cpu import judge_cpu

MARKER = "vllm"
HERE = Path(__file__).parent
MODEL = "smollm2-135m"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of these tests."""
    config.addinivalue_line("markers", f"{MARKER}: needs a real vLLM, which `just judge-cpu` builds (minutes)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark these tests, and skip them unless they are selected and the judge is built."""
    reason = None
    if MARKER not in str(config.option.markexpr):
        reason = "takes minutes and 8 GB of memory: run it with `just test-vllm`"
    elif not judge_cpu().is_complete():
        reason = f"there is no vLLM for CPUs in {judge_cpu().path}: build it with `just judge-cpu`"
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(MARKER)
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def vllm_settings() -> LaunchSettings:
    """Return launch settings for vLLM on two cores, with a model that answers at chance level."""
    return LaunchSettings.model_validate(
        {
            "python": str(judge_cpu().python),
            "model": str(judge_cpu().model),
            "served_name": MODEL,
            "dtype": "float32",
            "max_model_len": 2048,
            # On a CPU, a seeded request with chunked prefill ends vLLM.
            "extra_args": ["--enforce-eager", "--max-num-seqs", "32", "--no-enable-chunked-prefill"],
            "environment": {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "0-1"},
            "start_timeout": 600,
        }
    )


@pytest.fixture(scope="session")
def vllm_home() -> Iterator[Path]:
    """Yield the home of the judge, locked against other test runs because two judges do not fit into memory."""
    home = judge_cpu().path / "home"
    with FileLock(judge_cpu().path / "tests.lock"):
        yield home


@pytest.fixture(scope="session")
def vllm_judge(vllm_settings: LaunchSettings, vllm_home: Path) -> Iterator[JudgeRecord]:
    """Yield the launched vLLM, which ends with the process of the tests, however that process ends."""
    with launch_for_scope(vllm_settings, vllm_home) as judge:
        yield judge
    assert not any(group_members(judge.pid))


@pytest.fixture(scope="session")
def vllm_url(vllm_judge: JudgeRecord) -> str:
    """Return the `/v1` URL of the launched vLLM."""
    return vllm_judge.url
