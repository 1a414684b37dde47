"""Secrets that a Prefect server keeps, encrypted, as blocks of the type Secret."""

from metric_core.errors import ConfigError


def read_secret_block(name: str) -> str:
    """The text in a Secret block.

    Args:
        name: the block's name.

    Raises:
        ConfigError: no server is configured or reachable, or it has no such block, or none that holds a text.
    """
    import httpx  # noqa: PLC0415 who has no blocks need not load Prefect
    from prefect.client.orchestration import get_client  # noqa: PLC0415
    from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError  # noqa: PLC0415
    from prefect.settings import get_current_settings  # noqa: PLC0415

    if get_current_settings().api.url is None:
        raise ConfigError(
            f"block:{name} names a Secret block, but no Prefect server is set; set PREFECT_API_URL to the one with it"
        )
    try:
        with get_client(sync_client=True) as client:
            value = client.read_block_document_by_name(name, "secret").data.get("value")
    except ObjectNotFound as error:
        raise ConfigError(
            f"the Prefect server has no Secret block {name!r}; make it on its page, or from Python: "
            f'prefect.blocks.system.Secret(value=...).save("{name}")'
        ) from error
    except (httpx.HTTPError, PrefectHTTPStatusError) as error:
        raise ConfigError(f"the Secret block {name!r} can not be read: {type(error).__name__}") from error
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"the Secret block {name!r} must hold a text, got {type(value).__name__}")
    return value.strip()
