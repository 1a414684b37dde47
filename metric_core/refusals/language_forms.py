"""Read the forms of refusals of each language: who is unable to do what, or which source lacks what.

The forms of a language are in `forms/LANGUAGE.toml`, as patterns for text that `metric_core.refusals.refusal_forms` has
prepared: lower case, straight apostrophes. Gaps between words are bounded, so that looking for a form takes time linear
in the text. What a source "contains" or "includes" is asked only where a sentence names a source or a kind of
information, so that "the cake contains no nuts" is an answer.

A pattern may extend over several lines: line breaks and the white space around them are no part of it. `<name>` stands
for the pattern of this name in `[parts]`.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from metric_core.refusals.refusal_kinds import RefusalKind

LANGUAGES = ("en", "de", "fr", "es", "hi", "it", "pt", "nl", "pl", "ru", "zh", "ja")
"""Languages of the forms."""

CONTENT = "0fc12c28ce03d6d0"
"""Digest of the files of all languages, which a test compares with them.

Results are kept for as long as the code of the formulas is the same, so a change of a file must be one of this code.
"""

_LINE_END = re.compile(r"\s*\n\s*")
_PART = re.compile(r"<([a-z]+)>")


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageForms:
    """The patterns of one language; those that it lacks are empty.

    Args:
        forms: Kind of refusal -> patterns of its sentences.
        courtesies: Pattern of sentences that neither answer nor refuse: apologies, offers, and whom to ask instead.
        turns: Pattern of openings of the answer that follows what a response does not say.
        options: Pattern of openings of the options that a clarifying question offers.
        contrasts: Pattern of words that begin a main clause of its own.
        concessions: Pattern of words that begin a subordinate clause of its own.
        caveats: Pattern of objects of policy refusals that as often only qualify the answer which follows them.
        about_sources: Pattern of clauses that say what a source tells.
    """

    forms: dict[RefusalKind, tuple[str, ...]]
    courtesies: str = ""
    turns: str = ""
    options: str = ""
    contrasts: str = ""
    concessions: str = ""
    caveats: str = ""
    about_sources: str = ""


@cache
def read_forms() -> dict[str, LanguageForms]:
    """Return the patterns by language, in the order of LANGUAGES."""
    return {language: _read(language) for language in LANGUAGES}


def _read(language: str) -> LanguageForms:
    text = files(__package__).joinpath("forms", f"{language}.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    parts: dict[str, str] = {}

    def join(pattern: str) -> str:
        return _PART.sub(lambda found: parts[found[1]], _LINE_END.sub("", pattern.strip()))

    for name, pattern in content.pop("parts", {}).items():
        parts[name] = join(pattern)
    forms = content.pop("forms")
    return LanguageForms(
        forms={kind: tuple(map(join, forms[kind.name.lower()])) for kind in RefusalKind},
        **{name: join(pattern) for name, pattern in content.items()},
    )
