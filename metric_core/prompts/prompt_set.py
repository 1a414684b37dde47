"""Load the prompts of a language from a folder, render questions, and compute digests."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from metric_core.errors import ConfigError
from metric_core.parsing.regular_files import regular
from metric_core.prompts import layout
from metric_core.prompts.judge_questions import ChoiceQuestion, CustomKind, JudgeQuestion, Kind
from metric_core.prompts.templates import Places, PromptPiece, check_template, fill_template
from metric_core.question_kinds import QuestionKind

RENDERING_VERSION = 2
"""Version of the rendering; increment it with every code change that changes rendered prompts."""

_SYSTEM, _ANSWER_CHOICE, _ANSWER_JSON = "system", "answer_choice", "answer_json"


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A rendered question for a language model.

    Args:
        system: System message, the same for every question.
        user: User message.
        prefix_key: Prefix of `user` that other questions share: up to the end of the first text. Sort by it to group
            questions with equal prefixes.
    """

    system: str
    user: str
    prefix_key: str


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The prompts of one language; see `load_prompts`.

    Args:
        language: Packaged language, or the name of a folder.
        wordings: Name of a file without its suffix -> text.
    """

    language: str
    wordings: Mapping[str, str]

    @property
    def system(self) -> str:
        """System message of every question."""
        return self.wordings[_SYSTEM]

    def render(self, question: JudgeQuestion) -> RenderedPrompt:
        """Return the prompt for a question.

        Raises:
            ValueError: If the question lacks a text or instructions that its kind needs, or has an extra text.
        """
        texts, instructions = layout.label_texts(question.texts), _lines(question.instructions)
        if question.kind is QuestionKind.INSTANCE_RUBRIC and instructions:
            texts[layout.RUBRIC] = instructions
        layout.check_texts(question.kind, texts)
        if layout.INSTRUCTIONS in layout.places_of(question.kind).values and not instructions:
            raise ValueError(f"a question of kind {question.kind} needs instructions")
        values = {
            layout.ANSWER: self._answer(question),
            layout.INSTRUCTIONS: instructions,
            layout.COUNT: _count(question),
        }
        pieces = fill_template(self._wording(question.kind), texts, values)
        user = _join(pieces)
        return RenderedPrompt(self.system, user, user[: _shared_length(pieces)])

    def digest(self, kind: Kind) -> str:
        """Return the SHA-256 of everything that determines a prompt of this kind, except the question."""
        common = [self.wordings[name] for name in (_SYSTEM, _ANSWER_CHOICE, _ANSWER_JSON)]
        content = json.dumps([RENDERING_VERSION, *common, kind, self._wording(kind)])
        return hashlib.sha256(content.encode()).hexdigest()

    def _wording(self, kind: Kind) -> str:
        return kind.prompt if isinstance(kind, CustomKind) else self.wordings[kind]

    def _answer(self, question: JudgeQuestion) -> str:
        if isinstance(question, ChoiceQuestion):
            return _fill(self.wordings[_ANSWER_CHOICE], layout.LABELS, ", ".join(question.labels))
        return _fill(self.wordings[_ANSWER_JSON], layout.SCHEMA, outline(question.schema))


def load_prompts(language_or_folder: str | Path = "en") -> PromptSet:
    """Load the prompts of a packaged language, or of a folder with the same files.

    Args:
        language_or_folder: Name of a language (`en`, `de`), or of a variant of one (`en-short`), or path of a folder.

    Raises:
        ConfigError: The language or folder does not exist, a file is missing, empty, unreadable or has wrong
            placeholders.

    >>> load_prompts("en").language
    'en'
    """
    folders = _folders(language_or_folder)
    expected = {
        _SYSTEM: None,
        _ANSWER_CHOICE: layout.ANSWER_CHOICE,
        _ANSWER_JSON: layout.ANSWER_JSON,
        **{str(kind): places for kind, places in layout.PLACES.items()},
    }
    wordings = {name: _read(folders, f"{name}.txt", places) for name, places in expected.items()}
    return PromptSet(folders[0].name, wordings)


def packaged_languages() -> list[str]:
    """Return the languages that come with the package, with their variants.

    >>> packaged_languages()
    ['de', 'en', 'en-short', 'es', 'fr', 'hi']
    """
    return sorted(
        entry.name for entry in files(__package__).iterdir() if entry.is_dir() and not entry.name.startswith("_")
    )


def _folders(language_or_folder: str | Path) -> list[Traversable]:
    """Return where to look for the prompts: a variant of a language has only those files that differ."""
    if language_or_folder in packaged_languages():
        language, _, variant = str(language_or_folder).partition("-")
        names = [str(language_or_folder), language] if variant else [language]
        return [files(__package__).joinpath(name) for name in names]
    path = Path(language_or_folder)
    if not path.is_dir():
        raise ConfigError(
            f"no prompts for {str(language_or_folder)!r}: neither a packaged language "
            f"({', '.join(packaged_languages())}) nor a folder with prompt files"
        )
    return [path.resolve()]


def _read(folders: list[Traversable], name: str, places: Places | None) -> str:
    folder = next((folder for folder in folders if folder.joinpath(name).is_file()), folders[0])
    origin = str(folder.joinpath(name))
    try:
        file = folder.joinpath(name)
        wording = (regular(file) if isinstance(file, Path) else file).read_text(encoding="utf-8-sig").strip("\n")
    except FileNotFoundError as error:
        raise ConfigError(f"the prompt file {origin} is missing; copy it from the packaged language `en`") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the prompt file {origin} cannot be read as UTF-8 text: {error}") from error
    if not wording.strip():
        raise ConfigError(f"the prompt file {origin} is empty; copy it from the packaged language `en`")
    return wording if places is None else check_template(wording, places, origin)


@lru_cache(maxsize=256)  # few sets of labels and schemas
def _fill(wording: str, mark: str, value: str) -> str:
    return _join(fill_template(wording, {}, {mark: value}))


def _join(pieces: list[PromptPiece]) -> str:
    return "\n".join(piece.text for piece in pieces)


def _shared_length(pieces: list[PromptPiece]) -> int:
    first_text = next((index for index, piece in enumerate(pieces) if piece.label is not None), len(pieces))
    return len(_join(pieces[: first_text + 1]))


def _lines(instructions: Mapping[str, str]) -> str:
    return "\n".join(f"{name}: {text}" for name, text in instructions.items())


def _count(question: JudgeQuestion) -> str:
    if isinstance(question, ChoiceQuestion):
        return ""
    return str(question.schema.get("properties", {}).get("questions", {}).get("minItems", ""))


def outline(schema: Mapping[str, Any]) -> str:
    """Return a short description of the JSON that matches a schema.

    >>> outline({"type": "object", "properties": {"claims": {"type": "array", "items": {"type": "string"}}}})
    '{"claims": [string, ...]}'
    >>> outline({"type": "integer", "minimum": 0, "maximum": 10})
    'integer 0..10'
    >>> outline({"enum": ["pass", "fail"]})
    '"pass" | "fail"'
    """
    if "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        members = [f"{json.dumps(name)}: {outline(member)}" for name, member in schema["properties"].items()]
        return "{" + ", ".join(members) + "}"
    if kind == "array" and "items" in schema:
        return f"[{outline(schema['items'])}, ...]"
    if kind in ("integer", "number") and ("minimum" in schema or "maximum" in schema):
        return f"{kind} {schema.get('minimum', '')}..{schema.get('maximum', '')}"
    return kind if isinstance(kind, str) else json.dumps(schema, ensure_ascii=False)
