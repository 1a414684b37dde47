"""A graph of LangGraph that retrieves two or three times for an answer, from an index that lacks a needed fact.

It wrote `recorded/langgraph.jsonl.gz`, with langgraph 1.2, langchain-community 0.4 (BM25) and OpenInference's
instrumentor of LangChain 0.1.80, none of which the tests need:

    python -m tests.tasks.hops.langgraph_program tests/tasks/hops/recorded/langgraph.jsonl.gz

The model that writes queries and the answer is a script: it reads what was retrieved, as a model would.
"""

import gzip
import json
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

BIKES = ("Wren", "Pelican", "Kestrel", "Heron", "Swift", "Plover", "Merlin", "Osprey", "Lark", "Finch")
TOWNS = ("Leipzig", "Rotterdam", "Dublin", "Lisbon", "Graz", "Malmo", "Ghent", "Turin", "Bilbao", "Krakow")
LEADERS = (
    *("Ana Bruns", "Pieter van Dijk", "Siobhan Kelly", "Rui Matos", "Eva Lechner"),
    *("Nils Berg", "Lotte Claes", "Paolo Ricci", "Iker Sanz", "Ewa Nowak"),
)
PHONES = tuple(f"extension {4100 + 37 * place}" for place in range(10))
NOISE = (
    "Every bike leaves the hall with a bell, a lock and a printed manual.",
    "Vacation is requested in the Roster app at least two weeks ahead.",
    "The workshop floor is swept on Fridays, and tools are counted on Mondays.",
    "Invoices over 500 euros need the signature of a second person.",
)


def facts(bike: int) -> tuple[str, str, str]:
    """Return the facts about a bike, each of which the query for the next one needs."""
    town, leader, phone = TOWNS[bike], LEADERS[bike], PHONES[bike]
    return (
        f"The {BIKES[bike]} is repaired in the workshop of {town}.",
        f"The workshop of {town} is led by {leader}.",
        f"{leader} is reached at {phone}.",
    )


DOCUMENTS = {
    f"doc-{place}.md": text for place, text in enumerate((*chain.from_iterable(map(facts, range(10))), *NOISE))
}


class Writer(SimpleChatModel):
    """A model that writes the next query, or the answer, from what was retrieved."""

    @property
    def _llm_type(self) -> str:
        return "script"

    def _call(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **more: Any) -> str:
        del stop, run_manager, more
        asked: dict[str, Any] = json.loads(str(messages[-1].content))
        found, bike = "\n".join(asked["found"]), int(asked["bike"])
        first, second, third = facts(bike)
        town = TOWNS[bike] if first in found else "the responsible town"
        leader = LEADERS[bike] if second in found else "the head of the workshop"
        last = (second, third)[int(asked["hops"]) - 2]
        if asked["task"] == "answer":
            return f"{last}" if last in found else "I do not know."
        whole = f"{asked['question']}" if asked["is_whole"] else f"Where is the {BIKES[bike]} repaired?"
        if bike % 3 == 0 and first not in found:
            return whole  # it tries again
        return (whole, f"Who leads the workshop of {town}?", f"How is {leader} reached?")[int(asked["hop"])]


def build(documents: Mapping[str, str]) -> Any:
    """Return a graph that plans a query, retrieves, and does so again until it answers."""
    graph_module: Any = import_module("langgraph.graph")
    retrievers: Any = import_module("langchain_community.retrievers")
    texts = [Document(text, metadata={"source": name}) for name, text in documents.items()]
    search = retrievers.BM25Retriever.from_documents(texts, k=3, preprocess_func=_words)
    model = Writer()

    def plan(state: Mapping[str, Any]) -> dict[str, Any]:
        return {"query": model.invoke(json.dumps({**state, "task": "query"})).content}

    def retrieve(state: Mapping[str, Any]) -> dict[str, Any]:
        found = [document.page_content for document in search.invoke(state["query"])]
        return {"found": [*state["found"], *found], "hop": state["hop"] + 1}

    def answer(state: Mapping[str, Any]) -> dict[str, Any]:
        return {"answer": model.invoke(json.dumps({**state, "task": "answer"})).content}

    graph = graph_module.StateGraph(dict)
    for name, node in (("plan", plan), ("look_up", retrieve), ("reply", answer)):
        graph.add_node(name, _keep(node))
    graph.add_edge(graph_module.START, "plan")
    graph.add_edge("plan", "look_up")
    graph.add_conditional_edges("look_up", lambda state: "plan" if state["hop"] < state["hops"] else "reply")
    graph.add_edge("reply", graph_module.END)
    return graph.compile()


def _words(text: str) -> list[str]:
    return re.findall(r"\w{3,}", text.casefold())


def _keep(node: Any) -> Any:
    return lambda state: {**state, **node(state)}


def cases() -> Iterator[tuple[int, int, int | None]]:
    """Yield bike, hops, and the hop whose fact the index lacks: 20 with one, and 6 with none."""
    for bike in range(8):
        yield from ((bike, 2, lost) for lost in (1, 2))
    yield from ((8, 3, lost) for lost in (2, 3))
    yield from ((9, 3, lost) for lost in (1, 3))
    yield from ((bike, hops, None) for bike, hops in ((1, 2), (4, 2), (6, 2), (7, 2), (8, 3), (9, 3)))


def record(target: Path) -> None:
    """Ask all questions, and write the spans."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    LangChainInstrumentor().instrument(tracer_provider=provider)
    for number, (bike, hops, lost) in enumerate(cases()):
        missing = None if lost is None else facts(bike)[lost - 1]
        graph = build({name: text for name, text in DOCUMENTS.items() if text != missing})
        what = "leads the workshop that repairs" if hops == 2 else "do I call about the workshop that repairs"
        question = f"Who {what} the {BIKES[bike]}?"
        metadata = {
            "case": number,
            "lost": lost,
            "reference": " ".join(facts(bike)[:hops]),
            "evidence": [{"text": fact} for fact in facts(bike)[:hops]],
        }
        state = {"question": question, "bike": bike, "hops": hops, "hop": 0, "found": [], "is_whole": bike % 2 == 0}
        graph.invoke(state, config={"metadata": metadata})
    lines = "".join(f"{span.to_json(indent=None)}\n" for span in exporter.get_finished_spans())
    target.write_bytes(gzip.compress(lines.encode(), mtime=0))


if __name__ == "__main__":
    record(Path(sys.argv[1]))
