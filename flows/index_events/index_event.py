"""The event that an index was rebuilt, and the validation of its payload."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from metric_core.errors import ConfigError
from tasks.runs.baselines import check_index_name
from tasks.runs.index_versions import IndexVersion
from tasks.runtime.credentials import refuse_secrets

EVENT = "rag.index.rebuilt"
RESOURCE = "rag.index."
"""Prefix of the resource id of an index."""

FROM_INDEX = "retriever:"
"""The dataset of an event that asks the deployment's retriever to fetch the contexts from the index."""

_VERSION = re.compile(r"[^\s/\\]{1,100}")
_FIELDS = ("index", "version", "dataset")


@dataclass(frozen=True, slots=True)
class IndexRebuilt:
    """The event that an index was rebuilt.

    Args:
        index: Id of the index.
        version: Version, as the builder of the index names it.
        dataset: Its new responses and contexts: a path, a URL or `hub:owner/name` that a run can read, or FROM_INDEX.
        announced: Time of the event.
    """

    index: str
    version: str
    dataset: str
    announced: datetime

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any], announced: datetime) -> "IndexRebuilt":
        """Return the event that a payload describes.

        Raises:
            ConfigError: A field is missing or invalid.
        """
        missing = [name for name in _FIELDS if not isinstance(payload.get(name), str) or not payload[name].strip()]
        if missing:
            raise ConfigError(
                f"the event {EVENT} lacks {', '.join(missing)}; it needs index (its id), version (of the index) and "
                f"dataset (location of the new responses and contexts), all as text"
            )
        index, version, dataset = (str(payload[name]).strip() for name in _FIELDS)
        if _VERSION.fullmatch(version) is None:
            raise ConfigError(f"a version must have up to 100 characters, without blanks and slashes, got {version!r}")
        if "://" in dataset and (parts := urlsplit(dataset)) and (parts.password is not None or parts.username):
            raise ConfigError("the dataset's URL must hold no user and no password, which everyone could read")
        try:
            refuse_secrets(dataset)
        except ValueError as error:
            raise ConfigError(f"the dataset cannot be announced, because everyone could read it: {error}") from error
        return cls(check_index_name(index), version, dataset, announced)

    @property
    def place(self) -> IndexVersion:
        """The position among the versions of the index."""
        return IndexVersion(self.version, self.announced)

    @property
    def payload(self) -> dict[str, str]:
        """The payload of the event."""
        return {name: getattr(self, name) for name in _FIELDS}
