"""Verifiers behind a server: what is asked, how replies are read, and what is refused."""

import json
from typing import Any

import pytest

from metric_core.errors import JudgeError
from metric_core.prompts.judge_questions import ask_refusal, ask_verdict
from metric_core.question_kinds import ON_CLAIMS, QuestionKind
from metric_core.records import AnswerStatus, VerdictKind
from tasks.models.judges.answer_cells import verdict_cells
from tasks.models.judges.openai.context_window import TOO_LONG
from tasks.models.judges.verifiers.probabilities import CUT_BY_SERVER
from tasks.models.judges.verifiers.prompt_formats import DECISION_ROUTES
from tasks.options.load_profile import load_profile, profile_names
from tasks.options.profile import Profile
from tasks.reports.run.verdict_view import verdict_view
from tests.tasks.models.judges.verifiers.conftest import OpenVerifier, Serve
from tests.tasks.models.judges.verifiers.random_models import CLASSIFIER
from tests.tasks.models.judges.verifiers.verifier_server import SUPPORTED, UNSUPPORTED, words_rule

SERVED = [*(name for name in profile_names() if load_profile(name).route), CLASSIFIER]
SCORE = Profile.model_validate(
    {
        "name": "mine",
        "version": 1,
        "model": "m",
        "source": "s",
        "license": "MIT",
        "languages": ["en"],
        "route": "score",
        "form": {"kind": "pair", "first": "{premise}", "second": "{claim}"},
        "reading": {"kind": "score"},
        "chunks": {"window": 512},
    }
)
DECISIONS = load_profile("pplx-decider-1.1").model_copy(update={"route": "decisions"})
FACT = "The keeper of Stensund is called Ragna."


@pytest.mark.parametrize("name", [*SERVED, "score", "decisions"])
def test_every_route_gives_verdicts_with_probabilities(serve: Serve, open_verifier: OpenVerifier, name: str) -> None:
    profile = {"score": SCORE, "decisions": DECISIONS}.get(name) or load_profile(name)
    judge = open_verifier(serve(profile))
    questions = [ask_verdict("It rains.", "It rains here."), ask_verdict("It snows.", "It rains here.")]

    answers = judge.choose(questions)

    assert [answer.label for answer in answers] == ["yes", "no"]
    assert answers[0].probabilities == {"yes": SUPPORTED, "no": 1 - SUPPORTED}
    assert answers[1].probabilities == {"yes": UNSUPPORTED, "no": 1 - UNSUPPORTED}
    assert judge.features.canaries == "passed"
    assert judge.features.tokenizer
    assert all(answer.usage.prompt_tokens for answer in answers[:1])


@pytest.mark.parametrize("profile", [load_profile("pplx-decider-1.1"), DECISIONS], ids=["systemone", "decisions"])
def test_claims_on_one_premise_share_a_request(serve: Serve, open_verifier: OpenVerifier, profile: Profile) -> None:
    server = serve(profile)
    judge = open_verifier(server)
    server.requests.clear()

    answers = judge.choose(
        [ask_verdict(claim, premise) for claim in ("Rain.", "Snow.") for premise in ("Rain.", "Hail.")]
    )

    assert [answer.label for answer in answers] == ["yes", "no", "no", "no"]
    bodies = server.bodies(f"/v1/{profile.route}")
    assert sorted(body["state"] if "state" in body else body["input"] for body in bodies) == ["Hail.", "Rain."]
    assert [len(body["questions"]) for body in bodies] == [2, 2]


def test_a_decision_model_whose_answers_depend_on_their_order_fails(serve: Serve, open_verifier: OpenVerifier) -> None:
    with pytest.raises(JudgeError, match=r"the probability of a claim differs by 0\.1.* with its place in a request"):
        open_verifier(serve("pplx-decider-1.1", drift=0.04))
    assert open_verifier(serve("pplx-decider-1.1", drift=0.001)).features.canaries == "passed"


