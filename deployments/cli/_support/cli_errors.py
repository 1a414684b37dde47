"""Describe errors of files and of the Prefect server."""

import errno
import os
import sys
from pathlib import Path

from tasks.runtime.credentials import mask_url
from tasks.runtime.home import assay_home

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SETTINGS = ("Settings", "APISettings")
"""Prefect's names for the groups of its settings that locate its server."""
_OTHER_SERVER = "Without PREFECT_API_URL, runs use a local server."


def describe_error(error: OSError) -> str | None:
    """Return a message about a file that cannot be used; None if the error is not about a file.

    >>> describe_error(FileNotFoundError(2, "No such file or directory", "nowhere/assay.toml"))
    'nowhere/assay.toml: No such file or directory'
    """
    if error.filename is None and error.errno in _NO_ROOM:
        return f"no space for the output of the command: {error.strerror}"
    if error.filename is None or not error.strerror:
        return None
    home, file = assay_home(), Path(os.fsdecode(error.filename))
    is_in_home = file == home or home in file.parents or file in home.parents
    advice = ". Set ASSAY_HOME to a folder that you may write to." if is_in_home else ""
    return f"{error.filename}: {error.strerror}{advice}"


def describe_server_error(error: Exception) -> str | None:
    """Return a message about an error of the Prefect server or its settings; None for other errors."""
    exceptions = sys.modules.get("prefect.exceptions")
    if isinstance(error, RuntimeError) and str(error).startswith("Failed to reach API at"):
        return f"the Prefect server cannot be reached ({mask_url(str(error))}). {_OTHER_SERVER}"
    if (problems := _describe_wrong_settings(error)) is not None:
        return (
            f"Prefect's settings cannot be used: {problems}. Check PREFECT_API_URL and the other variables of Prefect"
        )
    if exceptions is None or not isinstance(error, exceptions.PrefectHTTPStatusError):
        return None
    status = error.response.status_code
    if status in (401, 403):
        return f"the Prefect server requires a password ({status}); set PREFECT_API_AUTH_STRING. {_OTHER_SERVER}"
    return f"the Prefect server returned an error ({status}); see its log"


def _describe_wrong_settings(error: Exception) -> str | None:
    """Return the problems with the settings that Prefect read when it was imported; None for other errors.

    The values are not repeated, because they may be passwords.
    """
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not isinstance(error, pydantic.ValidationError) or error.title not in _SETTINGS:
        return None
    return "; ".join(": ".join((*map(str, found["loc"]), found["msg"])) for found in error.errors(include_url=False))
