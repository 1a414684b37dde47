"""Columns of a sample, with their types and aliases."""

from enum import StrEnum


class ColumnType(StrEnum):
    """Type of a column's values."""

    TEXT = "text"
    TEXTS = "list of texts"
    IDS = "list of ids"
    RUBRICS = "mapping of score<number>_description to text"
    NUMBERS = "list of numbers"
    JUDGMENTS = "mapping of passage id to grade"
    KEY_POINTS = "list of key points"
    EVIDENCE_SPANS = "list of spans of evidence"
    NUMBER = "number"
    FLAG = "true or false"
    ANY = "any value"


OWN_TYPES = (ColumnType.TEXT, ColumnType.TEXTS, ColumnType.NUMBER, ColumnType.FLAG, ColumnType.ANY)
"""Types that a column of a plugin can have."""

USER_INPUT = "user_input"
RESPONSE = "response"
RETRIEVED_CONTEXTS = "retrieved_contexts"
REFERENCE = "reference"
REFERENCE_CONTEXTS = "reference_contexts"
RETRIEVED_CONTEXT_IDS = "retrieved_context_ids"
REFERENCE_CONTEXT_IDS = "reference_context_ids"
RUBRICS = "rubrics"
RETRIEVED_CONTEXT_SCORES = "retrieved_context_scores"
SESSION_ID = "session_id"
CONVERSATION = "conversation"
EARLIER_TURNS = "earlier_turns"
EARLIER_CONTEXTS = "earlier_contexts"
TOOL_RESULTS = "tool_results"
EARLIER_ANSWERS = "earlier_answers"
RELEVANCE_JUDGMENTS = "relevance_judgments"
KEY_POINTS = "key_points"
EVIDENCE_SPANS = "evidence_spans"
POINT_EVIDENCE = "point_evidence"
"""Column of a sample with the spans of evidence of each key point, which data give with the key points."""

COLUMNS: dict[str, ColumnType] = {
    USER_INPUT: ColumnType.TEXT,
    RESPONSE: ColumnType.TEXT,
    RETRIEVED_CONTEXTS: ColumnType.TEXTS,
    REFERENCE: ColumnType.TEXT,
    REFERENCE_CONTEXTS: ColumnType.TEXTS,
    RETRIEVED_CONTEXT_IDS: ColumnType.IDS,
    REFERENCE_CONTEXT_IDS: ColumnType.IDS,
    RUBRICS: ColumnType.RUBRICS,
    RETRIEVED_CONTEXT_SCORES: ColumnType.NUMBERS,
    SESSION_ID: ColumnType.TEXT,
    CONVERSATION: ColumnType.TEXT,
    EARLIER_TURNS: ColumnType.TEXT,
    EARLIER_CONTEXTS: ColumnType.TEXTS,
    TOOL_RESULTS: ColumnType.TEXTS,
    EARLIER_ANSWERS: ColumnType.TEXTS,
    RELEVANCE_JUDGMENTS: ColumnType.JUDGMENTS,
    KEY_POINTS: ColumnType.KEY_POINTS,
    EVIDENCE_SPANS: ColumnType.EVIDENCE_SPANS,
}
"""Every column that a metric can require, in display order."""

COLUMN_ALIASES: dict[str, str] = {
    "question": USER_INPUT,
    "query": USER_INPUT,
    "user_query": USER_INPUT,
    "answer": RESPONSE,
    "contexts": RETRIEVED_CONTEXTS,
    "ground_truth": REFERENCE,
    "ground_truths": REFERENCE,
    "session": SESSION_ID,
    "conversation_id": SESSION_ID,
    "thread_id": SESSION_ID,
    "qrels": RELEVANCE_JUDGMENTS,
    "expected_facts": KEY_POINTS,
    "nuggets": KEY_POINTS,
}
"""Alias -> column, for names used by older data sets. A column under its own name takes precedence over an alias."""