def test_a_model_that_reads_other_questions_of_a_request_fails(serve: Serve, open_verifier: OpenVerifier) -> None:
    def joined(content: dict[str, Any]) -> dict[str, Any]:
        answers = content["answers"]
        moved = {name: {"noul": max(each["noul"] - 0.1, 0.0)} for name, each in answers.items()}
        return content | {"answers": moved} if len(answers) > 1 else content

    with pytest.raises(JudgeError, match=r"differs by 0\.100 with the other questions of a request"):
        open_verifier(serve("pplx-decider-1.1", change=joined))


@pytest.mark.parametrize("route", DECISION_ROUTES)
def test_typed_questions_go_to_the_endpoint_that_the_server_has(
    serve: Serve, open_verifier: OpenVerifier, route: str
) -> None:
    probed = load_profile("decision")
    server = serve(probed.model_copy(update={"route": route}))

    judge = open_verifier(server, profile=probed)

    (answer,) = judge.choose([ask_verdict("It rains.", "It rains here.")])
    assert answer.probabilities == {"yes": SUPPORTED, "no": 1 - SUPPORTED}
    assert judge.features.route == route
    # Both endpoints write their own prompts, so their answers are not those of the same judge.
    assert judge.features.digest == probed.model_copy(update={"route": route}).digest() != probed.digest()


def test_a_server_without_typed_questions_is_refused(serve: Serve, open_verifier: OpenVerifier) -> None:
    with pytest.raises(JudgeError, match=r"no endpoint of the server .*/v1/decisions: .*; /v1/systemone: "):
        open_verifier(serve("minicheck-7b"), profile=load_profile("decision"))


@pytest.mark.parametrize(("tokenizer", "window"), [(True, 2048), (False, 1024)])
def test_a_server_that_reads_the_first_tokens_only_fails(
    serve: Serve, open_verifier: OpenVerifier, tokenizer: bool, window: int
) -> None:
    server = serve("decision", window=window, cuts=True, told_window=8192, tokenizer=tokenizer)
    server.change = lambda content: content | {"usage": {}}
    with pytest.raises(JudgeError, match="Only those with long premises are wrong"):
        open_verifier(server)


def test_a_request_has_no_more_questions_than_every_service_takes(serve: Serve, open_verifier: OpenVerifier) -> None:
    server = serve("decision")
    judge = open_verifier(server)
    server.requests.clear()
    judge.choose([ask_verdict(f"Rain {number}.", "Rain.") for number in range(20)])
    assert sorted(len(body["questions"]) for body in server.bodies("/v1/decisions")) == [4, 8, 8]


def test_a_question_that_a_service_declines_has_no_verdict(serve: Serve, open_verifier: OpenVerifier) -> None:
    server = serve("decision")
    judge = open_verifier(server)
    server.change = lambda content: content | {"answers": [{"type": "refusal", "name": "q0"}]}
    (answer,) = judge.choose([ask_verdict("It rains.", "Rain.")])
    assert answer.status is AnswerStatus.FAILED
    assert answer.reply is not None
    assert "refusal" in answer.reply


def test_a_server_that_does_not_repeat_itself_is_told(serve: Serve, open_verifier: OpenVerifier) -> None:
    assert "batch-invariant" not in open_verifier(serve("pplx-decider-1.1")).identity.note
    assert "is not batch-invariant" in open_verifier(serve("pplx-decider-1.1", noise=0.0001)).identity.note


def test_an_answer_beside_yes_and_no_is_no_verdict(serve: Serve, open_verifier: OpenVerifier) -> None:
    server = serve("pplx-decider-1.1")
    judge = open_verifier(server)
    server.label_mass = 0.2

    (answer,) = judge.choose([ask_verdict("It rains.", "Rain.")])

    assert answer.status is AnswerStatus.FAILED
    assert answer.reply == "yes and no have the probability 0.200, wanted at least 0.5"


