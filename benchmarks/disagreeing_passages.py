"""Measure how well passages that disagree are found, and how often rows are flagged whose passages do not.

1. 300 planted versions: a section of the handbook of the examples, of the documentation or of the description of an
   installed package, and a copy with another number, amount, share, duration, date, time, name, or a "not" too many or
   too few. Half of the copies also lack another sentence or have a new one. Found is a row that names both sentences.
2. The same sections with a value in another form or unit ("72 hours", "3 days"): no row should be flagged.
3. Rows without a planted conflict, of the handbook and of sets of questions and passages that people labelled.
4. Rows with and without a passage that was forged (RGB, RAMDocs): AUROC of how alike the most alike statements are.
5. An index of 100,000 chunks of four sentences of random words, with planted versions in other documents: how many
   pairs are named, CPU time and memory.

With `--judge URL [ROWS]`, only this: of so many rows of each set of 4, how many are flagged if the judge is asked, too.

What people labelled is read from `../shared` beside the repository; without it, 3 and 4 have the handbook only. The
thresholds were chosen on one half of the rows and sections (by a digest of the question or section); the figures are of
the other half. `python -m benchmarks.disagreeing_passages`.
"""

import json
import random
import re
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from itertools import chain, islice
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, TypeAlias

import numpy as np
import pyarrow.parquet as pq

from benchmarks.labelled_examples import DATA
from benchmarks.results_tables import publish
from metric_core.disagreements.conflicts import Disagreement, find_disagreements
from metric_core.words.lexicon import MONTHS
from rag_assay import evaluate
from tasks.disagreements.near_duplicates import NearDuplicates
from tasks.sources.anchoring.span_places import Chunk
from tasks.sources.chunk_file import IndexChunk

ROOT = Path(__file__).parents[1]
PLANTED = 300
CHUNKS = 100_000
SEED = 11
_FEWEST_WORDS = 6
_FORGED = ("noise_sensitivity", "context_precision_typed")
_READ = ("user_input", "retrieved_contexts", "context_kinds")
_MOST_ROWS, _SMALL = 600, 100
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_MONTHS = [name.capitalize() for name in MONTHS.values()]
_MONTH = "|".join(_MONTHS)
_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_WORD = "|".join(_WORDS)
_TIME_UNIT = r"(?:minutes?|hours?|days?|weeks?|months?|years?)"

Changes: TypeAlias = Mapping[str, tuple[str, Callable[[re.Match[str], random.Random], str]]]
"""Kind of change -> where it is possible, and what replaces the text there."""


@dataclass(frozen=True)
class Row:
    """A question with its passages, and the sentences that disagree, if any were planted."""

    name: str
    question: str
    passages: Sequence[str]
    planted: tuple[str, str] | None = None

    def find(self) -> list[Disagreement]:
        return find_disagreements(self.passages, self.question)


