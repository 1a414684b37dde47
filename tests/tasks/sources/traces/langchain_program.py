"""A program of LangChain, with models and retrievers that need no network, in the shapes that programs have."""

from collections.abc import Callable, Generator
from operator import itemgetter
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnableParallel, RunnablePassthrough

QUESTION, ANSWER = "When does it open?", "At nine."
HISTORY: list[BaseMessage] = [HumanMessage("Is there a shop?"), AIMessage("In Dublin.")]
HOURS = Document("It opens at nine.", metadata={"source": "hours.md"})
COLOUR = Document("It is red.", metadata={"source": "colour.md"})
SUNDAY = Document("It is closed on Sundays.", metadata={"source": "sunday.md"})


class Index(BaseRetriever):
    """A retriever that finds the same documents for every question; without any, its index is down."""

    documents: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        del query, run_manager
        if not self.documents:
            raise ConnectionError("the index is down")
        return self.documents


class Reranker(BaseRetriever):
    """A retriever that asks another one, and keeps the last of what it finds."""

    inner: BaseRetriever

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return self.inner.invoke(query, config={"callbacks": run_manager.get_child()})[-1:]


PROMPT = ChatPromptTemplate.from_messages(
    [("system", "Use: {context}"), MessagesPlaceholder("chat_history", optional=True), ("human", "{question}")]
)
SEARCH = Index(documents=[HOURS, COLOUR])


def join(documents: list[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


def model(*answers: str) -> FakeListChatModel:
    return FakeListChatModel(responses=list(answers or (ANSWER,)))


def rag(search: Runnable[Any, Any] = SEARCH, *then: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Return a chain that takes a question and returns an answer."""
    chain: Runnable[Any, Any] = RunnableParallel(context=search | RunnableLambda(join), question=RunnablePassthrough())
    chain |= PROMPT
    for step in then or (model(), StrOutputParser()):
        chain |= step
    return chain


def with_history() -> None:
    context = RunnablePassthrough.assign(context=itemgetter("question") | SEARCH | join)
    chain = context | RunnablePassthrough.assign(answer=PROMPT | model() | StrOutputParser())
    chain.invoke({"question": QUESTION, "chat_history": HISTORY})


def with_messages() -> None:
    take: Runnable[Any, Any] = RunnableLambda(itemgetter("messages"))
    (take | model()).invoke({"messages": [*HISTORY, HumanMessage(QUESTION)]})


def with_a_tool() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "clock", "input": {}}
    asks = AIMessage([call], tool_calls=[{"name": "clock", "args": {}, "id": "t1"}])
    answers = AIMessage([{"type": "text", "text": ANSWER}])

    def run(question: str) -> dict[str, list[BaseMessage]]:
        said: list[BaseMessage] = [HumanMessage(question)]
        agent = GenericFakeChatModel(messages=iter([asks, answers]))
        said.append(agent.invoke(said))
        said += [ToolMessage("08:30", tool_call_id="t1"), agent.invoke(said)]
        return {"messages": said}

    RunnableLambda(run).invoke(QUESTION)


def only_a_call() -> None:
    asks = AIMessage("", tool_calls=[{"name": "clock", "args": {}, "id": "t1"}])
    rag(SEARCH, GenericFakeChatModel(messages=iter([asks]))).invoke(QUESTION)


def fail() -> None:
    try:
        rag(Index(documents=[])).invoke(QUESTION)
    except ConnectionError:
        return


def retry() -> None:
    times = iter([ConnectionError("busy"), None])

    def fail_first(value: Any) -> Any:
        if (error := next(times)) is not None:
            raise error
        return value

    flaky = RunnableLambda(fail_first).with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
    rag(SEARCH, flaky, model(), StrOutputParser()).invoke(QUESTION)


def fall_back() -> None:
    rag(Index(documents=[]).with_fallbacks([SEARCH])).invoke(QUESTION)


def in_parallel() -> None:
    both = RunnableParallel(first=SEARCH, second=Index(documents=[SUNDAY]))
    rag(both | RunnableLambda(lambda found: found["first"] + found["second"])).invoke(QUESTION)


def rerank() -> None:
    rag(Reranker(inner=SEARCH)).invoke(QUESTION)


def rerank_in_the_chain() -> None:
    keep_last = RunnableLambda(lambda documents: documents[-1:]).with_config(run_name="rerank")
    rag(SEARCH | keep_last).invoke(QUESTION)


def stream() -> None:
    list(rag().stream(QUESTION))


def cut_off() -> None:
    chunks = rag().stream(QUESTION)
    next(chunks)
    assert isinstance(chunks, Generator)
    chunks.close()  # as a caller that goes away


def with_a_message() -> None:
    rag(SEARCH, model()).invoke(QUESTION)


def with_sources() -> None:
    found = RunnableParallel(context=SEARCH, question=RunnablePassthrough())
    format_documents = RunnablePassthrough.assign(context=lambda given: join(given["context"]))
    found.assign(answer=format_documents | PROMPT | model() | StrOutputParser()).invoke(QUESTION)


def in_a_batch() -> None:
    rag(SEARCH, model(ANSWER, "Never."), StrOutputParser()).batch([QUESTION, "And on Sunday?"], {"max_concurrency": 1})


PROGRAMS: dict[str, Callable[[], None]] = {
    program.__name__: program
    for program in (
        *(with_history, with_messages, with_a_tool, only_a_call, fail, retry, fall_back, in_parallel, rerank),
        *(rerank_in_the_chain, stream, cut_off, with_a_message, with_sources, in_a_batch),
    )
}
