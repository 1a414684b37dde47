"""Everything that custom metrics, models, retrievers, readers, sinks, checks of indexes and verbs are written with."""

from rag_assay._packages import open_packages

open_packages()

from metric_core import reasons  # noqa: E402 the packages are open only now
from metric_core.claims.cited_contexts import cited_contexts, first_number  # noqa: E402
from metric_core.columns import ColumnType  # noqa: E402
from metric_core.declarations.diagnosis_class import ScoreClass, SystemPart  # noqa: E402 the packages are open only now
from metric_core.declarations.metric import (  # noqa: E402
    Metric,
    MetricRequest,
    Parameter,
    Parameters,
    constant,
)
from metric_core.declarations.own_products import OwnProduct  # noqa: E402
from metric_core.declarations.parameter_checks import (  # noqa: E402
    allow_none,
    require_number_in,
    require_positive_integer,
    require_text,
)
from metric_core.evidence import (  # noqa: E402
    ALL_CONTEXTS,
    BY_REFERENCE,
    BY_RESPONSE,
    BY_USER_INPUT,
    Evidence,
    context_premise,
)
from metric_core.joint_contexts import contexts_premise  # noqa: E402
from metric_core.prompts import judge_questions  # noqa: E402 the packages are open only now
from metric_core.prompts.judge_questions import (  # noqa: E402
    ChoiceQuestion,
    CustomKind,
    GenerateQuestion,
    Kind,
    RatingRequest,
    texts_of,
)
from metric_core.question_kinds import QuestionKind  # noqa: E402
from metric_core.records import (  # noqa: E402
    AnswerStatus,
    Direction,
    Importance,
    KeyPoint,
    Place,
    Question,
    Rating,
    Sample,
    Score,
    Side,
    Status,
    VerdictKind,
    VerdictRequest,
)
from metric_core.stages import Product  # noqa: E402
from tasks.models.embedders.protocol import Embedder, EmbedderIdentity  # noqa: E402
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer, Judge, JudgeIdentity  # noqa: E402
from tasks.models.recognizers.protocol import Entity, EntityRecognizer, RecognizerIdentity  # noqa: E402
from tasks.plugins.installed_verb import InstalledVerb  # noqa: E402
from tasks.reports.exports.sink import Sink, SinkError  # noqa: E402
from tasks.sources.chunk_file import IndexChunk  # noqa: E402
from tasks.sources.index_checks import IndexCheck, IndexFinding  # noqa: E402
from tasks.sources.readers.installed_reader import InstalledReader  # noqa: E402
from tasks.sources.readers.protocol import RawRow, RowSource, Unreadable  # noqa: E402
from tasks.sources.readers.source_files import DataFile  # noqa: E402
from tasks.sources.retrievers.protocol import Generator, Passage, PassageLike, Retriever  # noqa: E402

__all__ = [
    "ALL_CONTEXTS",
    "BY_REFERENCE",
    "BY_RESPONSE",
    "BY_USER_INPUT",
    "AnswerStatus",
    "ChoiceAnswer",
    "ChoiceQuestion",
    "ColumnType",
    "CustomKind",
    "DataFile",
    "Direction",
    "Embedder",
    "EmbedderIdentity",
    "Entity",
    "EntityRecognizer",
    "Evidence",
    "GenerateAnswer",
    "GenerateQuestion",
    "Generator",
    "Importance",
    "IndexCheck",
    "IndexChunk",
    "IndexFinding",
    "InstalledReader",
    "InstalledVerb",
    "Judge",
    "JudgeIdentity",
    "KeyPoint",
    "Kind",
    "Metric",
    "MetricRequest",
    "OwnProduct",
    "Parameter",
    "Parameters",
    "Passage",
    "PassageLike",
    "Place",
    "Product",
    "Question",
    "QuestionKind",
    "Rating",
    "RatingRequest",
    "RawRow",
    "RecognizerIdentity",
    "Retriever",
    "RowSource",
    "Sample",
    "Score",
    "ScoreClass",
    "Side",
    "Sink",
    "SinkError",
    "Status",
    "SystemPart",
    "Unreadable",
    "VerdictKind",
    "VerdictRequest",
    "allow_none",
    "cited_contexts",
    "constant",
    "context_premise",
    "contexts_premise",
    "first_number",
    "judge_questions",
    "reasons",
    "require_number_in",
    "require_positive_integer",
    "require_text",
    "texts_of",
]
