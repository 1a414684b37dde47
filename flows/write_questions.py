"""Write questions from an index into a file, and bring that file up to date with a later version of the index."""

from dataclasses import dataclass
from pathlib import Path

from flows.execution.run import launched_judges
from flows.execution.spending import meter_run
from metric_core.errors import ConfigError, SourceError
from metric_core.parsing.suggestions import suggest_names
from tasks.index_questions.evidence import GONE, carry_questions
from tasks.index_questions.kinds import KINDS
from tasks.index_questions.question_file import read_questions, write_questions
from tasks.index_questions.update_questions import QuestionsOfIndex, update_questions
from tasks.opening.run_models import RunModels
from tasks.options.narrow import narrow
from tasks.options.run_model_options import RunModelOptions
from tasks.options.source_options import DataOptions, SourceOptions
from tasks.sources.chunk_file import digest_chunks, read_chunks
from tasks.sources.redaction import Redaction

_MOST_GONE = 1 / 3
"""Share of the questions whose evidence may be gone at once: a file may hold a part of the index."""


@dataclass(frozen=True, slots=True)
class QuestionsRequest:
    """A file of questions to write or to update.

    Args:
        data: Chunks of the index.
        models: Judge that writes and checks.
        out: File of the questions; those that it holds are kept as far as the index still answers them.
        kinds: Names of the kinds to write; None for all that the judge can write.
        version: Version of the index; None for a digest of its chunks.
        retire_any: Retire questions whose evidence is gone however many they are; else more than a third are an error.
    """

    data: DataOptions
    models: RunModelOptions
    out: Path
    kinds: tuple[str, ...] | None = None
    version: str | None = None
    retire_any: bool = False


def write_questions_of_index(request: QuestionsRequest) -> QuestionsOfIndex:
    """Write the questions of an index.

    Raises:
        AssayError: Anything that the user can fix; the message says how.
    """
    if request.data.source is None:
        raise ConfigError("there is no index to write questions from: name the file of its chunks as SOURCE")
    for name in request.kinds or ():
        if name not in KINDS:
            near = suggest_names(name, list(KINDS), most=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"no kind of question is called {name!r}; there are: {', '.join(KINDS)}.{hint}")
    earlier = read_questions(request.out)
    redact = None if request.data.redact is None else Redaction(request.data.redact).text
    # Questions about chunks that are not read would retire: a limit of the rows of runs does not count.
    whole = narrow(request.data, SourceOptions).model_copy(update={"limit": None})
    found = read_chunks(request.data.source, redact, whole)
    chunks = list({chunk.text: chunk for chunk in found if chunk.text.strip()}.values())
    if not chunks:
        raise SourceError(f"{request.data.source} has no chunks with a text")
    carried = carry_questions(earlier, chunks)
    gone = sum(reason.startswith(GONE) for _, reason in carried.retired)
    if not request.retire_any and gone > _MOST_GONE * len(earlier):
        raise SourceError(
            f"{gone:,} of {len(earlier):,} questions would retire, because their evidence is gone from the "
            f"{len(chunks):,} chunks of {request.data.source}: does it hold the whole index? If so, add --retire-any"
        )
    version = request.version or digest_chunks(chunk.digest for chunk in chunks)
    kinds = None if request.kinds is None else [KINDS[name] for name in request.kinds]
    with meter_run(request.models), launched_judges(request.models) as urls:
        models = RunModels().select(request.models.with_launched_judges(urls).judged)
        result = update_questions(chunks, carried, kinds, version, models)
    write_questions(request.out, result.questions, result.retired, version)
    return result
