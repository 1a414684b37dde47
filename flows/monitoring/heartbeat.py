"""Call a heartbeat monitor after a good run; the monitor sends an alert when these calls stop."""

import httpx

from metric_core.errors import ConfigError
from tasks.runtime.credentials import is_reference, read_secret
from tasks.runtime.http_errors import name_http_error
from tasks.runtime.retry import Backoff, retry
from tasks.runtime.trust import trusted_certificates

_SECONDS = 10.0
_TRIES = 4
_PAUSE = Backoff(0.5, 4.0, jitter=0.5)


def call_heartbeat(address: str, name: str, run_id: str) -> str | None:
    """Post the name of an evaluation and the id of its run, again if that fails.

    Args:
        address: URL of the heartbeat monitor, or a reference to one.

    Returns:
        A warning without the URL, which may be a secret; None if the monitor replied with a status of success.
    """
    try:
        url = read_secret(address) if is_reference(address) else address
        retry(lambda: _post(url, {"name": name, "run": run_id}), _pause)
    except httpx.HTTPStatusError as error:
        reason = f"it replied with status {error.response.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = name_http_error(error)
    except ConfigError as error:
        reason = str(error)
    else:
        return None
    return f"the heartbeat monitor could not be called: {reason}"


def _post(url: str, content: dict[str, str]) -> None:
    certificates = trusted_certificates()
    httpx.post(url, json=content, timeout=_SECONDS, follow_redirects=True, verify=certificates).raise_for_status()


def _pause(error: Exception, attempt: int) -> float | None:
    return _PAUSE.seconds(attempt) if isinstance(error, httpx.HTTPError) and attempt < _TRIES else None
