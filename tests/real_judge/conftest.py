"""The real judge, launched once for all tests by the functions behind `assay judge start`, and stopped at the end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.options.launch_options import LaunchSettings
from tasks.processes.judge_service import JudgeRecord, launch_judge, stop_judge
from tests.real_judge.judge_real import judge_real

MARKER = "real_judge"
HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of these tests."""
    config.addinivalue_line("markers", f"{MARKER}: needs a real language model, which `just judge-real` fetches")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark these tests, and skip them unless they are selected and the judge is there."""
    reason: str | None = "takes up to 20 minutes of two processors: run it with `just test-judge-real`"
    if MARKER in str(config.option.markexpr):
        reason = judge_real().find_problem()
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.name != "test_fetching.py":
            item.add_marker(MARKER)
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield an empty home; judges that were launched in it are stopped."""
    folder = tmp_path_factory.mktemp("real")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", str(folder))
        patch.setenv("PREFECT_LOGGING_LEVEL", "CRITICAL")
        yield folder
    stop_judge(folder)


@pytest.fixture(scope="module")
def llama(home: Path) -> JudgeRecord:
    """Return the model served by llama.cpp."""
    return launch_judge(LaunchSettings(python=str(judge_real().python), model=str(judge_real().model)), home)
