"""Distinguish the three results of a probe: the server has the feature, lacks it, or it is unknown.

An error of a server, a time-out or an unreadable reply says nothing about a feature. What such a probe asked
about is not used in this run, is named in its warnings, and is probed again by the next run: it is never remembered.
"""

from collections.abc import Mapping
from enum import StrEnum

from tasks.models.clients.replica import Reply

_MOMENTARY = (408, 425, 429)
"""Statuses of a refusal that says nothing about the request: it arrived too slowly, too early, or with too many."""


_INVALID = "validation error"
"""Words of a refusal, whatever its status is."""


class ProbeResult(StrEnum):
    """The result of a probe."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def read_probe(reply: Reply, *, is_read: bool, shows: bool) -> ProbeResult:
    """Return the result of a probe.

    Args:
        is_read: True if the reply has the parts that are looked at; has an effect on answers only.
        shows: True if they show the feature.

    >>> read_probe(Reply(200, {}, 0.1), is_read=True, shows=False)
    <ProbeResult.NO: 'no'>
    >>> read_probe(Reply(422, {}, 0.1), is_read=False, shows=False)
    <ProbeResult.NO: 'no'>
    >>> [read_probe(Reply(status, {}, 0.1), is_read=False, shows=False).value for status in (0, 200, 429, 500, 503)]
    ['unknown', 'unknown', 'unknown', 'unknown', 'unknown']
    """
    if reply.is_answer and is_read:
        return ProbeResult.YES if shows else ProbeResult.NO
    return ProbeResult.NO if is_refused(reply) else ProbeResult.UNKNOWN


def is_refused(reply: Reply) -> bool:
    """Return whether a server has refused a request, and would do so again.

    >>> [is_refused(Reply(status, {}, 0.1)) for status in (400, 404, 422, 501, 500, 503, 429)]
    [True, True, True, True, False, False, False]

    The server of llama-cpp-python replies with 500 to a field that it does not know, and says that it is not valid.

    >>> is_refused(Reply(500, {"error": {"message": "1 validation error: {'type': 'literal_error'}"}}, 0.1))
    True
    """
    if reply.status == 500 and _INVALID in reply.message:
        return True
    return (300 <= reply.status < 500 and reply.status not in _MOMENTARY) or reply.status == 501


def describe_unknown(reply: Reply) -> str:
    """Return why a reply does not tell whether a server has a feature.

    >>> describe_unknown(Reply(500, {"error": {"message": "out of memory"}}, 0.1))
    '500: out of memory'
    """
    if reply.is_answer:
        return "the reply cannot be read"
    return f"{reply.status}: {reply.message}" if reply.status else reply.message


def describe_unprobed(server: str, unknown: Mapping[str, str]) -> str:
    """Return the warning about features that could not be probed.

    Args:
        server: Name of the server at the beginning of a sentence.
        unknown: Why each feature could not be probed, by its name.

    >>> describe_unprobed("the judge server", {"seed": "500: busy", "n": "500: busy"})
    'the judge server could not be probed for seed, n (500: busy): this run does without, the next run probes again'
    """
    reasons = "; ".join(dict.fromkeys(unknown.values()))
    names = ", ".join(unknown)
    return f"{server} could not be probed for {names} ({reasons}): this run does without, the next run probes again"
