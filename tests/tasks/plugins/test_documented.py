"""Run the worked example of the pages on extending as it is written."""

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deployments.cli.main import main
from flows.publishing.metrics_file import describe_figures
from flows.results.run_result import open_run
from tasks.findings.table import listed_findings
from tasks.plugins import instantiate, load_object, metric_lookup

ROOT = Path(__file__).parents[3]
PAGES = ("extending-metrics", "extending")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROWS = [
    {
        "question": "Where do ships load?",
        "answer": "Ships load in Porto. Trains are painted green.",
        "contexts": ["All ships load in Porto, says the port authority."],
        "ground_truth": "Ships load in Porto.",
    },
    {
        "question": "Who runs the office?",
        "answer": "As the handbook says, Ana runs the Lisbon office.",
        "contexts": ["Handbook: Ana runs the Lisbon office.", "Nobody lives there."],
        "ground_truth": "Ana runs the Lisbon office in Porto.",
    },
]

CITED = {
    "question": "Where do ships load?",
    "answer": "All ships load in Porto [1]. The office is in Lisbon [2]. Trains are green [2]. Nobody knows why.",
    "contexts": [
        "All ships load in Porto, says the port authority.",
        "Handbook: Ana runs the Lisbon office.",
        "Nobody.",
    ],
}

POLITE = list(zip(ROWS, ("yes", "no"), strict=True))


