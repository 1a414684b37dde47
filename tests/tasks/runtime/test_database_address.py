"""Addresses of a cache: the allowed forms, and refused passwords."""

from pathlib import Path

import pytest

from metric_core.errors import ConfigError
from tasks.runtime.database_address import engine_url, normalize_address


def test_a_file_is_the_same_in_every_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for named in ("answers.db", f"{tmp_path}/answers.db", "sqlite:///answers.db"):
        assert normalize_address(named) == str(tmp_path / "answers.db")
    assert normalize_address(normalize_address("answers.db")) == normalize_address("answers.db")
    assert engine_url(normalize_address("answers.db")) == f"sqlite:///{tmp_path}/answers.db"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_a_server(scheme: str) -> None:
    address = normalize_address(f"{scheme}://assay@db.example:5433/answers?sslmode=require")
    assert engine_url(address) == "postgresql+psycopg://assay@db.example:5433/answers?sslmode=require"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://assay:s3cret@db.example/answers",
        "postgresql://assay:s3/cr@et@db.example/answers",
        "postgresql://db.example/answers?password=s3cret",
        "postgresql://db.example/answers?user=a&sslpassword=s3cret",
    ],
)
def test_a_password_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match="PGPASSWORD") as caught:
        normalize_address(url)
    assert "s3" not in str(caught.value)


@pytest.mark.parametrize("named", ["mysql://db.example/answers", "https://db.example", "", "sqlite:///", "sqlite://"])
def test_anything_else_is_refused(named: str) -> None:
    with pytest.raises(ConfigError, match="SQLite file or a URL like postgresql"):
        normalize_address(named)
