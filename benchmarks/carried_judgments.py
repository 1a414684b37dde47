"""Measure what re-chunking and edits do to relevance judgments that are kept by text.

1. The same articles cut into 128, 256 and 512 tokens: the scores of a retriever that knows the evidence, and of one
   that begins with a wrong passage; by the spans of evidence, and by passage.
2. Judgments of whole passages of 128 tokens, carried to other cuts.
3. 5 % of the articles edited, with changes in the evidence and beside it, for several draws of both: what is carried,
   asked, flagged.
4. 200 planted cases for each of three draws: numbers, names, negations and opposites changed, words added and removed,
   and the same or nearly the same text in another document.
5. CPU seconds per 10,000 chunks.

In 3 and 4, evidence is known with its document; by its text and the words beside it, as they were kept when it was
found in an earlier index of chunks of 256 tokens; or by its text alone. In the last two cases the chunks have no
documents.

The articles are those of WiCE (`../shared/meta_eval` beside the repository; says so and ends without it); a token is a
piece of a word of at most six letters, so chunks are cut inside words too. `python -m benchmarks.carried_judgments`.
"""

import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow.parquet as pq

from benchmarks.labelled_examples import DATA
from benchmarks.perturbations import names_in, perturb
from metric_core.evidence import Evidence
from metric_core.evidence_spans import EvidenceSpan, PlacedSpan, SpanState, passage_grades
from metric_core.metrics.registry import parse_request
from metric_core.records import Sample
from tasks.sources.anchoring.span_places import Chunk, SpanPlaces
from tasks.sources.anchoring.span_text import normal_text

CUTS = (128, 256, 512)
OVERLAPS = (*((tokens, 0) for tokens in CUTS), (256, 64))
"""Sizes of chunks in tokens, and how many of them the next chunk repeats."""
METRICS = ("ndcg(k=10)", "retrieval_recall(k=10)", "average_precision", "reciprocal_rank")
_TOKEN = re.compile(r"\s*(?:\w{1,6}|[^\w\s])")
_FEWEST_WORDS = 6
_EARLIER = 256
"""Tokens of the chunks of the index in which the words beside evidence were found."""
KNOWN, BESIDE, ALONE = "documents known", "text and the words beside it", "text alone"
EDITS, PLANTED = range(2, 7), (3, 13, 23)
"""Seeds of the draws."""
_FILE = DATA / "claims_wice.parquet"


@dataclass(frozen=True)
class Corpus:
    """Documents, and the evidence of each question in them."""

    documents: Mapping[str, str]
    evidence: Mapping[str, tuple[EvidenceSpan, ...]]

    @property
    def spans(self) -> list[EvidenceSpan]:
        """All spans of evidence."""
        return [span for spans in self.evidence.values() for span in spans]


def read_corpus() -> Corpus:
    """Return the articles of WiCE; evidence of a claim are the sentences that people chose for it."""
    documents: dict[str, str] = {}
    evidence: dict[str, tuple[EvidenceSpan, ...]] = {}
    names: dict[str, str] = {}
    for row in pq.read_table(_FILE).to_pylist():
        sentences = row["evidence_sentences"]
        text = "\n".join(sentences)
        name = names.setdefault(text, f"article-{len(names)}")
        documents[name] = text
        chosen = {place for group in row["label_supporting_sentences"] for place in group}
        first = set(row["label_supporting_sentences"][0]) if row["label_supporting_sentences"] else set()
        spans = []
        for place in sorted(chosen):
            start = len("\n".join(sentences[:place])) + (place > 0)
            if len(sentences[place].split()) >= _FEWEST_WORDS:
                end = start + len(sentences[place])
                spans.append(EvidenceSpan(sentences[place], name, start, end, 2.0 if place in first else 1.0))
        if spans:
            evidence[row["id"]] = tuple(spans)
    return Corpus(documents, evidence)


