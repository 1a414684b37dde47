"""Fill in what a span says by its input and output, whichever product recorded it."""

from typing import Any

from tasks.sources.traces.passage_lists import are_documents, find_passages, hold_documents
from tasks.sources.traces.payloads import describe_output, find_answer, find_asked, find_result, prompt_text
from tasks.sources.traces.spans import Kind, Span
from tasks.sources.traces.values import parse_literal

_RERANKER = "rerank"
"""Part of the name of a reranker, for which most products have no type."""
_RETRIEVERS = ("retrieve", "retrieval")
"""Parts of the names of retrievers."""


def fill_step(span: Span, given: Any, made: Any) -> Span:
    """Fill in question, answer and passages, and return the span.

    A step whose output is nothing but documents is a retriever even if it is recorded as a chain, and one that is named
    a reranker is one: they find, and do not answer. A chain that gets documents, and no question, and has no answer is
    a step beside the way to one: it splits or stores them, to build an index.

    Args:
        span: Span with its name and kind.
    """
    name = span.name.casefold()
    passages = find_passages(made)
    if span.kind in (Kind.CHAIN, Kind.RETRIEVER) and _RERANKER in name and are_documents(made, or_texts=True):
        span.kind, span.candidates = Kind.RERANKER, find_passages(given)
    elif span.kind is Kind.CHAIN and are_documents(made, or_texts=any(part in name for part in _RETRIEVERS)):
        span.kind = Kind.RETRIEVER
    span.question, span.earlier = find_asked(given)
    if span.kind is Kind.CHAIN and span.question is None and hold_documents(given):
        span.kind = Kind.OTHER if find_answer(parse_literal(made)) is None else Kind.CHAIN
    if span.kind in (Kind.RETRIEVER, Kind.RERANKER):
        span.passages, span.is_unread = passages, passages is None
    else:
        span.answer = find_answer(made)
        span.unread = None if span.answer is not None else describe_output(made)
    if span.kind is Kind.LLM:
        span.prompt = prompt_text(given)
    if span.kind is Kind.TOOL and made not in (None, "", {}):
        span.tool_results = [find_result(made)]
    return span
