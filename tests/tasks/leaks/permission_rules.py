"""Permission functions of a user."""

from collections.abc import Mapping
from typing import Any

NUMBER = 3


def same_tenant(asker: Mapping[str, Any], passage: Any) -> bool:
    return str(passage.id).startswith(asker["tenant"])
