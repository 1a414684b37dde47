"""Detect the language of each row, and what is in another one than expected: the stage `languages`."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from metric_core.columns import REFERENCE, RESPONSE, USER_INPUT
from metric_core.records import AnswerStatus, Side
from metric_core.schemas import EVIDENCE_COLUMNS
from metric_core.stages import Stage
from tasks.models.protocol import Models
from tasks.models.recognizers.detection import CERTAIN, UNKNOWN, detect_language
from tasks.options.settings import Settings
from tasks.rows.records import build_table, read_questions
from tasks.stages.definition import Progress, StageOutput, Tables, stage


class LanguagesSettings(Settings):
    """Settings of the stage `languages`, which has none."""


@stage(
    Stage.LANGUAGES,
    version=1,
    reads=(Stage.SAMPLES, Stage.FOLLOW_UPS, Stage.CLAIMS, Stage.QUESTIONS),
    columns=EVIDENCE_COLUMNS,
    cached=False,
    always=True,
)
def languages(tables: Tables, settings: LanguagesSettings, models: Models, progress: Progress) -> StageOutput:
    """Detect the languages of every row; those of single texts only where they are certain."""
    del settings, models
    samples = tables[Stage.SAMPLES].select(["row_id", USER_INPUT, RESPONSE, REFERENCE]).to_pylist()
    progress(0, len(samples))
    questions, restated = read_questions(tables), dict(_restated(tables))
    rows = []
    for sample in samples:
        row_id, response = sample["row_id"], sample[RESPONSE]
        question = questions.get(row_id, sample[USER_INPUT])
        texts = {name: texts[row_id] for name, texts in restated.items() if row_id in texts}
        rows.append(
            {
                "row_id": row_id,
                "language": detect_language((question, response, sample[REFERENCE])),
                "others": [*_others(question, response, texts)],
            }
        )
    progress(len(samples), 0)
    return StageOutput(build_table(Stage.LANGUAGES, rows))


def _restated(tables: Tables) -> Iterator[tuple[str, Mapping[str, Sequence[str]]]]:
    """Yield what restates the responses, and its texts by row."""
    if (claims := tables.get(Stage.CLAIMS)) is not None:
        yield "claims", _answered(claims.filter(pc.equal(claims["side"], str(Side.RESPONSE))))
    if (questions := tables.get(Stage.QUESTIONS)) is not None:
        yield "questions", _answered(questions)


def _answered(table: pa.Table) -> Mapping[str, Sequence[str]]:
    """Return the texts of the answers, by row."""
    found = table.filter(pc.equal(table["status"], str(AnswerStatus.ANSWERED)))
    texts: dict[str, list[str]] = defaultdict(list)
    for row_id, text in zip(found["row_id"].to_pylist(), found["text"].to_pylist(), strict=True):
        texts[row_id].append(text)
    return texts


def _others(
    question: str | None, response: str | None, restated: Mapping[str, Sequence[str]]
) -> Iterator[Mapping[str, str]]:
    """Yield the texts of a row that are certainly in another language than expected."""
    answered = detect_language([response], CERTAIN)
    if answered == UNKNOWN:
        return
    pairs = {"response": (answered, detect_language([question], CERTAIN))}
    pairs |= {name: (detect_language(texts, CERTAIN), answered) for name, texts in restated.items()}
    for name, (language, expected) in pairs.items():
        if UNKNOWN not in (language, expected) and language != expected:
            yield {"text": name, "language": language, "expected_language": expected}
