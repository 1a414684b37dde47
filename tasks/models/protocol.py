"""The models that a stage may use."""

from typing import Protocol

from tasks.models.embedders.protocol import CrossEncoder, Embedder
from tasks.models.judges.protocol import Judge
from tasks.models.recognizers.protocol import EntityRecognizer
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline


class Models(Protocol):
    """The models that the settings of a stage name. Each is opened when its method is called, not before.

    All methods raise `AssayError` if the model cannot be opened.
    """

    def judge(self) -> Judge:
        """Return the judge; with a panel, all its judges as one."""

    def embedder(self) -> Embedder:
        """Return the model that turns texts into vectors."""

    def cross_encoder(self) -> CrossEncoder:
        """Return the model that scores pairs of texts."""

    def recognizer(self) -> EntityRecognizer:
        """Return the model that finds entities."""

    def pipeline(self) -> SpacyPipeline:
        """Return the spaCy pipeline that splits sentences."""
