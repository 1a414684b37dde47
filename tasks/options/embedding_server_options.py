"""What a user can set about an embedding server, apart from its client, so that who has none need not load one."""

from pydantic import Field

from tasks.options.server_options import ServerOptions


class ServerEmbedderOptions(ServerOptions):
    """Which model embeds.

    Args:
        model: its name at the server; None takes the only one that the server has.
        revision: its revision, for the record: a server does not tell it.
        batch: texts a request.
    """

    model: str | None = Field(None, description="the model's name at the server; default: the only one it has")
    revision: str | None = Field(None, description="the model's revision, for the record")
    batch: int = Field(64, ge=1, description="texts a request")
    concurrency: int = Field(16, ge=1, le=4096, description="requests in flight at a replica")
