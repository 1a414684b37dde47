"""Count the requests and the tokens of a reply."""

from tasks.model_clients.replica import Reply
from tasks.model_clients.reply_fields import get_counts
from tasks.runtime.usage import Usage


def usage_of(reply: Reply, tells_cached: bool) -> Usage:
    """Return the cost of a reply; an error has no tokens.

    Args:
        tells_cached: True if the server reports how many tokens it found in its prefix cache.
    """
    prompt, cached, output = get_counts(reply)
    untold = 0 if tells_cached and reply.conversations == 1 else prompt
    return Usage(reply.requests, prompt, cached, output, reply.seconds, untold, reply.splits)
