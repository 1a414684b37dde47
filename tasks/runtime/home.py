"""Find the folder of caches and stores on this machine."""

import os
from pathlib import Path

from platformdirs import user_data_path


def assay_home() -> Path:
    """Return ASSAY_HOME, or the platform's data folder for applications."""
    named = os.environ.get("ASSAY_HOME")
    return Path(named).expanduser() if named else user_data_path("rag-assay", appauthor=False)
