"""Make rows from the spans of a trace: one for each question that the traced program answered."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from metric_core import columns as c
from tasks.sources.cells.messages import Role, show_messages
from tasks.sources.cells.passage_objects import RetrievedPassage, companions
from tasks.sources.traces.spans import Kind, Span

PARTIAL = "partial trace: the span that it begins with is missing"
NO_QUESTION = "no question"
NO_ANSWER = "no answer"
FAILED = "no answer: it ended with an error"
NO_CONTENT = "neither a question nor an answer: no span recorded texts"

_RETRIEVAL = (Kind.RETRIEVER, Kind.RERANKER)
_ANSWERING = (Kind.CHAIN, Kind.LLM)
_CONTENT = ("name", "question", "answer", "prompt", "passages", "candidates", "tool_results")
"""Fields that distinguish different steps from records of the same one."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The rows of a trace.

    Args:
        start: Seconds since 1970 at which it began; infinite if unknown.
        rows: The columns of its rows, in the order of their starts.
        problems: Reasons why questions in it, or the whole trace, have no row. A trace of evaluators alone has neither.
        duplicates: Number of spans that were recorded again.
        clashes: Number of spans that have the id of another one.
        backwards: Number of spans that ended before they began.
        unread_retrievers: Names of the retrievers whose output has no passages that can be read.
    """

    trace_id: str
    start: float
    rows: Sequence[Mapping[str, Any]] = ()
    problems: Sequence[str] = ()
    duplicates: int = 0
    clashes: int = 0
    backwards: int = 0
    unread_retrievers: Sequence[str] = ()


def assemble(trace_id: str, spans: Iterable[Span]) -> Trace:
    """Return the rows of a trace.

    A row is made of the topmost span with a question and an answer, and of the spans below it. If its answer was not
    recorded, what ended last below it has the answer; if it failed, its question has none. Without any such chain the
    whole trace is one row: the question is the first and the answer the last that a model or the root recorded.

    Args:
        spans: Its spans in any order.
    """
    tree = _Tree(spans)
    rows, problems = _find_rows(tree)
    ids = [trace_id if len(rows) == 1 else f"{trace_id}:{key}" for key, _ in rows]
    named = [{c.ID_COLUMNS[0]: row_id, **row} for row_id, (_, row) in zip(ids, rows, strict=True)]
    unread = _find_unread_retrievers(tree.spans)
    return Trace(trace_id, tree.start, named, problems, tree.duplicates, tree.clashes, tree.backwards, unread)


class _Tree:
    """The spans of a trace by their parents. Of a span that was read several times, the most complete record counts.

    Evaluators, guardrails and the like, and what is below them, are left out: what their models say is not an answer.
    """

    def __init__(self, spans: Iterable[Span]) -> None:
        by_key: dict[str, Span] = {}
        self.duplicates = self.clashes = 0
        for span in spans:
            same = [span.span_id]
            while same[-1] in by_key:
                same.append(replace(span, clashes=len(same)).key)
            version = next((key for key in same[:-1] if _is_version(by_key[key], span)), None)
            if version is None:
                self.clashes += len(same) > 1
                by_key[same[-1]] = replace(span, clashes=len(same) - 1)
                continue
            self.duplicates += 1
            if _completeness(span) >= _completeness(by_key[version]):
                by_key[version] = replace(span, clashes=by_key[version].clashes)
        # Files may have the children before their parents, and exporters send spans as they end.
        every = sorted(by_key.values(), key=lambda span: (_start(span), span.key))
        self.start = min(map(_start, every))
        self.backwards = sum(span.is_backwards for span in every)
        self._children: dict[str, list[Span]] = {}
        for span in every:
            self._children.setdefault(span.parent_id or "", []).append(span)
        aside = {each.key for span in every if span.kind is Kind.OTHER for each in self.list_below(span)}
        self.spans = [span for span in every if span.key not in aside]
        self.tops = [span for span in self.spans if span.parent_id not in by_key or span.parent_id == span.span_id]
        self.roots = [span for span in self.tops if span.parent_id is None or span.parent_is_remote]

    def list_children(self, span: Span) -> list[Span]:
        """Return the spans directly below a span; a span with the id of an earlier one has none."""
        below = [] if span.clashes else self._children.get(span.span_id, [])
        return [each for each in below if each.kind is not Kind.OTHER or span.kind is Kind.OTHER]

    def list_below(self, span: Span) -> list[Span]:
        """Return a span and all spans that are part of it, in the order of their starts."""
        found, waiting = {}, [span]
        while waiting:
            each = waiting.pop()
            if each.key not in found:
                found[each.key] = each
                waiting += self.list_children(each)
        return sorted(found.values(), key=lambda each: (_start(each), each is not span, each.key))

    def find_asked(self) -> Iterator[Span]:
        """Yield the topmost chains that have a question."""
        yield from self._topmost(
            self.tops, lambda span: span.kind is Kind.CHAIN and bool(span.question), through=(Kind.CHAIN,)
        )

    def find_answer(self, asked: Span) -> str | None:
        """Return the answer to a question: its own, or that of the model or chain below it that ended last.

        Where models are recorded, a chain without any only prepares or passes on what they read.
        """
        if asked.answer:
            return asked.answer
        below = self.list_children(asked)
        has_models = any(each.kind is Kind.LLM for each in self.list_below(asked))

        def answers(span: Span) -> bool:
            models = [each for each in self.list_below(span) if each.kind is Kind.LLM]
            if span.failed:
                return span.kind in _ANSWERING  # and what is below it has no answer either
            if span.kind is Kind.LLM:
                return bool(span.answer) or len(models) == 1
            is_asked = bool(span.question) and bool(span.answer) and span.answer != span.question
            return span.kind is Kind.CHAIN and is_asked and (bool(models) or not has_models)

        return _last_answer(self._topmost(below, answers, through=_ANSWERING))

    def _topmost(
        self, spans: Iterable[Span], fits: Callable[[Span], bool], through: Collection[Kind]
    ) -> Iterator[Span]:
        """Yield the topmost spans that fit, looking below the others of these kinds."""
        waiting, seen = list(reversed(list(spans))), set()
        while waiting:
            span = waiting.pop()
            if span.key in seen:
                continue
            seen.add(span.key)
            if fits(span):
                yield span
            elif span.kind in through:
                waiting += reversed(self.list_children(span))


def _is_version(earlier: Span, span: Span) -> bool:
    """Return whether two spans of the same id are the same step: what both recorded is equal, or one was running."""
    if earlier.end is None or span.end is None:
        return earlier.name == span.name
    pairs = ((getattr(earlier, name), getattr(span, name)) for name in _CONTENT)
    return all(one == other or not one or not other for one, other in pairs)


def _completeness(span: Span) -> tuple[bool, int]:
    return span.end is not None, sum(bool(getattr(span, name)) for name in _CONTENT)


def _last_answer(spans: Iterable[Span]) -> str | None:
    """Return the answer of the span that ended last; None if it has none, as one that failed or only called a tool."""
    last = max(spans, key=_end, default=None)
    return None if last is None or last.failed else last.answer


def _find_rows(tree: _Tree) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
    """Return the rows of a trace with the keys of their spans, and the reasons why questions have none."""
    if not tree.spans:
        return [], []
    answered: list[tuple[Span, str]] = []
    failed: list[Span] = []
    asked = list(tree.find_asked())
    for span in asked:
        if span.failed:
            failed.append(span)
        elif (answer := tree.find_answer(span) if tree.roots else span.answer) is not None:
            answered.append((span, answer))
    answered.sort(key=lambda each: _start(each[0]))
    is_only = len(answered) == 1
    rows = [
        (span.key, {**_row(tree, span, tree.list_below(span), is_only=is_only), c.RESPONSE: answer})
        for span, answer in answered
    ]
    repeated = {span.question for span, _ in answered}  # a step that was tried again
    problems = [FAILED for span in failed if span.question not in repeated]
    if rows or problems:
        return rows, problems
    if not tree.roots or asked:
        return [], [_without_answer(asked) if tree.roots else PARTIAL]
    row, problem = _whole(tree)
    return ([], [problem]) if problem is not None else ([(tree.roots[0].key, row)], [])


def _whole(tree: _Tree) -> tuple[dict[str, Any], str | None]:
    """Return a trace without an answered chain as one row, or the reason why it is none."""
    root = tree.roots[0]
    models = [span for span in tree.spans if span.kind is Kind.LLM]
    asked = [root, *models, *(span for span in tree.spans if span.kind in _RETRIEVAL)]
    question = next((span.question for span in asked if span.question), None)
    answer = root.answer if root.kind in _ANSWERING and root.answer else None
    answer = answer or _last_answer(models)
    if root.failed:
        return {}, FAILED
    if question is None and answer is None:
        return {}, NO_CONTENT
    if question is None or answer is None:
        return {}, NO_QUESTION if question is None else _without_answer([root, *reversed(models)])
    return {**_row(tree, root, tree.spans, is_only=True), c.USER_INPUT: question, c.RESPONSE: answer}, None


def _without_answer(spans: Iterable[Span]) -> str:
    """Return the reason why a question has no row, with what is there in place of an answer."""
    unread = next((span.unread for span in spans if span.unread is not None), None)
    return NO_ANSWER if unread is None else f"{NO_ANSWER}: the output is {unread}"


def _find_unread_retrievers(spans: Sequence[Span]) -> list[str]:
    """Return the names of the retrievers without passages that can be read, unless a part or a whole of them has some.

    One that failed has none.
    """
    retrievers = [span for span in spans if span.kind in _RETRIEVAL]
    read = {span.span_id for span in retrievers if span.passages is not None}
    inside = _inside(read, spans)
    names = []
    for span in retrievers:
        if span.is_unread and not span.failed and span.key not in inside:
            below = _inside({span.span_id}, spans)
            if not any(each.span_id in read and each.key in below for each in retrievers):
                names.append(span.name or span.kind.value)
    return names


def _row(tree: _Tree, span: Span, parts: Sequence[Span], *, is_only: bool) -> dict[str, Any]:
    """Return the columns of a row.

    Args:
        span: The span with the question and the answer.
        parts: The spans that led to the answer.
        is_only: True if the trace has no other row.
    """
    models = [part for part in parts if part.kind is Kind.LLM]
    found_by: Sequence[Span] = parts
    passages = combine_passages(parts)
    if passages is None and is_only:
        found_by = tree.spans  # the retriever may be beside the chain that has the answer
        passages = combine_passages(found_by)
    if passages is not None:
        passages = order_as_prompted(passages, next((part.prompt for part in reversed(models) if part.prompt), None))
    answering = next((part for part in reversed(models) if part.answer and not part.failed), span)
    earlier = span.earlier or next((part.earlier for part in models if part.earlier and span.question is None), [])
    prompt_tokens = _sum(parts, lambda part: part.prompt_tokens)
    output_tokens = _sum(parts, lambda part: part.output_tokens)
    columns: dict[str, Any] = {
        c.USER_INPUT: span.question,
        c.RESPONSE: span.answer,
        **_passage_columns(passages),
        c.HOPS: list_hops(found_by, passages or ()) or None,
        c.SESSION_ID: _first(part.session for part in (span, *parts, *tree.spans)),
        c.EARLIER_TURNS: show_messages(replace(said, calls=(), fields={}) for said in earlier) or None,
        c.EARLIER_ANSWERS: [said.text for said in earlier if said.role is Role.ASSISTANT] or None,
        c.TOOL_RESULTS: [result for part in parts for result in part.tool_results] or None,
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "latency": span.seconds,
        "prompt_tokens": prompt_tokens,
        "output_tokens": output_tokens,
        "tokens": None if prompt_tokens is output_tokens is None else (prompt_tokens or 0) + (output_tokens or 0),
        "model": answering.model or _first(part.model for part in reversed(parts)),
        "response_id": answering.response_id,
        "span_name": span.name or None,
    }
    extras = {name: value for name, value in _extras(tree, span).items() if name not in columns}
    return {name: value for name, value in {**columns, **extras}.items() if value is not None}


def combine_passages(spans: Iterable[Span]) -> list[RetrievedPassage] | None:
    """Return the passages that the steps of a trace found; None if no retriever recorded any.

    Retrievers are joined in the order in which they ended; a passage that several returned counts where it came
    first. What a reranker returns takes the place of the passages it got: those that it recorded, or all so far.
    A retriever inside a retriever is a part of it.
    """
    steps = _find_steps(spans)
    if not steps:
        return None
    found: list[RetrievedPassage] = []
    for step in steps:
        passages = step.passages or []
        if step.kind is Kind.RERANKER:
            replaced = None if step.candidates is None else {_key(passage) for passage in step.candidates}
            found = [each for each in found if replaced is not None and _key(each) not in replaced]
            known = [*(step.candidates or ()), *(each for other in steps for each in other.passages or ())]
            found = [*_with_texts(passages, known), *found]
        else:
            found = [*found, *passages]
    unique: dict[tuple[str | None, str | None], RetrievedPassage] = {}
    for passage in found:
        unique.setdefault(_key(passage), passage)
    return list(unique.values())


def _find_steps(spans: Iterable[Span]) -> list[Span]:
    """Return the retrievers and rerankers that recorded passages, in the order in which they ended."""
    spans = list(spans)
    steps = [span for span in spans if span.kind in _RETRIEVAL and span.passages is not None]
    inside = _inside({span.span_id for span in steps}, spans)
    steps = [span for span in steps if span.key not in inside or span.kind is Kind.RERANKER]
    return sorted(steps, key=lambda span: (_end(span), span.kind is Kind.RERANKER))


def list_hops(spans: Iterable[Span], passages: Iterable[RetrievedPassage]) -> list[dict[str, Any]]:
    """Return each retrieval with its query and the places of its passages; empty if there are not several."""
    places = {_key(passage): place for place, passage in enumerate(passages)}
    steps = [step for step in _find_steps(spans) if step.kind is Kind.RETRIEVER]
    found = [[places.get(_key(passage)) for passage in step.passages or ()] for step in steps]
    hops = [{"query": step.question, "passages": each} for step, each in zip(steps, found, strict=True)]
    return hops if len(hops) > 1 else []


def _inside(outer: Collection[str], spans: Iterable[Span]) -> set[str]:
    """Return the keys of spans that are below one of the spans with these ids."""
    parents = {span.span_id: span.parent_id for span in spans if not span.clashes}
    found = set()
    for span in spans:
        above, seen = span.parent_id, {span.span_id}
        while above is not None and above not in seen and above not in outer:
            seen.add(above)
            above = parents.get(above)
        if above in outer and above not in seen:
            found.add(span.key)
    return found


def _with_texts(passages: Iterable[RetrievedPassage], known: Iterable[RetrievedPassage]) -> list[RetrievedPassage]:
    """Return passages with the texts of known ones of the same id, where a reranker recorded only ids."""
    texts = {passage.id: passage.text for passage in known if passage.id is not None and passage.text is not None}
    return [
        RetrievedPassage(texts.get(passage.id or ""), passage.id, passage.score) if passage.text is None else passage
        for passage in passages
    ]


def order_as_prompted(passages: Sequence[RetrievedPassage], prompt: str | None) -> list[RetrievedPassage]:
    """Return passages in the order in which a prompt has them; those that it lacks follow, in their own order.

    >>> order_as_prompted([RetrievedPassage("Rain."), RetrievedPassage("Snow.")], "Snow. Rain. Why?")
    [RetrievedPassage(text='Snow.', id=None, score=None), RetrievedPassage(text='Rain.', id=None, score=None)]
    """
    if prompt is None:
        return list(passages)
    places = [-1 if not passage.text else prompt.find(passage.text) for passage in passages]
    order = sorted(range(len(passages)), key=lambda index: places[index] if places[index] >= 0 else len(prompt))
    return [passages[index] for index in order]


def _passage_columns(passages: Sequence[RetrievedPassage] | None) -> dict[str, Any]:
    if passages is None:
        return {}
    brought = companions(c.RETRIEVED_CONTEXTS, passages)
    if passages and all(passage.text is None for passage in passages):
        return brought  # a retriever that records ids and scores alone
    return {c.RETRIEVED_CONTEXTS: [passage.text or "" for passage in passages], **brought}


def _key(passage: RetrievedPassage) -> tuple[str | None, str | None]:
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
    return _start(span) if span.end is None or span.is_backwards else span.end