def blocks(language: str) -> list[str]:
    pages = "\n".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in PAGES)
    return [text for kind, text in BLOCK.findall(pages) if kind == language]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a working folder with the files of the pages."""
    for text in [*blocks("python"), *blocks("toml")]:
        if name := re.match(r"# (\S+\.\w+)(?:, continued)?\n", text):
            with (tmp_path / name[1]).open("a", encoding="utf-8") as file:
                file.write(text)
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    (tmp_path / "answers.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "cited.jsonl").write_text(json.dumps(CITED) + "\n", encoding="utf-8")
    info = tmp_path / "house_findings-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house_findings\nVersion: 1.0\n", encoding="utf-8")
    (point,) = (text for text in blocks("toml") if "rag_assay.findings" in text)
    written = point.replace('project.entry-points."rag_assay.findings"', "rag_assay.findings").replace('"', "")
    (info / "entry_points.txt").write_text(written, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.syspath_prepend(str(tmp_path))
    listed_findings.cache_clear()
    monkeypatch.setenv("HOUSE_KEY", "a-house-secret")
    yield tmp_path
    listed_findings.cache_clear()
    for module in ("citations", "house", "house_findings", "house_models"):
        sys.modules.pop(module, None)
    for cached in (load_object.load_object, metric_lookup._find_custom, instantiate._create_once):
        cached.cache_clear()


@pytest.fixture
def assay(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def call(line: str) -> None:
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code

    return call


def cells(run: str) -> dict[tuple[int, str], Any]:
    table = open_run(run).scores().to_pylist()
    order = list(dict.fromkeys(row["row_id"] for row in table))
    return {(order.index(row["row_id"]), row["metric"]): row["value"] for row in table}


@pytest.mark.prefect
@pytest.mark.models
@pytest.mark.usefixtures("prefect_stub", "example")
def test_the_metric_of_the_first_page_counts_words(assay: Callable[[str], None], tmp_path: Path) -> None:
    page = (ROOT / "docs" / "start" / "extending-it.md").read_text(encoding="utf-8")
    (_, code), (_, command) = BLOCK.findall(page)
    (tmp_path / "house.py").write_text(code, encoding="utf-8")
    assay(f"{command.strip()} --out runs/words")
    assert [cells("runs/words")[row, "response_length"] for row in (0, 1)] == [8, 9]


@pytest.mark.prefect
@pytest.mark.models
@pytest.mark.usefixtures("prefect_stub", "example")
def test_the_commands_of_the_page_give_the_documented_results(
    assay: Callable[[str], None], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    first, cited, second = blocks("bash")
    script = [{"kind": "house.polite", "texts": [row["answer"]], "answer": says} for row, says in POLITE]
    (tmp_path / "script.json").write_text(json.dumps(script), encoding="utf-8")
    (tmp_path / "polite.toml").write_text(
        'source = "answers.jsonl"\nmetrics = ["house:POLITENESS"]\nout = "runs/polite"\n'
        '[judge]\nbackend = "scripted"\nscript = "script.json"\n',
        encoding="utf-8",
    )
    assay("assay run polite.toml")
    assert cells("runs/polite") == {(0, "politeness"): 1.0, (1, "politeness"): 0.0}
    assay(cited.strip())
    precision = pytest.approx(0.65, abs=0.1)  # the mean probability of the built-in judge
    assert cells("runs/cited") == {
        (0, "cited_support"): precision,
        (0, "cited_share"): pytest.approx(2 / 3),
        (0, "contexts_per_sentence"): 0.75,
    }
    asked = open_run("runs/cited").table("verdicts").to_pylist()
    assert [(row["premise"], row["verdict"]) for row in asked] == [("context:0", 1), ("context:1", 1), ("context:1", 0)]
    capsys.readouterr()
    assay(first.strip())
    assert {metric for _, metric in cells("runs/one")} == {"faithfulness", "unsupported_claims(most=5)"}
    shown = capsys.readouterr().out
    assert "unsupported_claims(most=5) ↓" in shown
    longest = max(len(row["answer"]) for row in ROWS)
    said = f"the longest answer has {longest} characters"
    assert said in shown
    assert f"<h3>Long answers</h3><p>{said}</p>" in Path("runs/one/report.html").read_text(encoding="utf-8")
    assert (
        f'longest_answer_characters{{deployment="",index=""}} {longest}.0'
        in describe_figures(Path("runs/one")).decode()
    )
    assay(second.strip())
    found = cells("runs/two")
    assert [found[row, "unsupported_claims"] for row in (0, 1)] == [1.0, 0.0]
    assert [found[row, "names_source"] for row in (0, 1)] == [0.0, 1.0]
    assert [found[row, "context_entity_recall"] for row in (0, 1)] == [1.0, 0.5]
    assert 0 < found[0, "answer_similarity"] < 1
    manifest = json.loads((tmp_path / "runs/two/run.json").read_text(encoding="utf-8"))
    assert manifest["judge"]["backend"] == "house_models:OverlapJudge"
    assert manifest["recognizer"]["model"] == "gazetteer"
    asked = manifest["usage"]["questions"]
    assay(f"{second.strip()} --json")
    again = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))
    assert (again["usage"]["questions"], again["usage"]["stored"]) == (asked, asked)
    assay("assay rerun runs/two --stage ratings --rows all --out runs/three")
    assert cells("runs/three") == found
    report = (tmp_path / "runs/two/report.html").read_text(encoding="utf-8")
    assert "unsupported_claims" in report
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in written if b"a-house-secret" in path.read_bytes()] == []


@pytest.mark.usefixtures("example")
def test_a_formula_can_be_tested_without_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tried,) = [text for text in blocks("python") if not text.startswith("# ")]
    exec(compile(tried, PAGES[0], "exec"), {})


def test_entry_points_of_a_package_are_found_by_name(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tomllib

    project = tomllib.loads((example / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = example / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(points), encoding="utf-8")
    monkeypatch.syspath_prepend(str(example))
    assert metric_lookup.parse_metric("Unsupported-Claims(most=2)").key == "unsupported_claims(most=2)"
    assert [metric.name for metric in metric_lookup.packaged_metrics()] == ["unsupported_claims"]
    plugin = instantiate.instantiate(load_object.Group.JUDGES, "overlap", {"least": 0.9})
    assert plugin.obj.fingerprint("verdict") == "overlap 1 0.9"
