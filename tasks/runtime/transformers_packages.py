"""Import torch and transformers, which are not in the default install."""

from typing import Any

from metric_core.errors import MissingDependencyError


def require_transformers(purpose: str) -> tuple[Any, Any]:
    """Import and return the packages torch and transformers.

    Args:
        purpose: Name of what needs them, for the message.

    Raises:
        MissingDependencyError: One of them is not installed.
    """
    try:
        import torch  # noqa: PLC0415
        import transformers  # noqa: PLC0415
    except ModuleNotFoundError as error:
        name = error.name or "transformers"
        raise MissingDependencyError(name, purpose, "pip install 'rag-assay[transformers]'") from error
    return torch, transformers
