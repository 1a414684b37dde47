"""The rows of a trace, with their passages in order."""

from typing import Any

from tasks.sources.cells.passage_objects import RetrievedPassage
from tasks.sources.traces.assembly import FAILED, NO_ANSWER, NO_CONTENT, NO_QUESTION, PARTIAL, assemble
from tasks.sources.traces.spans import Kind, Span


def span(name: str, parent: str | None = None, kind: Kind = Kind.CHAIN, at: float = 0, **fields: Any) -> Span:
    fields = {"end": at + 1, **fields}
    return Span("t", name, parent, name, kind, start=at, **fields)


def search(
    name: str, *texts: str, kind: Kind = Kind.RETRIEVER, at: float = 1, parent: str = "root", **fields: Any
) -> Span:
    passages = [RetrievedPassage(text, f"id-{text}", 1 / place) for place, text in enumerate(texts, start=1)]
    return span(name, parent, kind, at, passages=passages, **fields)


ROOT = span("root", question="Why?", answer="So.")


def contexts(*spans: Span) -> Any:
    [row] = assemble("t", [ROOT, *spans]).rows
    return row.get("retrieved_contexts")


def test_several_retrievers_are_joined_in_the_order_in_which_they_ended() -> None:
    late, early = search("late", "a", "b", at=1, end=9), search("early", "b", "c", at=2, end=3)
    assert contexts(late, early) == ["b", "c", "a"]


def test_no_retriever_is_no_column_and_an_empty_one_an_empty_list() -> None:
    assert contexts() is None
    assert contexts(search("empty")) == []


def test_a_reranker_takes_the_place_of_the_passages_that_it_got() -> None:
    first, second = search("first", "a", "b", "c", at=1), search("second", "x", at=2)
    assert contexts(first, second, search("rerank", "c", "a", kind=Kind.RERANKER, at=3)) == ["c", "a"]
    got = [RetrievedPassage("a"), RetrievedPassage("b"), RetrievedPassage("c")]
    rerank = search("rerank", "c", kind=Kind.RERANKER, at=3, candidates=got)
    assert contexts(first, second, rerank) == ["c", "x"]
    assert contexts(first, rerank, search("later", "z", at=5)) == ["c", "z"]


def test_a_reranker_that_records_ids_alone_takes_the_texts_of_the_retriever() -> None:
    rerank = span("rerank", "root", Kind.RERANKER, 3, passages=[RetrievedPassage(None, "id-b", 0.9)])
    [row] = assemble("t", [ROOT, search("first", "a", "b"), rerank]).rows
    assert (row["retrieved_contexts"], row["retrieved_context_scores"]) == (["b"], [0.9])


def test_a_retriever_inside_a_retriever_is_a_part_of_it() -> None:
    outer, inner = search("outer", "a", "b"), search("inner", "b", "c", parent="outer", at=1.5)
    assert contexts(outer, inner) == ["a", "b"]


def test_passages_have_the_order_of_the_prompt() -> None:
    model = span("llm", "root", Kind.LLM, 5, prompt="c, then a. Why?", answer="So.")
    assert contexts(search("first", "a", "b", "c"), model) == ["c", "a", "b"]


def test_each_topmost_chain_with_a_question_and_an_answer_is_a_row() -> None:
    turns = [span(f"turn-{n}", "session", at=10 * n, question=f"{n}?", answer=f"{n}.") for n in (2, 1)]
    passages = [search(f"search-{n}", f"p{n}", parent=f"turn-{n}", at=10 * n + 1) for n in (1, 2)]
    inner = span("inner", "turn-1", question="rewritten?", answer="other")
    trace = assemble("t", [*turns, inner, *passages, span("session")])
    assert [(row["row_id"], row["user_input"], row["retrieved_contexts"]) for row in trace.rows] == [
        ("t:turn-1", "1?", ["p1"]),
        ("t:turn-2", "2?", ["p2"]),
    ]


def test_the_retriever_may_be_beside_the_chain_that_answers() -> None:
    spans = [
        span("request"),
        search("search", "a", parent="request"),
        span("rag", "request", question="Why?", answer="So."),
    ]
    [row] = assemble("t", spans).rows
    assert row["retrieved_contexts"] == ["a"]


