"""Plant faults in rebuilt indexes of real texts, and count how many the check of an index names.

    PYTHONPATH=. python benchmarks/index_receipt.py [--corpora 50] [--million]

The texts are documentation and licences of the installed packages, and the handbook of the examples. Prints a table:
each kind of fault once per corpus, equal rebuilds, plain re-chunkings, and the rows of a BM25 search whose scores
moved, with those that the check had named. With `--million`, the CPU time and memory of a million chunks instead.
"""

import argparse
import json
import math
import random
import re
import resource
import site
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from spacy.lang.de.examples import sentences as german_sentences
from spacy.lang.de.stop_words import STOP_WORDS

from tasks.index_receipt.index_changes import IndexChanges
from tasks.index_receipt.index_comparison import CheckRequest, check_index
from tasks.index_receipt.receipt import Receipt, ReceiptMaker
from tasks.index_receipt.receipt_findings import find_changes
from tasks.index_receipt.touched_rows import evidence_places, find_touched
from tasks.sources.anchoring.span_places import Chunk
from tasks.sources.chunk_file import IndexChunk

HANDBOOK = Path(__file__).parents[1] / "examples" / "handbook"
PATTERNS = ("*/METADATA", "*/licenses/**/*LICEN*", "*/LICEN*", "**/*.md", "**/*.rst")
SHARE = 0.05
"""Share of the documents that a fault damages."""
QUESTIONS = 30
TOP = 5
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Document:
    """A document of an index before it is cut."""

    name: str
    text: str
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cut:
    """A way to cut documents: by paragraphs up to a size, by sentences, or after so many characters."""

    kind: str
    size: int
    overlap: int = 0

    def pieces(self, text: str) -> Iterator[str]:
        if self.kind == "characters":
            step = self.size - self.overlap
            yield from (text[start : start + self.size] for start in range(0, max(len(text) - self.overlap, 1), step))
            return
        parts = re.split(r"(?<=\n\n)" if self.kind == "paragraphs" else r"(?<=[.!?])\s+(?=[A-Z])", text)
        held: list[str] = []
        for part in parts:
            if held and sum(map(len, held)) + len(part) > self.size:
                yield " ".join(held)
                held = held[len(held) - self.overlap :] if self.overlap else []
            held.append(part.strip())
        if held:
            yield " ".join(held)


Index = list[dict[str, Any]]


def read_texts() -> list[tuple[str, str]]:
    """Return the names and texts of documentation and licences, each text once."""
    root, found, seen = Path(site.getsitepackages()[0]), [], set()
    paths = [*sorted(HANDBOOK.glob("*.md"))]
    paths += sorted({path for pattern in PATTERNS for path in root.glob(pattern) if path.is_file()})
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="ignore")
        if path.name == "METADATA":
            text = text.partition("\n\n")[2]
        text = text[:12_000].strip()
        key = "".join(text.split())[:2000]
        if len(text) < 1500 or key in seen:
            continue
        seen.add(key)
        found.append((f"{path.parent.name}/{path.name}", text))
    return list({name: (name, text) for name, text in found}.values())


def german(rng: random.Random, number: int) -> Document:
    words = sorted(STOP_WORDS)
    text = " ".join([*rng.sample(german_sentences, 2), *(f"{' '.join(rng.choices(words, k=12))}." for _ in range(30))])
    return Document(f"de/{number}.md", text)


def chunks_of(documents: Sequence[Document], cut: Cut, version: str) -> Index:
    return [
        {"id": f"{version}-{document.name}-{number}", "document": document.name, "text": piece, **document.fields}
        for document in documents
        for number, piece in enumerate(cut.pieces(document.text))
    ]


def index_chunks(index: Index) -> Iterator[IndexChunk]:
    for row in index:
        yield IndexChunk(Chunk(row["id"], row["text"], row["document"]), row)


def make_receipt(index: Index) -> Receipt:
    maker = ReceiptMaker()
    for each in index_chunks(index):
        maker.add(each)
    return maker.finish()


