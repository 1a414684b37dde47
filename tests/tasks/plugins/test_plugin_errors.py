"""Tests of the errors for plugins that do not exist, are something else, or do not follow the protocol."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metric_core import reasons
from metric_core.errors import ConfigError, EmbedderError, JudgeError, MetricError, PluginError, UnknownMetricError
from metric_core.evidence import Evidence
from metric_core.prompts.judge_questions import ask_claims, ask_verdict
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus, Sample
from metric_core.stages import Product
from tasks.cache.codec import CHOICES
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer
from tasks.opening.custom_models import CustomEmbedder, CustomJudge, CustomRecognizer
from tasks.options.embedder_options import EmbedderSettings
from tasks.options.judge_options import JudgeSettings
from tasks.options.language_options import LanguageSettings
from tasks.options.metric_settings import MetricSettings
from tasks.plugins.load_object import Group, load_object
from tasks.plugins.metric_lookup import find_metric, parse_metric
from tests.tasks.plugins import sample_plugins

HERE = "tests.tasks.plugins.sample_plugins"
ROW = Sample(row_id="r1", response="It rains cats and dogs.")


def plugin_name(attribute: str) -> str:
    return f"{HERE}:{attribute}"


def test_a_metric_that_does_not_exist_or_is_not_a_metric() -> None:
    cases: list[tuple[str, str]] = [
        ("not a module:x", "is named module:attribute"),
        ("nowhere_at_all:X", "there is no module 'nowhere_at_all'. Install its package, run where its file is"),
        ("tests.tasks.plugins.missing:X", "there is no module 'tests.tasks.plugins.missing'"),
        (plugin_name("GOD"), "has no attribute 'GOD'. Did you mean GOOD?"),
        (f"{HERE}:", "has no attribute ''"),
        (plugin_name("NUMBER"), "is a int, wanted a metric_core.declarations.metric.Metric"),
        (
            plugin_name("TAKEN"),
            "has the name 'semantic_similarity', as the metric answer_similarity of rag-assay; rename it",
        ),
        (plugin_name("BAD_NAME"), "has the name 'Letters!', wanted lower-case letters"),
    ]
    for name, message in cases:
        with pytest.raises(PluginError) as caught:
            find_metric(name)
        assert message in str(caught.value), (name, message)


def test_a_module_that_raises_or_lacks_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raises_at_once.py").write_text("1 / 0", encoding="utf-8")
    (tmp_path / "ends_at_once.py").write_text("raise SystemExit(0)", encoding="utf-8")
    (tmp_path / "lacks_one.py").write_text("import no_such_package_anywhere", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginError, match="importing raises_at_once raises ZeroDivisionError: division by zero"):
        load_object(Group.METRICS, "raises_at_once:X")
    with pytest.raises(PluginError, match="importing ends_at_once raises SystemExit: 0"):
        load_object(Group.METRICS, "ends_at_once:X")
    with pytest.raises(PluginError, match="lacks_one needs the module 'no_such_package_anywhere'; install it"):
        load_object(Group.METRICS, "lacks_one:X")


def test_a_name_that_is_not_an_entry_point() -> None:
    with pytest.raises(UnknownMetricError, match="unknown metric 'brevity'"):
        find_metric("brevity")
    with pytest.raises(PluginError, match="no installed package has an entry point 'brevity' in the group rag_assay"):
        load_object(Group.JUDGES, "brevity")


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("NO_SCORE", "returned 0.5, wanted a Score (row 'r1')"),
        ("BROKEN", "raised ZeroDivisionError: no words (row 'r1')"),
        ("GOOD", "returned 23, but declares 0 to 10 (row 'r1')"),
    ],
)
def test_a_metric_that_violates_its_declarations(attribute: str, message: str) -> None:
    request = parse_metric(plugin_name(attribute))
    with pytest.raises(MetricError) as caught:
        request.score(Evidence(ROW))
    assert str(caught.value) == f"the metric letters ({plugin_name(attribute)}) {message}"


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("NO_COLUMN", "asks for the column 'answer', wanted some of user_input, response"),
        ("NO_PRODUCT", "asks for the product 'response claim'; there are: response claims"),
        ("NO_QUESTIONS", "must ask for the product 'ratings' if it has rating questions, and only then"),
    ],
)
def test_a_metric_with_invalid_columns_or_products(attribute: str, message: str) -> None:
    with pytest.raises(MetricError) as caught:
        assert parse_metric(plugin_name(attribute)).products
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("TWICE", "has two questions 'one'"),
        ("NO_RATING", "asks a question of kind verdict, wanted one of accuracy_1"),
        ("NO_VALUE", "asks for JSON without a property score or value"),
        ("NO_REQUEST", "wanted a RatingRequest"),
    ],
)
def test_a_metric_with_invalid_rating_questions(attribute: str, message: str) -> None:
    with pytest.raises(MetricError) as caught:
        parse_metric(plugin_name(attribute)).rating_requests(ROW)
    assert message in str(caught.value)


def test_a_metric_with_declarations_of_the_wrong_type() -> None:
    cases: list[tuple[str, str]] = [
        ("COLUMNS_TUPLE", "columns is ('response',), wanted a function; rag_assay.plugins.constant(...) creates one"),
        ("COLUMNS_TEXT", "returns 'response' as columns, wanted a tuple of columns"),
        ("PRODUCTS_NONE", "returns None as products, wanted a tuple of products"),
        ("BOUNDS_RAISE", "raised RuntimeError in bounds: no such thing"),
        ("BOUNDS_ONE", "returns (1,) as bounds, wanted the minimum and the maximum value, or None"),
        ("NO_NAME", "name is None, wanted a text"),
        ("PLAIN_PARAMETER", "the parameter most is 5, wanted a metric_core.declarations.metric.Parameter"),
        ("UPWARDS", "direction is 'higher', wanted a metric_core.records.Direction"),
        ("OWN_ALIAS", "'answer' is a column of samples; add it to columns, not to own_columns"),
        ("OWN_TYPE", "the column 'priority' has the type 5, wanted one of ColumnType.TEXT"),
        ("ASKS_NOTHING", "asks None, wanted a list of RatingRequest"),
    ]
    for attribute, message in cases:
        with pytest.raises(ConfigError) as caught:
            read_declarations(attribute)
        assert message in str(caught.value), (attribute, message)


def read_declarations(attribute: str) -> None:
    """Read all declarations of a metric, as a dry run does."""
    request = parse_metric(plugin_name(attribute))
    assert request.columns
    assert request.products is not None
    assert request.bounds
    request.rating_requests(ROW)


def test_products_may_be_named_by_their_text() -> None:
    assert parse_metric(plugin_name("TWICE")).products == (Product.RATINGS,)


def test_a_worker_with_other_code_refuses_the_metric() -> None:
    settings = MetricSettings.from_request(parse_metric(plugin_name("GOOD")))
    assert settings.request().metric.origin == plugin_name("GOOD")
    with pytest.raises(PluginError, match="has different code here than where the run was planned"):
        settings.model_copy(update={"code": "0" * 64}).request()


@pytest.mark.parametrize(
    ("says", "message"),
    [
        ("raise", "raised RuntimeError in choose: out of order"),
        ("nothing", "must give 1 answers in choose, one per question"),
        ("text", "gave 'yes' in choose, wanted a ChoiceAnswer"),
    ],
)
def test_a_judge_that_violates_the_protocol(says: str, message: str) -> None:
    with pytest.raises(JudgeError) as caught:
        CustomJudge(plugin_name("Judge"), {"says": says}).choose([ask_verdict("a", "b")])
    assert message in str(caught.value)


def test_an_answer_that_is_not_an_option_of_the_question_fails() -> None:
    received: list[Any] = []
    judge = CustomJudge(plugin_name("Judge"), {"says": "perhaps"})
    (answer,) = judge.choose([ask_verdict("a", "b")], lambda _position, answer: received.append(answer))
    assert answer.status is AnswerStatus.FAILED
    assert received == [answer]
    (written,) = judge.generate([ask_claims("a", None)])
    assert (written.status, written.reply) == (AnswerStatus.FAILED, "'perhaps'")


def judge_answering(monkeypatch: pytest.MonkeyPatch, answer: Any) -> CustomJudge:
    """Return a judge that gives this answer, which cannot be an option, because options are JSON."""
    monkeypatch.setattr(sample_plugins.FixedAnswer, "answer", answer)
    return CustomJudge(plugin_name("FixedAnswer"), {})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ChoiceAnswer("answered", ("yes",)), "gave 'answered' as status in choose, wanted AnswerStatus"),  # type: ignore[arg-type]
        (ChoiceAnswer(AnswerStatus.FAILED, reason=5), "gave 5 as reason in choose, wanted a text or None"),  # type: ignore[arg-type]
        (ChoiceAnswer(AnswerStatus.ANSWERED, ("yes",), usage=None), "gave None as usage in choose, wanted Usage"),  # type: ignore[arg-type]
        (ChoiceAnswer(AnswerStatus.ANSWERED, (["yes"],)), "raised TypeError in choose"),  # type: ignore[arg-type]
        (ChoiceAnswer(AnswerStatus.ANSWERED, ("yes",), {"yes": "high"}), "raised ValueError in choose"),  # type: ignore[dict-item]
    ],
)
def test_an_answer_with_fields_of_the_wrong_type(
    monkeypatch: pytest.MonkeyPatch, answer: ChoiceAnswer, message: str
) -> None:
    with pytest.raises(JudgeError) as caught:
        judge_answering(monkeypatch, answer).choose([ask_verdict("a", "b")])
    assert message in str(caught.value)


def test_every_failure_has_a_reason_and_a_missing_label_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    for status, votes in ((AnswerStatus.FAILED, ()), (AnswerStatus.ANSWERED, (None,)), (AnswerStatus.ANSWERED, ("?",))):
        (answer,) = judge_answering(monkeypatch, ChoiceAnswer(status, votes)).choose([ask_verdict("a", "b")])
        assert (answer.status, answer.reason) == (AnswerStatus.FAILED, reasons.NO_USABLE_REPLY)
    undefined = judge_answering(monkeypatch, GenerateAnswer(AnswerStatus.UNDEFINED)).generate([ask_claims("a", None)])
    assert undefined[0].reason == reasons.NEEDS_LANGUAGE_MODEL


def test_an_answer_can_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    likely: Any = np.float32(0.5)
    given = ChoiceAnswer(AnswerStatus.ANSWERED, ["yes"], {"yes": likely, "no": likely})  # type: ignore[arg-type]
    (answer,) = judge_answering(monkeypatch, given).choose([ask_verdict("a", "b")])
    assert CHOICES.encode(answer) is not None
    half = GenerateAnswer(AnswerStatus.ANSWERED, {"claims": ["\ud83d"]})
    assert judge_answering(monkeypatch, half).generate([ask_claims("a", None)])[0].status is AnswerStatus.FAILED


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        (
            "NoCallback",
            r"choose\(questions: .*\) -> Any cannot be called as choose\(questions, on_answer\): too many positional",
        ),
        ("NoMethod", r"fingerprint is '1', wanted a method fingerprint\(kind\)"),
    ],
)
def test_a_method_that_cannot_be_called_is_found_before_the_run(attribute: str, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        CustomJudge(plugin_name(attribute), {})


def test_a_judge_may_be_an_instance_and_its_options_and_code_are_in_its_fingerprint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert CustomJudge(plugin_name("READY"), {}).choose([ask_verdict("a", "b")])[0].label == "yes"
    with pytest.raises(PluginError, match="is an instance, so it takes no options"):
        CustomJudge(plugin_name("READY"), {"says": "no"})
    monkeypatch.setenv("CUSTOM_KEY", "one")
    prints = {
        CustomJudge(plugin_name("Judge"), options).fingerprint(QuestionKind.VERDICT)
        for options in ({}, {"says": "yes"}, {"says": "no"}, {"api_key": "env:CUSTOM_KEY"})
    }
    assert len(prints) == 4
    identity = CustomJudge(plugin_name("Judge"), {}).identity
    assert (identity.backend, identity.model) == (plugin_name("Judge"), "judge")
    assert identity.revision.startswith("1 (code ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": [1, 3]}, r"of shape \(1, 3\), wanted finite numbers of shape \(1, 2\)"),
        ({"fill": float("inf")}, "finite"),
    ],
)
def test_an_embedder_that_returns_something_else(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EmbedderError, match=message):
        CustomEmbedder(plugin_name("Embedder"), options).embed(["a"])
    assert CustomEmbedder(plugin_name("Embedder"), {}).embed([]).shape == (0, 2)


def test_a_recognizer_that_returns_something_else() -> None:
    with pytest.raises(PluginError, match="must give one list of Entity per text, 1 lists"):
        CustomRecognizer(plugin_name("Recognizer"), {}).entities(["a"])
    with pytest.raises(PluginError, match="has the identity 'me', wanted a RecognizerIdentity"):
        assert CustomRecognizer(plugin_name("NoIdentity"), {}).identity


def test_an_object_of_another_kind() -> None:
    with pytest.raises(PluginError, match="an object of type Embedder, which lacks can_answer, fingerprint, choose"):
        CustomJudge(plugin_name("Embedder"), {})
    with pytest.raises(PluginError, match="an object of type int, which lacks identity, embed"):
        CustomEmbedder(plugin_name("NUMBER"), {})
    with pytest.raises(PluginError, match=r"cannot be created: TypeError: .*unexpected keyword argument 'colour'"):
        CustomJudge(plugin_name("Judge"), {"colour": "red"})


@pytest.mark.parametrize(
    ("settings", "values", "message"),
    [
        (
            JudgeSettings,
            {"backend": "oracle"},
            "wanted 'builtin', 'server', 'verifier', 'scripted', module:attribute .* got 'oracle'",
        ),
        (EmbedderSettings, {"backend": "bert"}, "wanted 'minilm', 'huggingface', 'server', module:attribute"),
        (LanguageSettings, {"recognizer": "spacy"}, "wanted module:attribute for a plugin, got 'spacy'"),
        (JudgeSettings, {"options": {"api_key": "sk-1"}}, "the option api_key: a secret is given by reference"),
        (JudgeSettings, {"options": {"headers": {"Authorization": "sk-1"}}}, "the option Authorization: a secret"),
    ],
)
def test_settings_errors_name_the_expected_value(settings: Any, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings.model_validate(values)


def test_settings_with_different_options_differ() -> None:
    one, other = (JudgeSettings(backend="a:b", options={"least": least}) for least in (0.1, 0.2))
    assert len({one, other, one.model_copy()}) == 2


def test_an_option_that_names_no_secret_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(ConfigError, match="env:NO_SUCH_KEY names an environment variable that is not set"):
        CustomJudge(plugin_name("Judge"), {"api_key": "env:NO_SUCH_KEY"})