def test_without_an_answered_chain_the_trace_is_one_row() -> None:
    rewrite = span(
        "rewrite", "root", Kind.LLM, 1, question="Why?", answer="why, exactly", model="small", prompt_tokens=5
    )
    final = span("final", "root", Kind.LLM, 3, question="prompt", answer="So.", model="large", prompt_tokens=7)
    [row] = assemble("t", [span("root", end=4), rewrite, search("search", "a", at=2), final]).rows
    assert (row["user_input"], row["response"], row["model"]) == ("Why?", "So.", "large")
    assert (row["prompt_tokens"], row["latency"], row["span_id"]) == (12, 4, "root")


def test_traces_without_a_row_have_a_reason() -> None:
    cases: list[tuple[list[Span], str]] = [
        ([span("root", question="Why?")], NO_ANSWER),
        ([span("root")], NO_CONTENT),
        ([span("root", answer="So.")], NO_QUESTION),
        ([span("root", question="Why?", answer="partly", failed=True)], FAILED),
        ([span("llm", "gone", Kind.LLM, question="Why?", answer="So.")], PARTIAL),
        ([search("search", "a", parent="gone")], PARTIAL),
        ([span("a", "b", question="Why?"), span("b", "a")], PARTIAL),
    ]
    for spans, problem in cases:
        trace = assemble("t", spans)
        assert (trace.rows, trace.problems) == ([], [problem]), (spans, problem)


def test_a_chain_whose_parent_is_missing_is_a_row_if_it_has_both() -> None:
    [row] = assemble("t", [span("rag", "gone", question="Why?", answer="So.")]).rows
    assert row["row_id"] == "t"


def test_of_duplicates_the_one_that_ended_counts() -> None:
    begun = span("root", question="Why?", end=None)
    for spans in ([begun, ROOT], [ROOT, begun], [ROOT, begun, ROOT]):
        trace = assemble("t", spans)
        assert [row["response"] for row in trace.rows] == ["So."]
        assert trace.duplicates == len(spans) - 1


PASSED_ON = span("passed on", "root", at=2, question="Why?", answer="Why?")
FOUND = span("found", "root", at=1, question="Why?", answer="Rain is wet.")
SAID = span("llm", "root", Kind.LLM, 5, question="Rain is wet. Why?", answer="So.")


def test_below_a_chain_that_failed_nothing_is_an_answer() -> None:
    root = span("root", question="Why?", failed=True)
    trace = assemble("t", [root, FOUND, PASSED_ON, SAID])
    assert (trace.rows, trace.problems) == ([], [FAILED])
    [row] = assemble("t", [span("request", failed=True), span("rag", "request", question="Why?", answer="So.")]).rows
    assert row["span_id"] == "rag"


def test_of_a_chain_whose_answer_was_not_recorded_what_ended_last_below_it_has_the_answer() -> None:
    root = span("root", question="Why?", end=9)
    [row] = assemble("t", [root, FOUND, PASSED_ON, SAID]).rows
    assert (row["span_id"], row["user_input"], row["response"], row["latency"]) == ("root", "Why?", "So.", 9)
    rewritten = span("rewrite", "root", at=1, question="Why?", answer="Why, exactly?")
    answered = span("answer", "root", at=3, question="Why, exactly?", answer="So.")
    [row] = assemble("t", [root, rewritten, answered]).rows
    assert (row["user_input"], row["response"]) == ("Why?", "So.")
    wrapper = span("wrapper", "root", Kind.LLM, 4, question="Why?")
    inside = span("inside", "wrapper", Kind.LLM, 5, question="Why?", answer="So.")
    assert [row["response"] for row in assemble("t", [root, FOUND, wrapper, inside]).rows] == ["So."]
    called = span("called", "root", Kind.LLM, 6, question="Rain is wet. Why?")
    assert assemble("t", [root, FOUND, SAID, called]).problems == [NO_ANSWER]
    trace = assemble("t", [root, PASSED_ON, span("broken", "root", Kind.LLM, 5, answer="S", failed=True)])
    assert (trace.rows, trace.problems) == ([], [NO_ANSWER])


