"""Read and write the files of questions: those that are asked now, and beside them those that are retired."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from metric_core.errors import SourceError
from metric_core.parsing.regular_files import regular
from metric_core.parsing.strict_json import parse_json
from tasks.index_questions.written_question import WrittenQuestion
from tasks.runtime.atomic_files import write_output
from tasks.runtime.jsonl_text import split_json_lines, to_json_lines

_RETIRED, _WHY = "retired", "why"


def retired_file(path: Path) -> Path:
    """Return the file of the retired questions.

    >>> retired_file(Path("data/questions.jsonl")).name
    'questions.retired.jsonl'
    """
    return path.with_name(f"{path.stem}.retired{path.suffix}")


def read_questions(path: Path) -> list[WrittenQuestion]:
    """Return the questions of a file; none if it does not exist.

    Raises:
        SourceError: The file cannot be read, or holds other rows.
    """
    return [question for question, _ in _read(path)]


def write_questions(
    path: Path, questions: Iterable[WrittenQuestion], retired: Iterable[tuple[WrittenQuestion, str]], version: str
) -> None:
    """Write the questions, and add the newly retired ones to those of earlier versions.

    Args:
        retired: Questions that are asked no more, each with the reason.
        version: Version of the index in which they retired.

    Raises:
        AssayError: A file cannot be read or written.
    """
    live = list(questions)
    returned = {question.id for question in live}
    gone = {question.id: row for question, row in _read(retired_file(path)) if question.id not in returned}
    gone |= {question.id: {**question.to_row(), _RETIRED: version, _WHY: reason} for question, reason in retired}
    if gone or retired_file(path).exists():
        _write(retired_file(path), gone.values())
    _write(path, (question.to_row() for question in live))


def _read(path: Path) -> list[tuple[WrittenQuestion, Mapping[str, Any]]]:
    if not path.exists():
        return []
    found: list[tuple[WrittenQuestion, Mapping[str, Any]]] = []
    try:
        for line in split_json_lines(regular(path).read_text(encoding="utf-8-sig")):
            row = parse_json(line)
            found.append((WrittenQuestion.from_row(row), row))
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(
            f"{path}, line {len(found) + 1}: not a question that `assay questions` wrote ({type(error).__name__}: "
            f"{error}). Repair or remove this line; another --out would have all questions written again."
        ) from error
    return found


def _write(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    write_output(path, to_json_lines(rows), "the questions")