def cut(documents: Mapping[str, str], tokens: int, overlap: int = 0) -> list[Chunk]:
    """Return the chunks of documents."""
    chunks = []
    for name, text in documents.items():
        ends = [match.end() for match in _TOKEN.finditer(text)]
        for first in range(0, len(ends), tokens - overlap):
            start, end = ends[first - 1] if first else 0, ends[min(first + tokens, len(ends)) - 1]
            chunks.append(Chunk(f"{name}/{tokens}/{first}", text[start:end], name, start, end))
            if first + tokens >= len(ends):
                break
    return chunks


def place_all(spans: Iterable[EvidenceSpan], chunks: Sequence[Chunk]) -> Callable[[EvidenceSpan], PlacedSpan]:
    """Return a function that places the spans in chunks."""
    places = SpanPlaces(spans)
    places.read(chunks)
    return places.place


def ranking(placed: Sequence[PlacedSpan]) -> list[str]:
    """Return the passages with evidence, those with the best first, and of them those with most."""
    sizes: dict[str, float] = {}
    gains: dict[str, float] = {}
    for each in placed:
        for part in each.parts:
            sizes[part.passage] = sizes.get(part.passage, 0.0) + part.end - part.start
            gains[part.passage] = gains.get(part.passage, 0.0) + (part.end - part.start) * each.span.grade
    return sorted(sizes, key=lambda name: (-round(gains[name] / sizes[name], 6), -sizes[name]))


def score(ids: Sequence[str], grades: Mapping[str, float], placed: Sequence[PlacedSpan], metric: str) -> float | None:
    """Return the score of a ranking, by spans if there are any."""
    row = Sample(
        retrieved_context_ids=tuple(ids), relevance_judgments=grades, evidence_spans=tuple(placed) if placed else None
    )
    return parse_request(metric).score(Evidence(row)).value


def measure_cuts(corpus: Corpus, judged: Mapping[str, Sequence[EvidenceSpan]], title: str) -> None:
    """Print the mean scores of two retrievers for each size of chunks, by spans and by passages."""
    spans = [span for each in judged.values() for span in each]
    print(f"\n{title}: {len(judged)} questions, {len(spans)} spans")
    sizes = " | ".join(f"{tokens} (+{overlap})" if overlap else str(tokens) for tokens, overlap in OVERLAPS)
    print(f"| retriever | judged | metric | {sizes} | most apart |\n|---|---|---|" + "---|" * (len(OVERLAPS) + 1))
    found = [place_all(spans, cut(corpus.documents, *size)) for size in OVERLAPS]
    for retriever, before in {"knows all": (), "begins with a wrong passage": ("wrong",)}.items():
        for by in ("span", "passage"):
            for metric in METRICS:
                means = []
                for place in found:
                    values = []
                    for own in judged.values():
                        placed = [place(span) for span in own]
                        grades = passage_grades(placed)
                        ids = [*before, *ranking(placed)]
                        values.append(score(ids, grades, placed if by == "span" else (), metric))
                    scored = [value for value in values if value is not None]
                    means.append(sum(scored) / len(scored))
                cells = " | ".join(f"{mean:.3f}" for mean in means)
                print(f"| {retriever} | by {by} | {metric} | {cells} | {max(means) - min(means):.3f} |")


def judged_passages(corpus: Corpus, tokens: int) -> dict[str, list[EvidenceSpan]]:
    """Return judgments of whole passages: those that hold evidence, with the highest grade of it."""
    chunks = cut(corpus.documents, tokens)
    by_id = {chunk.id: chunk for chunk in chunks}
    place = place_all(corpus.spans, chunks)
    judged = {}
    for query, spans in corpus.evidence.items():
        grades = passage_grades(place(span) for span in spans)
        passages = [(by_id[name], grade) for name, grade in grades.items()]
        judged[query] = [
            EvidenceSpan(each.text, each.document, each.start, each.end, grade) for each, grade in passages
        ]
    return judged