def sections() -> list[str]:
    """Return sections of 40 to 150 words: of the handbook, of the documentation and of installed packages."""
    files = [*sorted((ROOT / "examples" / "handbook").glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    texts = [path.read_text(encoding="utf-8") for path in files]
    packages = sorted(distributions(), key=lambda each: each.metadata["Name"] or "")
    texts += [str(each.metadata.json.get("description", "")) for each in packages]
    paragraphs = (" ".join(part.split()) for text in texts for part in re.split(r"\n\s*\n", text))
    return list(dict.fromkeys(part for part in paragraphs if _is_prose(part)))


def _is_prose(text: str) -> bool:
    letters = sum(character.isalpha() or character == " " for character in text)
    is_long = 40 <= len(text.split()) <= 150
    return (
        is_long
        and letters > 0.9 * len(text)
        and text[0].isalpha()
        and not re.search(r"[|=~_]|::|\(\)|```|>>>|--", text)
    )


def _more(text: str, draw: random.Random) -> str:
    number = int(text.replace(",", ""))
    step = draw.choice([1, 2, 5, 10, max(number // 2, 3)])
    return f"{number + step:,}" if "," in text else str(number + step)


def _word(text: str, draw: random.Random) -> str:
    return draw.choice([word for word in _WORDS if word != text])


def _group(replace: Callable[[str, random.Random], str]) -> Callable[[re.Match[str], random.Random], str]:
    """Return a function that replaces the first group of a match."""
    return lambda match, draw: match[0].replace(match[1], replace(match[1], draw), 1)


def _hour(text: str, draw: random.Random) -> str:
    return f"{(int(text) + draw.choice([1, 2, 3])) % 24:02}"


def _month(text: str, draw: random.Random) -> str:
    return draw.choice([month for month in _MONTHS if month != text])


def _name(_: str, draw: random.Random) -> str:
    return draw.choice(["Ingrid", "Marseille", "Kowalski", "Helsinki", "Vertex", "Okonkwo"])


CHANGES: Changes = {
    "amount": (r"[€$£](\d[\d,]*)\b(?![.%])", _group(_more)),
    "share": (r"\b(\d+) ?(?:%|percent)", _group(_more)),
    "duration": (rf"\b(\d+)[ -]{_TIME_UNIT}\b", _group(_more)),
    "duration in words": (rf"\b({_WORD}) {_TIME_UNIT}\b", _group(_word)),
    "date": (rf"\b\d+ ({_MONTH})\b", _group(_month)),
    "time": (r"\b(\d\d):\d\d\b", _group(_hour)),
    "number": (r"(?<=[a-z] )(\d[\d,]*)(?= [a-z]{4,})", _group(_more)),
    "number in words": (rf"(?<=[a-z] )({_WORD})(?= [a-z]+s\b)", _group(_word)),
    "name": (rf"(?<= (?:of|by|in|to|at|on) )(?!{_MONTH})([A-Z][a-z]{{3,}})\b(?=[ .,;])", _group(_name)),
    "yes or no": (
        r"\b(is|are|was|were|can|may|must|should|will) (not )?(?=[a-z])",
        lambda match, _: f"{match[1]} " if match[2] else f"{match[1]} not ",
    ),
}
"""Kind of value -> where it stands, and what replaces it."""

FORMS: Changes = {
    "in words": (r"(?<![\d.,#$€£:-])\b(\d|1[0-2])(?= [a-z])", lambda match, _: _in_words(match[0])),
    "in digits": (rf"\b({_WORD})\b(?= [a-z])", lambda match, _: str(_WORDS.index(match[0]) + 2)),
    "hours": (r"(?<![#.]) ([2-9]) days\b", lambda match, _: f" {int(match[1]) * 24} hours"),
    "days": (r"(?<!# )\b(24|48|72) hours\b", lambda match, _: f"{int(match[1]) // 24} days"),
    "minutes": (r"\b(\d) hours?\b", lambda match, _: f"{int(match[1]) * 60} minutes"),
    "weeks": (r"\b(\d) weeks\b", lambda match, _: f"{int(match[1]) * 7} days"),
    "years": (r"\b(\d) years\b", lambda match, _: f"{int(match[1]) * 12} months"),
    "percent": (
        r"\b(\d+)(?: percent| ?%)",
        lambda match, _: f"{match[1]}%" if "p" in match[0] else f"{match[1]} percent",
    ),
    "euros": (r"€(\d[\d,]*)", lambda match, _: f"{match[1].replace(',', ' ')} euros"),
    "dollars": (r"\$(\d+)\b(?!\.)", lambda match, _: f"{match[1]} dollars"),
    "date": (rf"\b(\d+) ({_MONTH})\b", lambda match, _: f"{match[2]} {match[1]}"),
    "time": (r"\b(1[3-9]|2[0-3]):(\d\d)\b", lambda match, _: f"{int(match[1]) - 12}:{match[2]} p.m."),
    "thousands": (r"\b(\d),(\d{3})\b", lambda match, draw: match[1] + draw.choice(["", " "]) + match[2]),
}
"""Other form of a value -> where it can be used, and how it is written."""


def _in_words(digits: str) -> str:
    number = int(digits)
    return _WORDS[number - 2] if 2 <= number <= 12 else digits


def plant(texts: Sequence[str], changes: Changes, count: int) -> Iterator[Row]:
    """Yield rows with a section, a version of it with one sentence changed, and three others; each kind in its turn."""
    draw = random.Random(SEED)
    order = draw.sample(list(texts), len(texts))
    places = [(text, place) for text in order for place in range(len(_SENTENCE.split(text)))]
    left = {kind: iter(places) for kind in changes}
    made = 0
    while left and made < count:
        for kind in [*left][: count - made]:
            row = next((row for text, place in left[kind] if (row := _version(changes, kind, text, place, draw))), None)
            if row is None:
                del left[kind]
                continue
            made += 1
            passages = [*row.passages, *draw.sample(order, 3)]
            draw.shuffle(passages)
            yield replace(row, passages=passages)


def _version(changes: Changes, kind: str, text: str, place: int, draw: random.Random) -> Row | None:
    """Return a section and a version of it, which may also lack a sentence or have a new one; None if none can be."""
    pattern, change = changes[kind]
    sentences = _SENTENCE.split(text)
    old = sentences[place]
    match = re.search(pattern, old)
    if match is None or len(old.split()) < _FEWEST_WORDS:
        return None
    new = old[: match.start()] + change(match, draw) + old[match.end() :]
    if new == old:
        return None
    version = [*sentences[:place], new, *sentences[place + 1 :]]
    others = [at for at in range(len(version)) if at != place]
    edit = draw.choice(["none", "none", "dropped", "added"])
    if edit == "dropped" and len(others) > 1:
        del version[draw.choice(others)]
    elif edit == "added":
        version.insert(draw.randrange(len(version) + 1), "Please tell your team lead if anything here is unclear.")
    asked = [word for word in re.findall(r"[a-z]{4,}", old) if word not in _WORDS][:6]
    return Row(kind, f"What about {' '.join(asked)}?", [text, " ".join(version)], (old, new))


def is_named(row: Row) -> bool:
    """Return whether a disagreement has both planted sentences."""
    assert row.planted is not None
    pairs = ({each.one.statement, each.other.statement} for each in row.find())
    return any(all(any(_is_part(said, whole) for said in pair) for whole in row.planted) for pair in pairs)


def _is_part(statement: str, sentence: str) -> bool:
    return statement.strip() in sentence or sentence in statement


def clean_rows(half: int) -> Iterator[Row]:
    """Yield the rows without a planted conflict of one half, and all of small sets."""
    handbook = ROOT / "examples" / "handbook.jsonl"
    sets = {"handbook": [json.loads(line) for line in handbook.read_text(encoding="utf-8").splitlines()]}
    for path in sorted((*DATA.glob("*.parquet"), *(DATA.parent / "rag_logs").glob("*.parquet"))):
        if path.stem not in _FORGED and "retrieved_contexts" in pq.read_schema(path).names:
            sets[path.stem] = pq.read_table(path).to_pylist()
    for name, found in sets.items():
        distinct = dict.fromkeys((row.get("user_input") or "", tuple(row["retrieved_contexts"] or ())) for row in found)
        rows = [Row(name, question, passages) for question, passages in distinct if len(passages) > 1]
        is_small = len(rows) < _SMALL
        yield from [row for row in rows if is_small or half_of(row.question or row.passages[0]) == half][:_MOST_ROWS]


def half_of(text: str) -> int:
    """Return the half of the rows that a text belongs to: 0 was used to choose thresholds, 1 was not."""
    return zlib.crc32(text.encode()) % 2


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return the probability that a positive one is above a negative one; a tie counts half."""
    one, other = np.array(positive)[:, None], np.array(negative)[None, :]
    return float(((one > other) + 0.5 * (one == other)).mean())


def report_planted(texts: Sequence[str]) -> Iterator[str]:
    """Yield how many planted versions are named, and how many other forms are flagged."""
    yield "1. Planted versions\n\n| kind | planted | named |\n|---|---|---|\n"
    counts, named = Counter[str](), Counter[str]()
    for row in plant(texts, CHANGES, PLANTED):
        counts[row.name] += 1
        named[row.name] += is_named(row)
        if "--show" in sys.argv and not is_named(row):
            print("MISSED", row.name, row.planted)
    for kind in counts:
        yield f"| {kind} | {counts[kind]} | {named[kind]} |\n"
    yield f"| all | {counts.total()} | {named.total()} |\n"
    yield "\n2. The same value in another form or unit\n\n| form | rows | flagged |\n|---|---|---|\n"
    counts, flagged = Counter[str](), Counter[str]()
    for row in plant(texts, FORMS, PLANTED):
        counts[row.name] += 1
        found = row.find()
        flagged[row.name] += bool(found)
        if "--show" in sys.argv and found:
            print("FLAGGED", row.name, found[0])
    for kind in counts:
        yield f"| {kind} | {counts[kind]} | {flagged[kind]} |\n"
    yield f"| all | {counts.total()} | {flagged.total()} |\n"


def report_clean(half: int) -> Iterator[str]:
    """Yield how many rows are flagged that have no planted conflict."""
    yield "\n3. Rows without a planted conflict\n\n| set | rows | flagged | ms a row |\n|---|---|---|---|\n"
    rows, flagged, seconds = Counter[str](), Counter[str](), defaultdict[str, float](float)
    for row in clean_rows(half):
        started = process_time()
        found = row.find()
        seconds[row.name] += process_time() - started
        rows[row.name] += 1
        flagged[row.name] += bool(found)
        if "--show" in sys.argv and found:
            print("FLAGGED", row.name, row.question[:80], found[0])
    for name, count in rows.items():
        yield f"| {name} | {count} | {flagged[name]} | {1000 * seconds[name] / count:.1f} |\n"
    share = flagged.total() / rows.total()
    mean = 1000 * sum(seconds.values()) / rows.total()
    yield f"| all | {rows.total()} | {flagged.total()} ({share:.1%}) | {mean:.1f} |\n"


def report_forged(half: int) -> Iterator[str]:
    """Yield how well rows with a forged passage are told from those without."""
    path = DATA / "noise_sensitivity.parquet"
    if not path.exists():
        yield f"\n4. Left out: there is no {path}\n"
        return
    yield "\n4. Rows with a forged passage beside a right one\n\n"
    yield "| set | rows | forged | AUROC | forged flagged | others flagged |\n|---|---|---|---|---|---|\n"
    alike: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for row in pq.read_table(path).to_pylist():
        if half_of(row["group_id"]) == half:
            found = find_disagreements(row["retrieved_contexts"], row["user_input"])
            alike[row["dataset"]][not _is_forged(row)].append(found[0].alike if found else 0.0)
    both = tuple([value for parts in alike.values() for value in parts[place]] for place in (0, 1))
    for name, (forged, others) in [*alike.items(), ("both", both)]:
        shares = [f"{sum(value > 0 for value in values)} of {len(values)}" for values in (forged, others)]
        count = len(forged) + len(others)
        yield f"| {name} | {count} | {len(forged)} | {auroc(forged, others):.3f} | {shares[0]} | {shares[1]} |\n"


def report_judged(half: int, judge: str, count: int) -> Iterator[str]:
    """Yield how many rows with and without a forged passage are flagged, without and with a judge."""
    yield "| set | rows | forged | flagged by values | flagged with the judge | asked |\n|---|---|---|---|---|---|\n"
    for name in ("rgb_en_fact", "ramdocs"):
        table = pq.read_table(DATA / "noise_sensitivity.parquet", columns=[*_READ, "dataset", "group_id"]).to_pylist()
        of_set = [row for row in table if row["dataset"] == name and half_of(row["group_id"]) == half]
        distinct = {(_is_forged(row), row["group_id"]): row for row in reversed(of_set)}
        rows = [
            {"id": f"{group}, {is_forged}", **{column: row[column] for column in _READ[:2]}, "forged": is_forged}
            for wanted in (True, False)
            for (is_forged, group), row in islice(
                (each for each in distinct.items() if each[0][0] == wanted), count // 2
            )
        ]
        flagged: dict[str, dict[str, bool]] = {}
        for metric in ("context_conflict", "context_conflict(pairs=6)"):
            with TemporaryDirectory() as folder:
                run = evaluate(rows, metrics=[metric], judge=judge, out=f"{folder}/run", name=name)
                flagged[metric] = {cell["row_id"]: cell["value"] == 1 for cell in run.scores().to_pylist()}
                asked = len(run.table("ratings").to_pylist()) if "(" in metric else 0
        for forged in (True, False):
            of = [row["id"] for row in rows if row["forged"] == forged]
            shares = [f"{sum(found[each] for each in of)} of {len(of)}" for found in flagged.values()]
            yield f"| {name} | {len(rows)} | {'yes' if forged else 'no'} | {shares[0]} | {shares[1]} | {asked} |\n"


def _is_forged(row: Mapping[str, Any]) -> bool:
    return {"misinfo", "relevant"} <= set(row["context_kinds"])


def _filler(words: Sequence[str], draw: random.Random, count: int) -> str:
    return " ".join(f"{' '.join(draw.sample(words, 14)).capitalize()}." for _ in range(count))


def report_index(texts: Sequence[str]) -> Iterator[str]:
    """Yield which pairs of chunks of a large index are named, and what that costs."""
    draw = random.Random(SEED)
    words = sorted({word for text in texts for word in re.findall(r"[a-z]{3,}", text)})
    chunks = [_filler(words, draw, 4) for _ in range(CHUNKS)]
    planted = [row.planted for row in plant(texts, CHANGES, PLANTED) if row.planted is not None]
    for place, (old, new) in zip(draw.sample(range(0, CHUNKS, 2), len(planted)), planted, strict=True):
        around = _filler(words, draw, 3)
        chunks[place], chunks[place + 1] = f"{around} {old}", f"{around} {new}"
    before, started = getrusage(RUSAGE_SELF).ru_maxrss, process_time()
    check = NearDuplicates()
    for number, text in enumerate(chunks):
        check.add(IndexChunk(Chunk(f"c{number}", text, f"d{number}"), {}))
    found = sum(each.count for each in check.findings())
    used = (getrusage(RUSAGE_SELF).ru_maxrss - before) / 1024
    yield "\n5. An index\n\n| chunks | planted pairs | pairs named | CPU seconds | MB |\n|---|---|---|---|---|\n"
    yield f"| {CHUNKS:,} | {len(planted)} | {found} | {process_time() - started:.0f} | {used:.0f} |\n"


def main() -> None:
    """Publish the tables of the half kept apart; `--tuning` prints those of the other one, `--show` what went wrong."""
    if "--judge" in sys.argv:
        judge, *rows = sys.argv[sys.argv.index("--judge") + 1 :]
        print(*report_judged(1, judge, int(rows[0]) if rows else _SMALL), sep="", end="")
        return
    is_tuning = "--tuning" in sys.argv
    half = 0 if is_tuning else 1
    texts = [text for text in sections() if half_of(text) == half]
    parts = chain(report_planted(texts), report_clean(half), report_forged(half), report_index(texts))
    name = "benchmarks/disagreeing_passages.py"
    write = not is_tuning and DATA.is_dir()
    publish(parts, f"<!-- begin: {name} -->", f"<!-- end: {name} -->", write=write)


if __name__ == "__main__":
    main()