@pytest.mark.parametrize("name", SERVED)
def test_swapped_polarity_fails_the_canaries(serve: Serve, open_verifier: OpenVerifier, name: str) -> None:
    server = serve(name, lambda premise, claim: 1 - words_rule(premise, claim))

    with pytest.raises(JudgeError) as error:
        open_verifier(server)

    if not name.startswith("lettucedetect"):  # of a false claim most words are true, so their reverse is not all right
        assert "the reverse of what is right" in str(error.value)
    assert "wanted supported, got not supported" in str(error.value)
    assert load_profile(name).model in str(error.value)


def test_a_template_that_drops_the_documents_fails_the_canaries(serve: Serve, open_verifier: OpenVerifier) -> None:
    with pytest.raises(JudgeError, match="as if the premise did not reach the model"):
        open_verifier(serve("granite-guardian-3.3", drops_documents=True))


def test_a_model_that_replies_in_another_form_fails_the_canaries(serve: Serve, open_verifier: OpenVerifier) -> None:
    def chatter(content: dict[str, Any]) -> dict[str, Any]:
        return {**content, "choices": [{"message": {"content": "Sure! Let me see."}, "finish_reason": "stop"}]}

    with pytest.raises(JudgeError, match="No reply has the form that the profile reads"):
        open_verifier(serve("minicheck-7b", change=chatter))


def test_a_server_without_the_endpoint_is_told(serve: Serve, open_verifier: OpenVerifier) -> None:
    with pytest.raises(JudgeError, match=r"404.*Not Found: /classify"):
        open_verifier(serve("minicheck-7b"), profile=load_profile(CLASSIFIER))


def test_canaries_can_be_overridden(serve: Serve, open_verifier: OpenVerifier) -> None:
    server = serve("minicheck-7b", lambda _premise, _claim: 0.25)

    judge = open_verifier(server, check_canaries=False)

    assert judge.choose([ask_verdict("It rains.", "It rains.")])[0].label == "no"
    assert judge.features.canaries.startswith("overridden: ")
    assert "canaries = false" in judge.warnings[0]