def test_a_failed_question_beside_answered_ones_is_reported_unless_it_was_tried_again() -> None:
    first = span("first", "session", question="Why?", answer="So.")
    failed = span("failed", "session", at=5, question="How?", failed=True)
    trace = assemble("t", [span("session"), first, failed])
    assert ([row["user_input"] for row in trace.rows], trace.problems) == (["Why?"], [FAILED])
    again = span("again", "session", at=7, question="How?", answer="Thus.")
    trace = assemble("t", [span("session"), first, failed, again])
    assert ([row["user_input"] for row in trace.rows], trace.problems) == (["Why?", "How?"], [])


def test_different_spans_with_the_same_id_are_all_kept_and_counted() -> None:
    other = span("root", question="How?", answer="Thus.", at=7)
    trace = assemble("t", [ROOT, search("search", "a"), other, ROOT])
    assert (trace.duplicates, trace.clashes) == (1, 1)
    assert [(row["row_id"], row["span_id"], row["response"], row.get("retrieved_contexts")) for row in trace.rows] == [
        ("t:root", "root", "So.", ["a"]),
        ("t:root#2", "root", "Thus.", None),
    ]


def test_of_a_span_recorded_twice_the_more_complete_record_counts() -> None:
    bare = span("root", question="Why?")
    other_exporter = span("root", question="Why?", answer="So.", extras={"collector": "b"})
    for spans in ([bare, other_exporter], [other_exporter, bare], [ROOT, other_exporter]):
        trace = assemble("t", spans)
        assert ([row["response"] for row in trace.rows], trace.duplicates, trace.clashes) == (["So."], 1, 0)


def test_a_span_that_ended_before_it_began_has_no_latency() -> None:
    trace = assemble("t", [span("root", question="Why?", answer="So.", at=5, end=3)])
    assert trace.backwards == 1
    assert "latency" not in trace.rows[0]


def test_a_retriever_deep_inside_a_retriever_is_a_part_of_it() -> None:
    outer, chain = search("outer", "a", "b"), span("chain", "outer", at=1.2)
    assert contexts(outer, chain, search("inner", "b", "c", parent="chain", at=1.5)) == ["a", "b"]


def test_models_of_evaluators_and_guardrails_give_no_answers() -> None:
    evaluator = span("evaluator", "root", Kind.OTHER, 5)
    verdict = span("verdict", "evaluator", Kind.LLM, 6, question="Is it right?", answer="yes", prompt_tokens=100)
    model = span("llm", "root", Kind.LLM, 1, question="Why?", answer="So.", prompt_tokens=5)
    for root in (ROOT, span("root")):
        [row] = assemble("t", [root, model, evaluator, verdict]).rows
        assert (row["response"], row["prompt_tokens"]) == ("So.", 5)
    chain = span("chain", "evaluator", question="Is it right?", answer="yes")
    assert [row["response"] for row in assemble("t", [span("root"), model, evaluator, chain]).rows] == ["So."]
    alone = assemble("t", [span("evaluator", None, Kind.OTHER), verdict])
    assert (alone.rows, alone.problems) == ([], [])


def test_a_turn_without_a_retriever_has_no_passages_of_another_turn() -> None:
    turns = [span(f"turn-{n}", "session", at=10 * n, question=f"{n}?", answer=f"{n}.") for n in (1, 2)]
    trace = assemble("t", [span("session"), *turns, search("search", "a", parent="turn-1", at=11)])
    assert [row.get("retrieved_contexts") for row in trace.rows] == [["a"], None]


def test_several_retrievals_are_kept_apart() -> None:
    first = search("first", "a", "b", at=1, question="Where?")
    second = search("second", "b", "c", at=3, question="Who there?")
    [row] = assemble("t", [ROOT, second, first]).rows
    assert row["retrieved_contexts"] == ["a", "b", "c"]
    assert row["hops"] == [{"query": "Where?", "passages": [0, 1]}, {"query": "Who there?", "passages": [1, 2]}]
    rerank = search("rerank", "c", "a", kind=Kind.RERANKER, at=5)
    [row] = assemble("t", [ROOT, first, second, rerank]).rows
    assert row["retrieved_contexts"] == ["c", "a"]
    assert [hop["passages"] for hop in row["hops"]] == [[1, None], [None, 0]]
    [row] = assemble("t", [ROOT, first]).rows
    assert "hops" not in row
