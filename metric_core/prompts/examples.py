"""Examples in prompts: questions with the answers that people gave, in a file beside the prompts.

The file also names the labels that the examples were chosen among, since these must not measure the judge.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Self

from metric_core.errors import ConfigError
from metric_core.parsing.regular_files import regular
from metric_core.prompts.judge_questions import YES_NO, ChoiceQuestion
from metric_core.question_kinds import QuestionKind

EXAMPLES = "examples.json"
_KINDS = {str(kind): kind for kind in QuestionKind}
INTRODUCTION = "Here are questions of this kind, each with the answer that people gave."


@dataclass(frozen=True, slots=True)
class SetAside:
    """Labels that measure nothing, because examples were chosen among them.

    Args:
        items: Digests of the labelled texts.
        questions: Digests of the questions that they are about, each with its passages.
    """

    items: frozenset[str] = frozenset()
    questions: frozenset[str] = frozenset()

    @classmethod
    def from_json(cls, content: Mapping[str, Any] | None) -> Self:
        """Return what a file or a manifest says; nothing for None."""
        content = content or {}
        return cls(frozenset(content.get("items", ())), frozenset(content.get("questions", ())))

    def to_json(self) -> dict[str, list[str]]:
        """Return the digests as JSON."""
        return {"items": sorted(self.items), "questions": sorted(self.questions)}

    def holds(self, item: str, question: str) -> bool:
        """Return whether a label is set aside.

        Args:
            item: Digest of the labelled texts.
            question: Digest of the question that they are about, with its passages.
        """
        return item in self.items or question in self.questions


@dataclass(frozen=True, slots=True)
class Example:
    """A question with the answer that people gave, yes or no.

    Args:
        texts: Role -> text.
    """

    kind: QuestionKind
    texts: Mapping[str, str]
    answer: str

    @property
    def question(self) -> ChoiceQuestion:
        """The question to the judge."""
        return ChoiceQuestion(self.kind, self.texts, YES_NO)


@dataclass(frozen=True, slots=True)
class Examples:
    """The examples of a folder of prompts.

    Args:
        introduction: Sentence before the examples.
        metric: Key of the metric that the labels are about.
    """

    introduction: str
    metric: str
    examples: tuple[Example, ...]
    aside: SetAside

    def to_json(self) -> str:
        """Return the content of the file."""
        content = {
            "introduction": self.introduction,
            "metric": self.metric,
            "examples": [asdict(example) for example in self.examples],
            "set_aside": self.aside.to_json(),
        }
        return json.dumps(content, indent=1, ensure_ascii=False)


def read_examples(folder: Traversable) -> Examples | None:
    """Read the examples of a folder of prompts; None if it has none.

    Raises:
        ConfigError: The file cannot be read, or is not as `Examples.to_json` writes it.
    """
    file = folder.joinpath(EXAMPLES)
    try:
        content = json.loads((regular(file) if isinstance(file, Path) else file).read_text(encoding="utf-8-sig"))
        examples = tuple(Example(_KINDS[each["kind"]], each["texts"], each["answer"]) for each in content["examples"])
        if not all(each.answer in YES_NO for each in examples):
            raise ValueError("an answer is yes or no")  # noqa: TRY301 reported as the others are
        aside = SetAside.from_json(content["set_aside"])
        return Examples(str(content["introduction"]), str(content["metric"]), examples, aside)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            f"the examples {file} cannot be read: {error!r}. Write them again with `assay prompts examples --replace`, "
            "or remove the file"
        ) from error
