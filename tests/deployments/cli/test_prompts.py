"""`assay prompts`: packaged prompts can be exported, changed and used."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from deployments.cli.main import app
from metric_core.errors import ConfigError
from metric_core.prompts.prompt_set import load_prompts
from metric_core.question_kinds import QuestionKind
from tasks.options.judge_server_options import ServerJudgeOptions

URLS = ("http://localhost:1/v1",)


def assay(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["prompts", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


@pytest.mark.parametrize("language", ["en", "de"])
def test_exported_prompts_are_the_packaged_ones(tmp_path: Path, language: str) -> None:
    folder, chosen = tmp_path / "prompts", () if language == "en" else ("--language", language)
    assert f"{len(QuestionKind) + 3} prompts in {folder}" in assay("export", str(folder), *chosen)
    assert load_prompts(folder).wordings == load_prompts(language).wordings


def test_a_changed_prompt_is_found_and_changes_its_digest_alone(tmp_path: Path) -> None:
    assay("export", str(tmp_path))
    verdict = tmp_path / "verdict.txt"
    verdict.write_text(verdict.read_text(encoding="utf-8").replace("support", "prove"), encoding="utf-8")
    options = ServerJudgeOptions(urls=URLS, prompts=str(tmp_path))
    own, packaged = load_prompts(options.prompt_source), load_prompts(ServerJudgeOptions(urls=URLS).prompt_source)
    changed = [kind for kind in QuestionKind if own.digest(kind) != packaged.digest(kind)]
    assert changed == [QuestionKind.VERDICT]


def test_bad_prompts_and_folders_are_refused(tmp_path: Path) -> None:
    assay("export", str(tmp_path))
    with pytest.raises(ConfigError, match="exists and is not an empty folder"):
        assay("export", str(tmp_path))
    with pytest.raises(ConfigError, match="there are no prompts in 'xx'; there are: de, en, en-short, es, fr, hi"):
        assay("export", str(tmp_path / "new"), "--language", "xx")
    (tmp_path / "claims.txt").write_text("Split {text}.", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"claims\.txt: \{question\} must occur once"):
        load_prompts(tmp_path)
    (tmp_path / "claims.txt").unlink()
    with pytest.raises(ConfigError, match=r"claims\.txt is missing"):
        load_prompts(tmp_path)