def test_an_error_in_place_of_a_canary_is_no_wrong_answer(
    serve: Serve, open_verifier: OpenVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve("minicheck-7b")
    answer, failing = server.reply, (500, {"error": {"message": "out of memory"}})
    monkeypatch.setattr(server, "reply", lambda path, body: failing if "Tomas" in str(body) else answer(path, body))
    with pytest.raises(JudgeError, match=r"left 1 of \d+ questions that check it unanswered \(500: out of memory\)"):
        open_verifier(server)
    first, second = (open_verifier(server, check_canaries=False) for _ in range(2))
    assert first.identity.served != second.identity.served
    assert any("replies that cannot be read" in warning for warning in first.warnings)


def test_a_tokenizer_that_could_not_be_probed_is_named(
    serve: Serve, open_verifier: OpenVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve("minicheck-7b")
    answer, failing = server.reply, (500, {"error": {"message": "out of memory"}})
    monkeypatch.setattr(server, "reply", lambda path, body: failing if path == "/tokenize" else answer(path, body))
    judge = open_verifier(server)
    assert (judge.features.tokenizer, judge.features.unknown) == (False, {"tokenizer": "500: out of memory"})
    assert "could not be probed for tokenizer" in judge.warnings[0]
    monkeypatch.setattr(server, "reply", answer)
    assert open_verifier(server).features.unknown == {}


@pytest.mark.parametrize(("window", "tokenizer"), [(800, True), (300, False)])
def test_a_server_that_cuts_long_prompts_fails_the_canaries(
    serve: Serve, open_verifier: OpenVerifier, window: int, tokenizer: bool
) -> None:
    server = serve("granite-guardian-3.3", window=window, cuts=True, told_window=16_384, tokenizer=tokenizer)

    with pytest.raises(JudgeError, match="as if the server cut long prompts") as error:
        open_verifier(server)

    assert (CUT_BY_SERVER in str(error.value)) is tokenizer


def test_a_cut_prompt_is_a_failed_answer(serve: Serve, open_verifier: OpenVerifier) -> None:
    server = serve("granite-guardian-3.3", window=16_384)
    judge = open_verifier(server)
    server.window, server.cuts = 8_000, True

    [answer] = judge.choose([ask_verdict(FACT, f"{'Nothing is said here. ' * 2500}{FACT}")])

    assert answer.status is AnswerStatus.FAILED
    assert answer.reason == CUT_BY_SERVER


def test_a_window_that_the_options_make_smaller_is_kept(serve: Serve, open_verifier: OpenVerifier) -> None:
    server = serve("granite-guardian-3.3", window=1_200, cuts=True, told_window=16_384)

    judge = open_verifier(server, context_window=1_200)

    [answer] = judge.choose([ask_verdict(FACT, f"{'Nothing is said here. ' * 2500}{FACT}")])
    assert answer.label == "yes"


@pytest.mark.parametrize("place", [0.0, 0.13, 0.5, 0.77, 1.0])
@pytest.mark.parametrize(("tokenizer", "houses"), [(True, 600), (False, 4200)])
def test_a_fact_anywhere_in_a_long_premise_is_found(
    serve: Serve, open_verifier: OpenVerifier, place: float, tokenizer: bool, houses: int
) -> None:
    server = serve(CLASSIFIER, window=512, tokenizer=tokenizer)
    judge = open_verifier(server)
    filler = [f"House {number} stands at the north end of the street." for number in range(houses)]
    cut = int(place * len(filler))
    premise = " ".join([*filler[:cut], FACT, *filler[cut:]])
    assert len(premise) > 48 * houses

    found, missing = judge.choose([ask_verdict(FACT, premise), ask_verdict(FACT, " ".join(filler))])

    assert found.label == "yes"
    assert found.probabilities == {"yes": SUPPORTED, "no": 1 - SUPPORTED}
    assert missing.label == "no"
    texts = [text for body in server.bodies("/classify") for text in body["input"]]
    assert max(map(len, texts)) <= 4 * 512


def test_the_parts_of_a_premise_are_asked_once_for_several_claims(serve: Serve, open_verifier: OpenVerifier) -> None:
    server = serve(CLASSIFIER, window=512)
    judge = open_verifier(server)
    premise = " ".join(f"House {number} stands at the north end of the street." for number in range(400))
    before = len(server.requests)

    judge.choose([ask_verdict(f"House {number} stands.", premise) for number in (1, 399, 400)])

    sent = server.requests[before:]
    texts = [text for path, raw in sent if path == "/classify" for text in json.loads(raw)["input"]]
    premises = {text.split("</s>")[0] for text in texts}
    assert len(texts) == 3 * len(premises)


def test_a_claim_is_as_supported_as_its_least_supported_sentence(serve: Serve, open_verifier: OpenVerifier) -> None:
    premise = "It rains here. The ferry is late."
    claim = "It rains. The bus is late."

    by_sentence = open_verifier(serve("minicheck-7b")).choose([ask_verdict(claim, premise)])[0]
    whole_server = serve("granite-guardian-3.3")
    open_verifier(whole_server).choose([ask_verdict(claim, premise)])

    assert by_sentence.label == "no"
    assert whole_server.bodies("/v1/chat/completions")[-1]["messages"][0]["content"] == claim


def test_a_claim_that_leaves_no_room_for_a_premise_is_a_failed_answer(
    serve: Serve, open_verifier: OpenVerifier
) -> None:
    judge = open_verifier(serve(CLASSIFIER, window=512))

    [answer] = judge.choose([ask_verdict("word " * 500, "It rains.")])

    assert answer.status is AnswerStatus.FAILED
    assert answer.reason == TOO_LONG


def test_a_refused_batch_is_asked_pair_by_pair(serve: Serve, open_verifier: OpenVerifier) -> None:
    server = serve(CLASSIFIER, window=512)
    judge = open_verifier(server)
    reply = server.reply
    server.reply = lambda path, body: (  # type: ignore[method-assign]
        (400, {"error": {"message": "no"}})
        if any("snow" in text for text in body.get("input", ()))
        else reply(path, body)
    )

    answers = judge.choose([ask_verdict("It rains.", "It rains."), ask_verdict("It snows.", "It rains.")])

    assert [answer.status for answer in answers] == [AnswerStatus.ANSWERED, AnswerStatus.FAILED]
    assert "(400)" in (answers[1].reason or "")


def test_unsupported_words_are_marked(serve: Serve, open_verifier: OpenVerifier) -> None:
    judge = open_verifier(serve("lettucedetect"))

    [answer] = judge.choose(
        [ask_verdict("The bridge opens in June with dragons.", "The bridge opens in May with music.")]
    )

    assert answer.label == "no"
    spans = json.loads(answer.reply or "")["unsupported"]
    assert [span["text"] for span in spans] == ["June", "h dragons."]  # tokens of four bytes
    assert all(span["probability"] == SUPPORTED for span in spans)


def test_a_verifier_answers_nothing_but_verdicts(serve: Serve, open_verifier: OpenVerifier) -> None:
    judge = open_verifier(serve("minicheck-7b"))

    assert [kind for kind in QuestionKind if judge.can_answer(kind)] == list(ON_CLAIMS)
    assert judge.choose([ask_refusal("Why?", "I do not know.")])[0].status is AnswerStatus.UNDEFINED


def test_profile_model_and_window_are_part_of_the_key(serve: Serve, open_verifier: OpenVerifier) -> None:
    server = serve("minicheck-7b")
    plain = open_verifier(server)
    other = server.profile.model_copy(update={"threshold": 0.75})
    described = server.profile.model_copy(update={"note": "Another note.", "license": "MIT"})
    kind = QuestionKind.VERDICT

    assert open_verifier(server).fingerprint(kind) == plain.fingerprint(kind)
    assert open_verifier(server, profile=described).fingerprint(kind) == plain.fingerprint(kind)
    assert open_verifier(server, profile=other).fingerprint(kind) != plain.fingerprint(kind)
    assert open_verifier(server, context_window=2048).fingerprint(kind) != plain.fingerprint(kind)
    assert open_verifier(serve("minicheck-7b", name="another")).fingerprint(kind) != plain.fingerprint(kind)


def test_replicas_must_serve_the_same_model(serve: Serve, open_verifier: OpenVerifier) -> None:
    mild = serve("minicheck-7b", lambda premise, claim: 0.625 if words_rule(premise, claim) > 0.5 else 0.25)

    with pytest.raises(JudgeError, match="serve different models"):
        open_verifier(serve("minicheck-7b"), mild)


def test_a_reply_of_another_model_is_a_failed_answer(serve: Serve, open_verifier: OpenVerifier) -> None:
    server = serve("minicheck-7b")
    judge = open_verifier(server)
    server.change = lambda content: {**content, "model": "another"}

    [answer] = judge.choose([ask_verdict("It rains.", "It rains.")])

    assert answer.status is AnswerStatus.FAILED
    assert answer.reply == "another"


def test_marked_words_reach_the_table_and_the_report(serve: Serve, open_verifier: OpenVerifier) -> None:
    judge = open_verifier(serve("lettucedetect"))
    [answer] = judge.choose([ask_verdict("It rains dragons.", "It rains.")])

    cells = verdict_cells(answer)
    verdict = {"kind": VerdictKind.SUPPORT, "claim_id": "c1", "premise": "contexts", "verdict": 0, "probability": 0.1}
    view = verdict_view({"reason": None, **verdict, **cells}, {})

    assert cells["reply"] == answer.reply
    assert [text["text"] for text in view["unsupported"]] == ["dragons"]
    assert "reply" not in view
