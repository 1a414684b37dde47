"""Show which versions of packages made a run."""

from collections.abc import Mapping
from typing import Any


def versions_view(manifest: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the packages of a run and their versions, sorted by name.

    >>> versions_view({"versions": {"spacy": "3.8.7", "prefect": "3.8.8"}})
    [{'name': 'prefect', 'version': '3.8.8'}, {'name': 'spacy', 'version': '3.8.7'}]
    """
    return [{"name": name, "version": version} for name, version in sorted(manifest.get("versions", {}).items())]
