"""Evaluate 12 configurations of a small search over the handbook together, and each alone with a cache of its own.

The chunks have 40 or 90 words, the search is BM25, TF-IDF or the packaged embedding model, and answers are made of the
two sentences of the 2 or 5 best passages that are most like the question. Needs the packages rank-bm25
and scikit-learn.

    python -m benchmarks.many_configurations --out /tmp/configurations
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rank_bm25 import BM25Okapi
from sklearn.feature_extraction.text import TfidfVectorizer

from tasks.opening.backends import load_embedder
from tasks.options.embedder_options import EmbedderSettings

ROOT = Path(__file__).parents[1]
MATRIX = f"""
source = "{ROOT}/examples/handbook.jsonl"
metrics = ["context_recall", "faithfulness", "answer_correctness"]
out = "together"

[retriever]
index = "benchmarks.many_configurations:Search"
generator = "benchmarks.many_configurations:Quote"
options = {{ words = "{{words}}", search = "{{search}}" }}
top_k = "{{top_k}}"

[axes]
words = [40, 90]
search = ["bm25", "tfidf", "minilm"]
top_k = [2, 5]
"""


def cut(words: int) -> list[str]:
    """The sections of the handbook, cut between sentences into chunks of about so many words."""
    chunks = []
    for path in sorted((ROOT / "examples" / "handbook").glob("*.md")):
        for section in path.read_text(encoding="utf-8").split("\n## ")[1:]:
            chunk: list[str] = []
            for sentence in split_sentences(section.partition("\n")[2].strip()):
                chunk.append(sentence)
                if len(" ".join(chunk).split()) >= words:
                    chunks.append(" ".join(chunk))
                    chunk = []
            if chunk:
                chunks.append(" ".join(chunk))
    return chunks


def split_sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+", " ".join(text.split()))


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


class Search:
    """A search of the chunks, the best first."""

    def __init__(self, words: int, search: str) -> None:
        self.identity = f"{search} of chunks of {words} words"
        self.chunks = cut(words)
        if search == "bm25":
            model = BM25Okapi(list(map(tokens, self.chunks)))
            self.score = lambda query: model.get_scores(tokens(query))
        elif search == "tfidf":
            vectorizer = TfidfVectorizer(sublinear_tf=True).fit(self.chunks)
            found = vectorizer.transform(self.chunks)
            self.score = lambda query: (found @ vectorizer.transform([query]).T).toarray()[:, 0]
        else:
            embedder = load_embedder(EmbedderSettings())
            vectors = embedder.embed(self.chunks)
            self.score = lambda query: vectors @ embedder.embed([query])[0]

    def retrieve(self, query: str) -> Sequence[str]:
        return [self.chunks[place] for place in np.argsort(-self.score(query), kind="stable")[:5]]


class Quote:
    """The two sentences of the passages that share most words with the question, in their order."""

    def generate(self, query: str, passages: Sequence[str]) -> str:
        wanted = set(tokens(query))
        sentences = [sentence for passage in passages for sentence in split_sentences(passage)]
        shared = [-len(wanted & set(tokens(sentence))) / (8 + len(tokens(sentence))) for sentence in sentences]
        return " ".join(sentences[place] for place in sorted(np.argsort(shared, kind="stable")[:2]))


def assay(folder: Path, home: str, *arguments: str) -> None:
    environment = {**os.environ, "ASSAY_HOME": str(folder / home), "PYTHONPATH": f"{ROOT}:{ROOT}/deployments/public"}
    program = Path(sys.executable).with_name("assay")
    subprocess.run([program, *arguments], cwd=folder, env=environment, check=True, stdin=subprocess.DEVNULL)


def main() -> None:
    """Print the questions asked for the runs together, and for each alone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the runs and caches")
    folder = parser.parse_args().out
    folder.mkdir(parents=True)
    (folder / "matrix.toml").write_text(MATRIX, encoding="utf-8")
    text = MATRIX.partition("[axes]")[0].replace('out = "together"\n', "")
    asked: dict[str, list[int]] = {"together": [], "alone": []}
    try:
        assay(folder, "home", "run", "--matrix", "matrix.toml")
        for run in sorted(each for each in (folder / "together").iterdir() if each.is_dir()):
            words, search, top_k = run.name.split("-")
            own = text.replace('"{words}"', words).replace("{search}", search).replace('"{top_k}"', top_k)
            own = f'tables = "own/{run.name}"\ncache = "own/{run.name}.db"\n{own}'
            (folder / "alone.toml").write_text(own, encoding="utf-8")
            assay(folder, "home", "run", "alone.toml", "--out", f"alone/{run.name}")
            for way, found in asked.items():
                usage = json.loads((folder / way / run.name / "run.json").read_text(encoding="utf-8"))["usage"]
                found.append(usage["questions"] - usage["stored"])
            print(run.name, *(found[-1] for found in asked.values()))
    finally:
        assay(folder, "home", "server", "stop")
    together, alone = map(sum, asked.values())
    print(f"questions asked: {together:,} together, {alone:,} alone: {together / alone:.0%}")


if __name__ == "__main__":
    main()
