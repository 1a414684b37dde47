"""Read each text with the pipeline of its language."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from tasks.models.recognizers.detection import detect_language
from tasks.models.recognizers.protocol import Entity, RecognizerIdentity
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline

Found = TypeVar("Found")
Read: TypeAlias = Callable[[Sequence[str]], list[Found]]


class PipelinesByLanguage(SpacyPipeline):
    """A pipeline that leaves the sentences and entities of texts in some languages to others.

    Words and dependencies are always its own: the rules of the built-in judge, which read them, are for one language.

    Args:
        model: Name or folder of the pipeline for texts in all other languages, or in none that is clear.
        others: ISO 639 code of a language -> the pipeline for its texts.
    """

    def __init__(self, model: str, others: Mapping[str, SpacyPipeline]) -> None:
        super().__init__(model)
        self._others = dict(sorted(others.items()))

    @property
    def identity(self) -> RecognizerIdentity:
        """The identity of all pipelines."""
        own = super().identity
        others = [(code, other.identity) for code, other in self._others.items()]
        revisions = (own.revision, *(f"{code}: {other.model} {other.revision}" for code, other in others))
        return replace(own, revision=", ".join(revisions))

    @property
    def copies_text(self) -> bool:
        """True if no pipeline may change the text."""
        return super().copies_text and all(other.copies_text for other in self._others.values())

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Return the entities of each text, as the pipeline of its language finds them."""
        return self._read(texts, {code: other.entities for code, other in self._others.items()}, super().entities)

    def sentences(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the sentences of each text, as the pipeline of its language finds them."""
        return self._read(texts, {code: other.sentences for code, other in self._others.items()}, super().sentences)

    def _read(self, texts: Sequence[str], others: Mapping[str, Read[Found]], own: Read[Found]) -> list[Found]:
        readers = [others.get(detect_language([text]), own) for text in texts]
        found: dict[int, Found] = {}
        for read in dict.fromkeys(readers):
            places = [place for place, each in enumerate(readers) if each == read]
            found |= zip(places, read([texts[place] for place in places]), strict=True)
        return [found[place] for place in range(len(texts))]
