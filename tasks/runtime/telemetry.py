"""Switch off the telemetry of the libraries and servers that rag-assay uses.

Every process that rag-assay starts gets its variables from here; a test checks that the container files have them too.
"""

import os
from collections.abc import Mapping

DO_NOT_TRACK = {"DO_NOT_TRACK": "1"}
"""The variable that several programs respect, Prefect's client and vLLM among them."""

PREFECT = DO_NOT_TRACK | {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
}
HUGGING_FACE = {"HF_HUB_DISABLE_TELEMETRY": "1"}
VLLM = {"VLLM_NO_USAGE_STATS": "1"} | DO_NOT_TRACK | HUGGING_FACE
RAY = {"RAY_USAGE_STATS_ENABLED": "0"}

NO_TELEMETRY: Mapping[str, str] = PREFECT | VLLM | RAY
"""All variables that switch telemetry off, with their values."""


def disable_telemetry(variables: Mapping[str, str] = NO_TELEMETRY) -> None:
    """Set the variables for this process and those that it starts; call this before the libraries are imported.

    Args:
        variables: Variables to set. Those that the user has set keep their values.
    """
    for name, value in variables.items():
        os.environ.setdefault(name, value)