LOOKALIKES: dict[str, str] = {
    **dict.fromkeys(("input", "prompt", "user_question", "user_prompt", "user_message", "instruction"), USER_INPUT),
    **dict.fromkeys(("query_text", "question_text", "questions"), USER_INPUT),
    **dict.fromkeys(
        ("actual_output", "generated_answer", "generated_text", "predicted_answer", "prediction"), RESPONSE
    ),
    **dict.fromkeys(("model_answer", "model_response", "model_output", "llm_answer", "llm_response"), RESPONSE),
    **dict.fromkeys(("llm_output", "bot_response", "bot_answer", "completion", "output", "reply", "result"), RESPONSE),
    **dict.fromkeys(("expected_output", "expected_answer", "expected_response", "reference_answer"), REFERENCE),
    **dict.fromkeys(("reference_output", "ground_truth_answer", "gold_answer", "golden_answer"), REFERENCE),
    **dict.fromkeys(("correct_answer", "ideal_answer", "ideal", "expected", "gold", "target"), REFERENCE),
    **dict.fromkeys(("retrieval_context", "retrieved_context", "retrieved_documents"), RETRIEVED_CONTEXTS),
    **dict.fromkeys(("retrieved_docs", "retrieved_passages", "retrieved_chunks"), RETRIEVED_CONTEXTS),
    **dict.fromkeys(("source_documents", "documents", "docs", "passages", "chunks", "context"), RETRIEVED_CONTEXTS),
    **dict.fromkeys(("reference_context", "ground_truth_context", "ground_truth_contexts"), REFERENCE_CONTEXTS),
    **dict.fromkeys(("gold_context", "gold_contexts", "expected_contexts"), REFERENCE_CONTEXTS),
    **dict.fromkeys(("retrieved_ids", "retrieved_doc_ids", "retrieved_chunk_ids"), RETRIEVED_CONTEXT_IDS),
    **dict.fromkeys(("context_ids", "doc_ids", "document_ids", "chunk_ids"), RETRIEVED_CONTEXT_IDS),
    **dict.fromkeys(("relevant_ids", "relevant_doc_ids", "gold_ids", "gold_doc_ids"), REFERENCE_CONTEXT_IDS),
    **dict.fromkeys(("retrieval_scores", "context_scores", "doc_scores"), RETRIEVED_CONTEXT_SCORES),
}
"""Name -> the column that it probably is, the likelier names of a column first: suggested, not read."""

PARALLEL_COLUMNS: dict[str, tuple[str, ...]] = {
    RETRIEVED_CONTEXT_IDS: (RETRIEVED_CONTEXTS,),
    RETRIEVED_CONTEXT_SCORES: (RETRIEVED_CONTEXTS, RETRIEVED_CONTEXT_IDS),
    REFERENCE_CONTEXT_IDS: (REFERENCE_CONTEXTS,),
}
"""Column of lists -> the columns whose lists have the same items in the same order, if a row has them."""

CONVERSATION_COLUMNS = (CONVERSATION, EARLIER_TURNS, EARLIER_CONTEXTS, TOOL_RESULTS, EARLIER_ANSWERS)
"""Columns that are made from the messages of a conversation; data can also have them."""

HOPS = "hops"
"""Column of rows with several retrievals: for each its query, and the places of what it found among the retrieved
contexts, from 0; null for a passage that a reranker dropped. Readers of traces fill it."""

QUESTION_KIND, SINCE, WRITTEN_FROM = "question_kind", "since", "written_from"
"""Columns of rows with questions that were written from an index, which other rows do not have."""

RETRIEVED_CONTEXT_DATES = "retrieved_context_dates"
"""Column with the date or version of each retrieved context, which objects of passages bring along."""

RETRIEVED_CONTEXT_ACL = "acl"
"""Column with the names of those who may see each retrieved context, which objects of passages bring along."""

MESSAGES = "messages"
"""Column of a source that holds conversations. Samples have what is made from it."""

ID_COLUMNS = ("row_id", "id")
"""Columns that can serve as the row id, in order of precedence, unless the configuration names one."""