def known_by(way: str, spans: Sequence[EvidenceSpan], corpus: Corpus) -> list[EvidenceSpan]:
    """Return spans as they are known: with their documents, with the words beside them, or by their text alone."""
    if way == KNOWN:
        return list(spans)
    place = place_all(spans, cut(corpus.documents, _EARLIER))
    named = [place(span).span if way == BESIDE else span for span in spans]
    return [replace(span, document=None, start=None, end=None) for span in named]


def shown_by(way: str, chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return chunks as the index shows them: with their documents, or without."""
    return [chunk if way == KNOWN else replace(chunk, document=None, start=None, end=None) for chunk in chunks]


def is_strayed(placed: PlacedSpan, document: str | None) -> bool:
    """Return whether a span was carried to another document, and not to its own."""
    holders = {part.passage.split("/")[0] for part in placed.parts}
    return placed.state is SpanState.CARRIED and document not in holders


def edit(corpus: Corpus, share: float, seed: int) -> tuple[dict[str, str], set[EvidenceSpan]]:
    """Return documents, a share of which is edited, in two spans of evidence and three places beside it.

    Returns:
        The documents, and the spans whose words their documents hold no longer.
    """
    draw = random.Random(seed)
    by_document: dict[str, list[EvidenceSpan]] = {}
    for span in corpus.spans:
        by_document.setdefault(span.document or "", []).append(span)
    names = names_in([span.text for span in corpus.spans])
    documents, edited = dict(corpus.documents), set[EvidenceSpan]()
    for name in draw.sample(sorted(documents), round(share * len(documents))):
        lines = documents[name].split("\n")
        own = {span.text for span in by_document.get(name, ())}
        targets = draw.sample(sorted(own), min(2, len(own)))
        others = [line for line in lines if line not in own and len(line.split()) >= _FEWEST_WORDS]
        for line in (*targets, *draw.sample(others, min(3, len(others)))):
            changes = list(perturb(line, "", names))
            if changes:
                documents[name] = documents[name].replace(line, draw.choice(changes)[1])
        text = normal_text(documents[name])
        edited |= {span for span in by_document.get(name, ()) if normal_text(span.text) not in text}
    return documents, edited


def measure_edits(corpus: Corpus) -> None:
    """Print what becomes of the judgments of an index after 5 % of its documents were edited and cut again."""
    spans = list(dict.fromkeys(corpus.spans))
    draws = [edit(corpus, 0.05, seed) for seed in EDITS]
    print(f"\n5 % of {len(corpus.documents)} documents edited, {len(draws)} draws; {len(spans)} spans of evidence")
    print(
        "| cut | known | carried | asked | asked at most | lost | edited and flagged | edited and carried | strayed |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for tokens in CUTS:
        for way in (KNOWN, BESIDE, ALONE):
            known = known_by(way, spans, corpus)
            counts: Counter[str] = Counter()
            asked: list[int] = []
            for documents, edited in draws:
                place = place_all(known, shown_by(way, cut(documents, tokens)))
                placed = [place(span) for span in known]
                open_ones = [each.state in {SpanState.EDITED, SpanState.UNCERTAIN} for each in placed]
                asked.append(sum(open_ones))
                counts.update(each.state for each in placed)
                for span, each, is_open in zip(spans, placed, open_ones, strict=True):
                    counts["touched"] += span in edited
                    counts["flagged"] += is_open and span in edited
                    counts["hidden"] += each.state is SpanState.CARRIED and span in edited
                    counts["strayed"] += is_strayed(each, span.document)
            of_all = len(spans) * len(draws)
            shares = counts[SpanState.CARRIED] / of_all, sum(asked) / of_all, max(asked) / len(spans)
            cells = [f"{share:.1%}" for share in shares]
            cells += [str(counts[SpanState.LOST]), f"{counts['flagged']} of {counts['touched']}"]
            print("|", " | ".join([str(tokens), way, *cells, str(counts["hidden"]), str(counts["strayed"])]), "|")


def plant(corpus: Corpus, number: int, seed: int) -> list[tuple[str, EvidenceSpan, dict[str, str]]]:
    """Return planted cases: what was done, the old span, and the new documents; none may be carried."""
    draw = random.Random(seed)
    spans = draw.sample(list(dict.fromkeys(span for span in corpus.spans if len(span.text.split()) >= 8)), 400)
    names = names_in([span.text for span in spans])
    cases: list[tuple[str, EvidenceSpan, dict[str, str]]] = []
    counts: Counter[str] = Counter()
    for span in spans:
        text, words = corpus.documents[span.document or ""], span.text.split()
        if normal_text(text).count(normal_text(span.text)) > 1:
            continue
        place = draw.randrange(1, len(words) - 1)
        changes = dict(perturb(span.text, "", names))
        changes["word added"] = " ".join([*words[:place], "never", *words[place:]])
        changes["word removed"] = " ".join([*words[:place], *words[place + 1 :]])
        made = {kind: {span.document or "": text.replace(span.text, new)} for kind, new in changes.items()}
        gone = {span.document or "": text.replace(span.text, "")}
        made["same text in another document"] = {**gone, "other": f"About another matter.\n{span.text}\nThe end."}
        if "name" in changes:
            made["near duplicate in another document"] = {**gone, "other": f"Elsewhere:\n{changes['name']}\nThe end."}
        kinds = sorted((kind for kind in made if counts[kind] < number), key=lambda kind: counts[kind])
        if kinds:
            counts[kinds[0]] += 1
            cases.append((kinds[0], span, made[kinds[0]]))
    return cases


def measure_planted(corpus: Corpus) -> None:
    """Print how the planted cases are found."""
    cases = [case for seed in PLANTED for case in plant(corpus, 25, seed)]
    print(f"\n{len(cases)} planted cases, cut at 128 tokens")
    print("| case | known | cases | edited | uncertain | lost | carried |")
    print("|---|---|---|---|---|---|---|")
    for way in (KNOWN, BESIDE, ALONE):
        table: dict[str, Counter[SpanState]] = {}
        known = known_by(way, [old for _, old, _ in cases], corpus)
        for span, (kind, old, documents) in zip(known, cases, strict=True):
            others = {name: corpus.documents[name] for name in list(corpus.documents)[:20] if name != old.document}
            state = place_all([span], shown_by(way, cut({**documents, **others}, 128)))(span).state
            table.setdefault(kind, Counter())[state] += 1
        for kind, counts in sorted(table.items()):
            order = (SpanState.EDITED, SpanState.UNCERTAIN, SpanState.LOST, SpanState.CARRIED)
            cells = " | ".join(str(counts[state]) for state in order)
            print(f"| {kind} | {way} | {counts.total()} | {cells} |")


def measure_time(corpus: Corpus) -> None:
    """Print the CPU seconds per 10,000 chunks, for several numbers of spans."""
    print("\n| tokens | chunks | spans | CPU s per 10,000 chunks |\n|---|---|---|---|")
    spans = list(dict.fromkeys(corpus.spans))
    for tokens in CUTS:
        chunks = cut(corpus.documents, tokens)
        for number in (len(spans) // 10, len(spans)):
            started = time.process_time()
            place_all(spans[:number], chunks)
            seconds = (time.process_time() - started) * 10_000 / len(chunks)
            print(f"| {tokens} | {len(chunks):,} | {number:,} | {seconds:.2f} |")


def main() -> None:
    """Print all tables."""
    if not _FILE.exists():
        sys.exit(f"{_FILE} is missing: this benchmark needs the labelled data beside the repository")
    corpus = read_corpus()
    measure_cuts(corpus, corpus.evidence, "Sentences as evidence")
    measure_cuts(corpus, judged_passages(corpus, 128), "Passages of 128 tokens as evidence")
    measure_edits(corpus)
    measure_planted(corpus)
    measure_time(corpus)


if __name__ == "__main__":
    main()
