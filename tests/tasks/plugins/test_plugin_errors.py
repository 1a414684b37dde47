"""What is said about objects of a user's own that are not there, are something else, or do not hold to the protocol."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metric_core import reasons
from metric_core.errors import ConfigError, EmbedderError, JudgeError, PluginError, UnknownMetricError
from metric_core.evidence import Evidence
from metric_core.judge_questions import QuestionKind, ask_claims, ask_verdict
from metric_core.records import AnswerStatus, Sample
from metric_core.stages import Product
from tasks.cache.codec import CHOICES
from tasks.judges.protocol import ChoiceAnswer, GenerateAnswer
from tasks.models.custom_models import CustomEmbedder, CustomJudge, CustomRecognizer
from tasks.options.model_options import EmbedderSettings, JudgeSettings, LanguageSettings, MetricSettings
from tasks.plugins.load_object import Group, load_object
from tasks.plugins.metric_lookup import find_metric, parse_metric
from tests.tasks.plugins import sample_plugins

HERE = "tests.tasks.plugins.sample_plugins"
ROW = Sample(row_id="r1", response="It rains cats and dogs.")


def named(attribute: str) -> str:
    return f"{HERE}:{attribute}"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("not a module:x", "is named module:attribute"),
        ("nowhere_at_all:X", "there is no module 'nowhere_at_all'. Install its package, run where its file is"),
        ("tests.tasks.plugins.missing:X", "there is no module 'tests.tasks.plugins.missing'"),
        (named("GOD"), "has no attribute 'GOD'. Did you mean GOOD?"),
        (f"{HERE}:", "has no attribute ''"),
        (named("NUMBER"), "is a int, wanted a metric_core.metric.Metric"),
        (named("TAKEN"), "has the name 'semantic_similarity', as the metric answer_similarity of rag-assay; rename it"),
        (named("SHOUTED"), "has the name 'Letters!', wanted small letters"),
    ],
)
def test_a_metric_that_is_not_there_or_no_metric(name: str, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        find_metric(name)
    assert message in str(caught.value)


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


def test_a_name_that_no_package_gives() -> None:
    with pytest.raises(UnknownMetricError, match="unknown metric 'brevity'"):
        find_metric("brevity")
    with pytest.raises(PluginError, match="no installed package has an entry point 'brevity' in the group rag_assay"):
        load_object(Group.JUDGES, "brevity")


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("NO_COLUMN", "asks for the column 'answer', wanted some of user_input, response"),
        ("NO_SCORE", "gave 0.5 for the row 'r1', wanted a Score"),
        ("BROKEN", "raised ZeroDivisionError on the row 'r1': no words"),
        ("GOOD", "gave 23 for the row 'r1', but declares 0 to 10"),
    ],
)
def test_a_metric_that_does_not_do_what_it_declares(attribute: str, message: str) -> None:
    request = parse_metric(named(attribute))
    with pytest.raises(PluginError) as caught:
        request.score(Evidence(ROW))
    assert str(caught.value) == f"the metric letters ({named(attribute)}) {message}" or message in str(caught.value)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("NO_PRODUCT", "asks for the product 'response claim'; there are: response claims"),
        ("NO_QUESTIONS", "must ask for the product 'ratings' if it has rating questions, and only then"),
    ],
)
def test_a_metric_whose_products_do_not_fit(attribute: str, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        assert parse_metric(named(attribute)).products
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
def test_a_metric_whose_questions_can_not_be_asked(attribute: str, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        parse_metric(named(attribute)).rating_requests(ROW)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("COLUMNS_TUPLE", "columns is ('response',), wanted a function; metric_core.metric.constant(...) makes one"),
        ("COLUMNS_TEXT", "gives 'response' as columns, wanted a tuple of them"),
        ("PRODUCTS_NONE", "gives None as products, wanted a tuple of them"),
        ("BOUNDS_RAISE", "raised RuntimeError in bounds: no such thing"),
        ("BOUNDS_ONE", "gives (1,) as bounds, wanted the least and the greatest value, or None"),
        ("NO_NAME", "name is None, wanted a text"),
        ("PLAIN_PARAMETER", "the parameter most is 5, wanted a metric_core.metric.Parameter"),
        ("UPWARDS", "direction is 'higher', wanted a metric_core.records.Direction"),
        ("ASKS_NOTHING", "asks None, wanted a list of RatingRequest"),
    ],
)
def test_a_metric_whose_declarations_are_of_another_kind(attribute: str, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        use(attribute)
    assert message in str(caught.value)


def use(attribute: str) -> None:
    """Looks at all that a metric declares, as a plan does."""
    request = parse_metric(named(attribute))
    assert request.columns
    assert request.products is not None
    assert request.bounds
    request.rating_requests(ROW)


def test_products_may_be_named_by_their_text() -> None:
    assert parse_metric(named("TWICE")).products == (Product.RATINGS,)


def test_a_worker_with_other_code_refuses_the_metric() -> None:
    settings = MetricSettings.of(parse_metric(named("GOOD")))
    assert settings.request().metric.origin == named("GOOD")
    with pytest.raises(PluginError, match="has other code here than where the run was planned"):
        settings.model_copy(update={"code": "0" * 64}).request()


@pytest.mark.parametrize(
    ("says", "message"),
    [
        ("raise", "raised RuntimeError in choose: out of order"),
        ("nothing", "must give 1 answers in choose, one a question"),
        ("text", "gave 'yes' in choose, wanted a ChoiceAnswer"),
    ],
)
def test_a_judge_that_does_not_hold_to_the_protocol(says: str, message: str) -> None:
    with pytest.raises(JudgeError) as caught:
        CustomJudge(named("Judge"), {"says": says}).choose([ask_verdict("a", "b")])
    assert message in str(caught.value)


def test_an_answer_that_the_question_does_not_have_is_a_failed_one() -> None:
    kept: list[Any] = []
    judge = CustomJudge(named("Judge"), {"says": "perhaps"})
    (answer,) = judge.choose([ask_verdict("a", "b")], lambda _position, answer: kept.append(answer))
    assert answer.status is AnswerStatus.FAILED
    assert kept == [answer]
    (written,) = judge.generate([ask_claims("a", None)])
    assert (written.status, written.reply) == (AnswerStatus.FAILED, "'perhaps'")


def answering(monkeypatch: pytest.MonkeyPatch, answer: Any) -> CustomJudge:
    """A judge that gives this answer; options of own judges are JSON, so that it can not be one."""
    monkeypatch.setattr(sample_plugins.Answering, "answer", answer)
    return CustomJudge(named("Answering"), {})


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
def test_an_answer_of_other_parts(monkeypatch: pytest.MonkeyPatch, answer: ChoiceAnswer, message: str) -> None:
    with pytest.raises(JudgeError) as caught:
        answering(monkeypatch, answer).choose([ask_verdict("a", "b")])
    assert message in str(caught.value)


def test_every_failure_has_a_reason_and_no_label_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for status, votes in ((AnswerStatus.FAILED, ()), (AnswerStatus.ANSWERED, (None,)), (AnswerStatus.ANSWERED, ("?",))):
        (answer,) = answering(monkeypatch, ChoiceAnswer(status, votes)).choose([ask_verdict("a", "b")])
        assert (answer.status, answer.reason) == (AnswerStatus.FAILED, reasons.NO_USABLE_REPLY)
    undefined = answering(monkeypatch, GenerateAnswer(AnswerStatus.UNDEFINED)).generate([ask_claims("a", None)])
    assert undefined[0].reason == reasons.NEEDS_LANGUAGE_MODEL


def test_an_answer_can_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    likely: Any = np.float32(0.5)
    given = ChoiceAnswer(AnswerStatus.ANSWERED, ["yes"], {"yes": likely, "no": likely})  # type: ignore[arg-type]
    (answer,) = answering(monkeypatch, given).choose([ask_verdict("a", "b")])
    assert CHOICES.encode(answer) is not None
    half = GenerateAnswer(AnswerStatus.ANSWERED, {"claims": ["\ud83d"]})
    assert answering(monkeypatch, half).generate([ask_claims("a", None)])[0].status is AnswerStatus.FAILED


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        (
            "Deaf",
            r"choose\(questions: .*\) -> Any can not be called as choose\(questions, on_answer\): too many positional",
        ),
        ("NoMethod", r"fingerprint is '1', wanted a method fingerprint\(kind\)"),
    ],
)
def test_a_method_that_can_not_be_called_is_found_before_the_run(attribute: str, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        CustomJudge(named(attribute), {})


def test_a_judge_may_be_ready_and_its_options_and_code_are_in_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CustomJudge(named("READY"), {}).choose([ask_verdict("a", "b")])[0].label == "yes"
    with pytest.raises(PluginError, match="is made already, so it takes no options"):
        CustomJudge(named("READY"), {"says": "no"})
    monkeypatch.setenv("OWN_KEY", "one")
    prints = {
        CustomJudge(named("Judge"), options).fingerprint(QuestionKind.VERDICT)
        for options in ({}, {"says": "yes"}, {"says": "no"}, {"api_key": "env:OWN_KEY"})
    }
    assert len(prints) == 4
    identity = CustomJudge(named("Judge"), {}).identity
    assert (identity.backend, identity.model) == (named("Judge"), "judge")
    assert identity.revision.startswith("1 (code ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": [1, 3]}, r"of shape \(1, 3\), wanted finite numbers of shape \(1, 2\)"),
        ({"fill": float("inf")}, "finite"),
    ],
)
def test_an_embedder_that_gives_something_else(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EmbedderError, match=message):
        CustomEmbedder(named("Embedder"), options).embed(["a"])
    assert CustomEmbedder(named("Embedder"), {}).embed([]).shape == (0, 2)


def test_a_recogniser_that_gives_something_else() -> None:
    with pytest.raises(PluginError, match="must give a list of Entity a text, 1 lists"):
        CustomRecognizer(named("Recognizer"), {}).entities(["a"])
    with pytest.raises(PluginError, match="has the identity 'me', wanted a RecognizerIdentity"):
        assert CustomRecognizer(named("NoIdentity"), {}).identity


def test_an_object_of_another_kind() -> None:
    with pytest.raises(PluginError, match="an object of type Embedder, which lacks can_answer, fingerprint, choose"):
        CustomJudge(named("Embedder"), {})
    with pytest.raises(PluginError, match="an object of type int, which lacks identity, embed"):
        CustomEmbedder(named("NUMBER"), {})
    with pytest.raises(PluginError, match=r"can not be made: TypeError: .*unexpected keyword argument 'colour'"):
        CustomJudge(named("Judge"), {"colour": "red"})


@pytest.mark.parametrize(
    ("settings", "values", "message"),
    [
        (
            JudgeSettings,
            {"backend": "oracle"},
            "wanted 'builtin', 'server', 'scripted', module:attribute .* got 'oracle'",
        ),
        (EmbedderSettings, {"backend": "bert"}, "wanted 'minilm', 'huggingface', 'server', module:attribute"),
        (LanguageSettings, {"recognizer": "spacy"}, "wanted module:attribute for one of your own, got 'spacy'"),
        (JudgeSettings, {"options": {"api_key": "sk-1"}}, "the option api_key: a secret is named, not written"),
        (JudgeSettings, {"options": {"headers": {"Authorization": "sk-1"}}}, "the option Authorization: a secret"),
    ],
)
def test_settings_say_what_they_want(settings: Any, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings.model_validate(values)


def test_settings_with_options_can_be_told_apart() -> None:
    one, other = (JudgeSettings(backend="a:b", options={"least": least}) for least in (0.1, 0.2))
    assert len({one, other, one.model_copy()}) == 2


def test_an_option_that_names_no_secret_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(ConfigError, match="env:NO_SUCH_KEY names an environment variable that is not set"):
        CustomJudge(named("Judge"), {"api_key": "env:NO_SUCH_KEY"})
