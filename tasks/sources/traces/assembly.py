"""Make rows from the spans of a trace: one for each question that the traced program answered."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metric_core import columns as c
from tasks.sources.messages import Message, Role, show_messages
from tasks.sources.passage_objects import Passage, companions
from tasks.sources.traces.spans import Kind, Span

PARTIAL = "partial trace: the span that it begins with is missing"
NO_QUESTION = "no question"
NO_ANSWER = "no answer"
FAILED = "no answer: it ended with an error"
NO_CONTENT = "neither a question nor an answer: no span recorded texts"

_RETRIEVAL = (Kind.RETRIEVER, Kind.RERANKER)
_ANSWERING = (Kind.CHAIN, Kind.LLM)


@dataclass(frozen=True, slots=True)
class Trace:
    """The rows of a trace.

    Args:
        trace_id: Its id.
        start: Seconds since 1970 at which it began; infinite if unknown.
        rows: The columns of its rows, in the order of their starts.
        problem: Reason why it has no row; None if it has one.
        duplicates: Number of spans that were recorded again.
    """

    trace_id: str
    start: float
    rows: Sequence[Mapping[str, Any]]
    problem: str | None
    duplicates: int


def assemble(trace_id: str, spans: Iterable[Span]) -> Trace:
    """Return the rows of a trace.

    A row is made of the topmost span with a question and an answer, and of the spans below it. Without such a chain,
    the whole trace is one row: the question is the first and the answer the last that a model or the root recorded.

    Args:
        trace_id: Id of the trace.
        spans: Its spans in any order.
    """
    tree = _Tree(spans)
    problem = None
    answered = sorted(tree.find_answered(), key=_start)
    rows = [_row(tree, span, tree.list_below(span), is_only=len(answered) == 1) for span in answered]
    if tree.is_aside:
        problem = NO_CONTENT
    elif not rows and not tree.roots:
        problem = PARTIAL
    elif not rows:
        row, problem = _whole(tree)
        rows = [] if row is None else [row]
    ids = [trace_id if len(rows) == 1 else f"{trace_id}:{row['span_id']}" for row in rows]
    named = [{c.ID_COLUMNS[0]: row_id, **row} for row_id, row in zip(ids, rows, strict=True)]
    return Trace(trace_id, tree.start, named, problem, tree.duplicates)


class _Tree:
    """The spans of a trace by their parents. Of spans with the same id, the last one that has ended counts.

    Evaluators, guardrails and the like, and what is below them, are left aside: what their models say is no answer.
    """

    def __init__(self, spans: Iterable[Span]) -> None:
        by_id: dict[str, Span] = {}
        self.duplicates = 0
        for span in spans:
            earlier = by_id.get(span.span_id)
            self.duplicates += earlier is not None
            if earlier is None or span.end is not None or earlier.end is None:
                by_id[span.span_id] = span
        # Files may have the children before their parents, and exporters send spans as they end.
        every = sorted(by_id.values(), key=lambda span: (_start(span), span.span_id))
        self.start = min(map(_start, every))
        self._children: dict[str, list[Span]] = {}
        for span in every:
            self._children.setdefault(span.parent_id or "", []).append(span)
        aside = {each.span_id for span in every if span.kind is Kind.OTHER for each in self.list_below(span)}
        self.spans = [span for span in every if span.span_id not in aside]
        self.tops = [span for span in self.spans if span.parent_id not in by_id or span.parent_id == span.span_id]
        self.roots = [span for span in self.tops if span.parent_id is None or span.parent_is_remote]
        self.is_aside = not self.spans

    def list_below(self, span: Span) -> list[Span]:
        """Return a span and all spans that are part of it, in the order of their starts."""
        found, waiting = {}, [span]
        while waiting:
            each = waiting.pop()
            if each.span_id not in found and (each.kind is not Kind.OTHER or span.kind is Kind.OTHER):
                found[each.span_id] = each
                waiting += self._children.get(each.span_id, ())
        return sorted(found.values(), key=lambda each: (_start(each), each is not span, each.span_id))

    def find_answered(self) -> Iterator[Span]:
        """Yield the topmost chains that have a question and an answer, and a root model that stands alone."""
        waiting, seen = list(reversed(self.tops)), set()
        while waiting:
            span = waiting.pop()
            if span.span_id in seen:
                continue
            seen.add(span.span_id)
            if span.kind is Kind.CHAIN and span.question and span.answer and not span.failed:
                yield span
            elif span.kind is Kind.CHAIN:
                waiting += reversed(
                    [each for each in self._children.get(span.span_id, ()) if each.kind is not Kind.OTHER]
                )


def _whole(tree: _Tree) -> tuple[dict[str, Any] | None, str | None]:
    """Return a trace without an answered chain as one row, or the reason why it is none."""
    root = tree.roots[0]
    models = [span for span in tree.spans if span.kind is Kind.LLM]
    asked = [root, *models, *(span for span in tree.spans if span.kind in _RETRIEVAL)]
    question = next((span.question for span in asked if span.question), None)
    answer = root.answer if root.kind in _ANSWERING and root.answer else None
    answer = answer or next((span.answer for span in reversed(models) if span.answer and not span.failed), None)
    if root.failed:
        return None, FAILED
    if question is None and answer is None:
        return None, NO_CONTENT
    if question is None or answer is None:
        return None, NO_QUESTION if question is None else NO_ANSWER
    return {**_row(tree, root, tree.spans, is_only=True), c.USER_INPUT: question, c.RESPONSE: answer}, None


def _row(tree: _Tree, span: Span, parts: Sequence[Span], *, is_only: bool) -> dict[str, Any]:
    """Return the columns of a row.

    Args:
        tree: The trace.
        span: The span with the question and the answer.
        parts: The spans that led to the answer.
        is_only: True if the trace has no other row.
    """
    models = [part for part in parts if part.kind is Kind.LLM]
    passages = combine_passages(parts)
    if passages is None and is_only:
        passages = combine_passages(tree.spans)  # the retriever may be beside the chain that has the answer
    if passages is not None:
        passages = order_as_prompted(passages, next((part.prompt for part in reversed(models) if part.prompt), None))
    answering = next((part for part in reversed(models) if part.answer), span)
    earlier = span.earlier or next((part.earlier for part in models if part.earlier and span.question is None), [])
    columns: dict[str, Any] = {
        c.USER_INPUT: span.question,
        c.RESPONSE: span.answer,
        **_passage_columns(passages),
        c.SESSION_ID: _first(part.session for part in (span, *parts, *tree.spans)),
        c.EARLIER_TURNS: show_messages(Message(Role(said.role), said.text) for said in earlier) or None,
        c.EARLIER_ANSWERS: [said.text for said in earlier if said.role == "assistant"] or None,
        c.TOOL_RESULTS: [result for part in parts for result in part.tool_results] or None,
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "latency": span.seconds,
        "prompt_tokens": _sum(parts, lambda part: part.prompt_tokens),
        "output_tokens": _sum(parts, lambda part: part.output_tokens),
        "model": answering.model or _first(part.model for part in reversed(parts)),
        "response_id": answering.response_id,
        "span_name": span.name or None,
    }
    extras = {name: value for name, value in _extras(tree, span).items() if name not in columns}
    return {name: value for name, value in {**columns, **extras}.items() if value is not None}


def combine_passages(spans: Iterable[Span]) -> list[Passage] | None:
    """Return the passages that the steps of a trace found; None if no retriever recorded any.

    Retrievers are joined in the order in which they ended; a passage that several returned counts where it came
    first. What a reranker returns takes the place of the passages it got: those that it recorded, or all so far.
    A retriever inside a retriever is a part of it.
    """
    steps = [span for span in spans if span.kind in _RETRIEVAL and span.passages is not None]
    inside = {span.span_id for span in steps}
    steps = [span for span in steps if span.parent_id not in inside or span.kind is Kind.RERANKER]
    if not steps:
        return None
    found: list[Passage] = []
    for step in sorted(steps, key=lambda span: (_end(span), span.kind is Kind.RERANKER)):
        passages = step.passages or []
        if step.kind is Kind.RERANKER:
            replaced = None if step.candidates is None else {_key(passage) for passage in step.candidates}
            found = [each for each in found if replaced is not None and _key(each) not in replaced]
            found = [*_with_texts(passages, [*(step.candidates or ()), *_all_passages(steps)]), *found]
        else:
            found = [*found, *passages]
    unique: dict[tuple[str | None, str | None], Passage] = {}
    for passage in found:
        unique.setdefault(_key(passage), passage)
    return list(unique.values())


def _all_passages(steps: Iterable[Span]) -> list[Passage]:
    return [passage for step in steps for passage in step.passages or ()]


def _with_texts(passages: Iterable[Passage], known: Iterable[Passage]) -> list[Passage]:
    """Return passages with the texts of known ones of the same id, where a reranker recorded only ids."""
    texts = {passage.id: passage.text for passage in known if passage.id is not None and passage.text is not None}
    return [
        Passage(texts.get(passage.id or ""), passage.id, passage.score) if passage.text is None else passage
        for passage in passages
    ]


def order_as_prompted(passages: Sequence[Passage], prompt: str | None) -> list[Passage]:
    """Return passages in the order in which a prompt has them; those that it lacks follow, in their own order.

    >>> order_as_prompted([Passage("Rain."), Passage("Snow.")], "Snow. Rain. Why?")
    [Passage(text='Snow.', id=None, score=None), Passage(text='Rain.', id=None, score=None)]
    """
    if prompt is None:
        return list(passages)
    places = [-1 if not passage.text else prompt.find(passage.text) for passage in passages]
    order = sorted(range(len(passages)), key=lambda index: places[index] if places[index] >= 0 else len(prompt))
    return [passages[index] for index in order]


def _passage_columns(passages: Sequence[Passage] | None) -> dict[str, Any]:
    if passages is None:
        return {}
    brought = companions(c.RETRIEVED_CONTEXTS, passages)
    if passages and all(passage.text is None for passage in passages):
        return brought  # a retriever that records ids and scores alone
    return {c.RETRIEVED_CONTEXTS: [passage.text or "" for passage in passages], **brought}


def _key(passage: Passage) -> tuple[str | None, str | None]:
    return (passage.id, None) if passage.text is None else (None, passage.text)


def _extras(tree: _Tree, span: Span) -> dict[str, Any]:
    """Return the attributes of a row: those of its span, and those that the root has beside them."""
    above = [root for root in tree.roots if root is not span][:1]
    return {name: value for each in (*above, span) for name, value in each.extras.items()}


def _sum(parts: Sequence[Span], count: Callable[[Span], int | None]) -> int | None:
    """Return the number of tokens of the models; of the other spans only if no model recorded any."""
    of_models = [number for span in parts if span.kind is Kind.LLM and (number := count(span)) is not None]
    return sum(of_models) if of_models else next((n for span in parts if (n := count(span)) is not None), None)


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _start(span: Span) -> float:
    return float("inf") if span.start is None else span.start


def _end(span: Span) -> float:
    return _start(span) if span.end is None else span.end
