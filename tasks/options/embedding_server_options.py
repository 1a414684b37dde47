"""Declare the options of an embedding server, without loading its client."""

from typing import Annotated, ClassVar

from tasks.options.option import Option
from tasks.options.server_options import ServerOptions


class ServerEmbedderOptions(ServerOptions, affects_scores=True):
    """Options of an embedding server: its address and its model."""

    max_reply_bytes: ClassVar[int] = 64 * 1024**2
    """Size of the largest reply with the vectors of a batch that is read, after decompression."""

    context_window: Annotated[
        int | None,
        Option(
            "Number of tokens that the model reads at once, if the server does not report it. Longer texts are covered "
            "by windows. Default: 512 if it is not reported.",
            ge=16,
            examples=[8192],
        ),
    ] = None
    batch: Annotated[int, Option("Number of texts per request.", affects_scores=False, ge=1)] = 64
    concurrency: Annotated[
        int, Option("Maximum number of requests in flight per replica.", affects_scores=False, ge=1, le=4096)
    ] = 16