@dataclass
class World:
    """A corpus, and what a fault may need."""

    rng: random.Random
    documents: list[Document]
    spare: list[Document]
    cut: Cut

    @property
    def chosen(self) -> list[Document]:
        return self.rng.sample(self.documents, max(3, round(SHARE * len(self.documents))))

    def change(self, change: Callable[[Document], Document | None], chosen: Sequence[Document]) -> Index:
        names = {each.name for each in chosen}
        found = [change(each) if each.name in names else each for each in self.documents]
        return chunks_of([each for each in found if each is not None], self.cut, "1")

    def change_chunks(self, change: Callable[[dict[str, Any]], dict[str, Any]], chosen: Sequence[Document]) -> Index:
        names = {each.name for each in chosen}
        index = chunks_of(self.documents, self.cut, "1")
        return [change(row) if row["document"] in names else row for row in index]


def make_world(seed: int, texts: Sequence[tuple[str, str]]) -> World:
    rng = random.Random(seed)
    drawn = rng.sample(texts, 100)
    made = [
        Document(
            name,
            text,
            {
                "title": text.split("\n")[0][:60] or "untitled",
                "updated_at": f"2026-0{rng.randint(1, 9)}-{rng.randint(10, 28)}",
                "acl": rng.choice([["hr"], ["legal"], ["all"], ["all", "legal"]]),
                "embedding_model": "minilm",
            },
        )
        for name, text in drawn
    ]
    cut = rng.choice([Cut("paragraphs", 900), Cut("paragraphs", 500), Cut("sentences", 700), Cut("sentences", 500, 1)])
    return World(rng, made[:80], made[80:], cut)


