"""Remember the models behind servers in the cache of answers and in the table store of a run: either may be lost."""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.models.clients.observed_model import Kind, ObservedModel, RecognizedModel
from tasks.models.clients.recognize import Seen, recognize
from tasks.opening.caches import open_cache


@dataclass(frozen=True, slots=True)
class ServedModels:
    """The served models that gave the answers in a cache, and the rows of a table store: either may be lost.

    Args:
        cache: Address of the cache; None for a file in ASSAY_HOME.
        tables: Path or URL of the table store; None for none.
        read_only: True to leave the table store as it is.
    """

    cache: str | None
    tables: str | None = None
    read_only: bool = False

    def recall(self, kind: Kind, name: str) -> Sequence[ObservedModel]:
        """Return the models with this name, the latest last."""
        cached, stored = self._seen(kind, name)
        return [model for _, model in (*_others(stored, cached), *cached)]

    def recognize(self, model: ObservedModel) -> RecognizedModel:
        """Compare a model with those seen before, and remember it in both places."""
        from tasks.cache.served_models import cache_model  # noqa: PLC0415 loads the database driver
        from tasks.opening.stored_models import store_model  # noqa: PLC0415 loads fsspec

        cached, stored = self._seen(model.kind, model.name)
        found = recognize(model, cached, _others(stored, cached))
        if found.entry is not None:
            cache_model(open_cache(self.cache), cached, found.entry)
            if self.tables is not None and not self.read_only:
                store_model(self.tables, dict(stored), found.entry)
        return found.recognized

    def _seen(self, kind: Kind, name: str) -> tuple[list[Seen], list[Seen]]:
        from tasks.cache.served_models import cached_models  # noqa: PLC0415 loads the database driver
        from tasks.opening.stored_models import stored_models  # noqa: PLC0415 loads fsspec

        stored = [] if self.tables is None else stored_models(self.tables, kind, name)
        return cached_models(open_cache(self.cache), kind, name), stored


def _others(stored: Sequence[Seen], cached: Sequence[Seen]) -> list[Seen]:
    known = {token for token, _ in cached}
    return [entry for entry in stored if entry[0] not in known]
