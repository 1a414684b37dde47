"""Read secrets from Secret blocks, which a Prefect server stores encrypted."""

from metric_core.errors import ConfigError


def read_secret_block(name: str) -> str:
    """Return the text in a Secret block.

    Raises:
        ConfigError: No server is configured or reachable, it has no such block, or the block does not hold text.
    """
    import httpx  # noqa: PLC0415 Prefect is loaded only where a block is read
    from prefect.client.orchestration import get_client  # noqa: PLC0415
    from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError  # noqa: PLC0415
    from prefect.settings import get_current_settings  # noqa: PLC0415

    if get_current_settings().api.url is None:
        raise ConfigError(
            f"block:{name} names a Secret block, but no Prefect server is configured; set PREFECT_API_URL to the "
            "server that has the block"
        )
    try:
        with get_client(sync_client=True) as client:
            value = client.read_block_document_by_name(name, "secret").data.get("value")
    except ObjectNotFound as error:
        raise ConfigError(
            f"the Prefect server has no Secret block {name!r}; create it in the Prefect UI, or from Python: "
            f'prefect.blocks.system.Secret(value=...).save("{name}")'
        ) from error
    except (httpx.HTTPError, PrefectHTTPStatusError) as error:
        raise ConfigError(f"the Secret block {name!r} cannot be read: {type(error).__name__}") from error
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"the Secret block {name!r} must hold text, got {type(value).__name__}")
    return value.strip()