def _edit(world: World) -> Callable[[Document], Document]:
    def edit(document: Document) -> Document:
        words = document.text.split(" ")
        place = world.rng.randrange(len(words) // 4, len(words) // 2)
        words[place : place + 3] = ["no", "longer", str(world.rng.randint(100, 999))]
        return replace(document, text=" ".join(words))

    return edit


def _garble(document: Document) -> Document:
    text = document.text.replace("'", "\u2019").replace('"', "\u201c").replace("e ", "é ", 20)
    return replace(document, text=text.encode().decode("cp1252", errors="replace"))


def _mark_up(document: Document) -> Document:
    return replace(document, text="".join(f"<p>{part}</p>&nbsp;<br/>" for part in document.text.split("\n")))


def _without(name: str) -> Callable[[Document], Document]:
    return lambda document: replace(
        document, fields={key: each for key, each in document.fields.items() if key != name}
    )


def _with(**fields: Any) -> Callable[[Document], Document]:
    return lambda document: replace(document, fields={**document.fields, **fields})


def _truncate(row: dict[str, Any]) -> dict[str, Any]:
    text = row["text"][: int(len(row["text"]) * 0.6)].rstrip()
    return {**row, "text": re.sub(r"[^\w]+$", "", text)}


def _double(world: World) -> Index:
    chosen = world.chosen
    index = chunks_of(world.documents, world.cut, "1")
    if world.rng.random() < 0.5:
        return index + chunks_of(chosen, world.cut, "2")  # written twice under their own names
    return index + chunks_of([replace(each, name=f"copy of {each.name}") for each in chosen], world.cut, "1")


def _lose_group(world: World) -> Index:
    return chunks_of(
        [_without("acl")(each) if each.fields["acl"] == ["hr"] else each for each in world.documents], world.cut, "1"
    )


def _boilerplate(document: Document) -> Document:
    return replace(document, text=f"Home | Products | Support | Sign in to your account\n\n{document.text}")


FAULTS: dict[str, tuple[str, Callable[[World], Index]]] = {
    "documents lost": ("lost", lambda w: w.change(lambda _: None, w.chosen)),
    "documents added": ("added", lambda w: chunks_of([*w.documents, *w.spare[:4]], w.cut, "1")),
    "a few words edited": ("edited", lambda w: w.change(_edit(w), w.chosen)),
    "documents doubled": ("doubled", _double),
    "documents renamed": ("moved", lambda w: w.change(lambda d: replace(d, name=f"new/{d.name}"), w.chosen)),
    "chunks emptied": ("empty", lambda w: w.change_chunks(lambda r: {**r, "text": " "}, w.chosen)),
    "chunks truncated": ("truncated", lambda w: w.change_chunks(_truncate, w.chosen)),
    "wrong encoding": ("mangled", lambda w: w.change(_garble, w.chosen)),
    "markup left in": ("mangled", lambda w: w.change(_mark_up, w.chosen)),
    "a menu on every page": ("mangled", lambda w: w.change(_boilerplate, w.documents)),
    "titles lost": ("metadata", lambda w: w.change(_without("title"), w.chosen)),
    "permissions of a group lost": ("unprotected", _lose_group),
    "a group added to permissions": ("permissions", lambda w: w.change(_with(acl=["hr", "guests"]), w.chosen)),
    "older versions": ("older", lambda w: w.change(_with(updated_at="2025-03-01"), w.chosen)),
    "documents in German instead": (
        "language",
        lambda w: chunks_of([*w.documents[6:], *(german(w.rng, number) for number in range(6))], w.cut, "1"),
    ),
    "another embedder": ("embedder", lambda w: w.change(_with(embedding_model="e5"), w.documents)),
}
"""Fault -> kind of the finding that names it, and a function that plants it."""
MOVE_SCORES = (
    "documents lost", "documents added", "a few words edited", "documents doubled", "chunks emptied",
    "chunks truncated", "wrong encoding", "markup left in",
)  # fmt: skip
"""Faults after which scores of the search are computed again."""


def other_cut(world: World) -> Cut:
    return world.rng.choice(
        [Cut("characters", 400), Cut("characters", 800, 120), Cut("paragraphs", 1500), Cut("sentences", 300)]
    )


class Search:
    """BM25 over the chunks of an index."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.places: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.lengths = []
        for place, row in enumerate(index):
            words = Counter(_WORD.findall(row["text"].casefold()))
            self.lengths.append(sum(words.values()))
            for word, count in words.items():
                self.places[word].append((place, count))
        self.mean = max(sum(self.lengths) / max(len(index), 1), 1)

    def best(self, question: str) -> list[dict[str, Any]]:
        scores: dict[int, float] = defaultdict(float)
        for word in {*_WORD.findall(question.casefold())}:
            held = self.places.get(word, ())
            weight = math.log(1 + (len(self.index) - len(held) + 0.5) / (len(held) + 0.5))
            for place, count in held:
                scores[place] += weight * count * 2.2 / (count + 0.3 + 0.9 * self.lengths[place] / self.mean)
        return [self.index[each] for each in sorted(scores, key=lambda each: (-scores[each], each))[:TOP]]


def ask(world: World, index: Index) -> list[tuple[str, str]]:
    """Return questions and the text that answers each."""
    found = []
    for row in world.rng.sample(index, min(3 * QUESTIONS, len(index))):
        sentences = [each for each in re.split(r"(?<=[.!?])\s+", row["text"]) if 8 <= len(each.split()) <= 40]
        if sentences:
            answer = world.rng.choice(sentences)
            words = _WORD.findall(answer)
            found.append((" ".join(world.rng.sample(words, max(3, len(words) // 2))), answer))
    return found[:QUESTIONS]


def score(passages: Sequence[dict[str, Any]], answer: str) -> float:
    """Return the reciprocal rank of the first passage with the answer."""
    wanted = "".join(answer.split())
    ranks = (rank for rank, row in enumerate(passages, start=1) if wanted in "".join(row["text"].split()))
    return 1 / next(ranks, math.inf)


def compare(old: Index, new: Index) -> tuple[IndexChanges, dict[str, int]]:
    changes = IndexChanges(make_receipt(old), make_receipt(new))
    return changes, {each.kind: each.count for each in find_changes(changes, {})}


def moved_rows(world: World, old: Index, new: Index, changes: IndexChanges) -> Counter[str]:
    """Count the rows whose scores moved, those that were named, and both."""
    questions, before, after = ask(world, old), Search(old), Search(new)
    rows, moved = [], set()
    for number, (question, answer) in enumerate(questions):
        passages = before.best(question)
        document = next((row["document"] for row in passages if answer in row["text"]), None)
        rows.append(
            {
                "row_id": str(number),
                "retrieved_contexts": [row["text"] for row in passages],
                "evidence_spans": [{"text": answer, "document": document}],
            }
        )
        if score(passages, answer) != score(after.best(question), answer):
            moved.add(str(number))
    tables = [pa.Table.from_pylist(rows)]
    places = evidence_places(tables)
    places.read(each.chunk for each in index_chunks(new))
    named = {*find_touched(changes, tables, places).rows}
    return Counter(rows=len(rows), moved=len(moved), named=len(named), both=len(moved & named))


def run(corpora: int) -> None:
    texts = read_texts()
    print(f"{len(texts):,} texts; {corpora} corpora of 80 documents\n")
    named: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    clean: Counter[str] = Counter()
    for seed in range(corpora):
        world = make_world(seed, texts)
        old = chunks_of(world.documents, world.cut, "1")
        for fault, (kind, plant) in FAULTS.items():
            new = plant(world)
            changes, kinds = compare(old, new)
            named[fault] += kind in kinds
            if kind not in kinds:
                print(f"missed: {fault}, corpus {seed}: {kinds}", file=sys.stderr)
            alone[fault] += {*kinds} <= {kind, "edited", "chunking", "lost", "added", "metadata"}
            if fault in MOVE_SCORES:
                rows[fault] += moved_rows(world, old, new, changes)
        shuffled = [*world.documents]
        world.rng.shuffle(shuffled)
        equal, loose = chunks_of(shuffled, world.cut, "9"), chunks_of(world.documents, world.cut, "1")
        world.rng.shuffle(loose)
        recut = chunks_of(shuffled, other_cut(world), "2")
        for name, new, allowed in (
            ("equal, documents in another order", equal, set()),
            ("equal, chunks in any order", loose, set()),
            ("re-chunked", recut, {"chunking"}),
        ):
            _, kinds = compare(old, new)
            clean[name] += {*kinds} == allowed
            if {*kinds} != allowed:
                print(f"clean: {name}, corpus {seed}, {world.cut}: {kinds}", file=sys.stderr)
    print("| fault | named | and nothing else | rows | scores moved | of these named | named in all |")
    print("|---|---|---|---|---|---|---|")
    for fault in FAULTS:
        c = rows[fault]
        shares = (
            f"{c['rows']:,} | {c['moved']:,} | {c['both'] / c['moved']:.0%} | {c['named']:,}"
            if c["moved"]
            else " | | |"
        )
        print(f"| {fault} | {named[fault]} of {corpora} | {alone[fault]} | {shares} |")
    total: Counter[str] = sum(rows.values(), Counter())
    print(f"\nrows with moved scores: {total['moved']:,}, named: {total['both'] / total['moved']:.1%}")
    for name, count in clean.items():
        print(f"{name}: {count} of {corpora} as they should be")


def measure_million() -> None:
    """Print the CPU time and the memory of the check of a million chunks against a receipt."""
    texts, rng = read_texts(), random.Random(1)
    pieces = [piece for _, text in texts for piece in Cut("sentences", 500).pieces(text)]
    with tempfile.TemporaryDirectory() as folder:
        chunks, receipt = Path(folder) / "chunks.jsonl", Path(folder) / "index.receipt"
        with chunks.open("w", encoding="utf-8") as file:
            for number in range(1_000_000):
                row: dict[str, Any] = {
                    "id": str(number),
                    "document": f"{number // 10}.md",
                    "text": f"{number} {rng.choice(pieces)}",
                }
                file.write(
                    json.dumps({**row, "title": "A title", "updated_at": "2026-02-03", "acl": ["hr", "all"]}) + "\n"
                )
        print(f"{chunks.stat().st_size / 1e6:,.0f} MB")
        for old in ([], [str(receipt)]):
            started = time.process_time()
            checked = check_index(CheckRequest([str(chunks)], old))
            if not old:
                checked.receipt.write(receipt)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            what, seconds = "compared with a receipt" if old else "receipt written", time.process_time() - started
            print(f"{what}: {seconds:.1f} CPU s, {peak:.2f} GB, {len(checked.findings)} findings")
        print(f"receipt: {receipt.stat().st_size / 1e6:,.1f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=int, default=50)
    parser.add_argument("--million", action="store_true")
    given = parser.parse_args()
    measure_million() if given.million else run(given.corpora)
