"""Nothing is reported home: what the libraries underneath are told about that, before they are imported."""

import os

NO_TELEMETRY = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "VLLM_NO_USAGE_STATS": "1",
}
"""The variables by which Prefect, the Hugging Face libraries and vLLM are kept from reporting home."""


def disable_telemetry() -> None:
    """Sets the variables for this process and those that it starts; what the user has set stays."""
    for name, value in NO_TELEMETRY.items():
        os.environ.setdefault(name, value)
