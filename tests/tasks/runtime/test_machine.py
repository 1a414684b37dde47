"""Processors and memory are those that this process may use, also in a container."""

from pathlib import Path

import pytest

from tasks.runtime import machine

MIB = 1024**2


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine, "_GROUP", tmp_path)
    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(8)), raising=False)
    return tmp_path


@pytest.mark.parametrize(("limit", "count"), [(None, 8), ("max 100000", 8), ("250000 100000", 2), ("50000 100000", 1)])
def test_a_quota_limits_the_processors(group: Path, limit: str | None, count: int) -> None:
    if limit is not None:
        (group / "cpu.max").write_text(f"{limit}\n")
    assert machine.count_processors() == count


def test_the_limit_of_a_container_limits_the_memory(group: Path) -> None:
    assert machine.find_free_memory() is None
    (group / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:    4096 kB\nHugePages_Total:       0\n")
    assert machine.find_free_memory() == 4 * MIB
    (group / "memory.max").write_text(f"{3 * MIB}\n")
    (group / "memory.current").write_text(f"{MIB}\n")
    assert machine.find_free_memory() == 2 * MIB
