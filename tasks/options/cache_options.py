"""Declare the option that names the cache."""

from typing import Annotated

from pydantic import AfterValidator

from tasks.options.option import Flag, Option, OptionGroup
from tasks.runtime.database_address import normalize_address


class CacheOptions(OptionGroup, affects_scores=False):
    """The option that says where the answers of models are cached."""

    cache: Annotated[
        Annotated[str, AfterValidator(normalize_address)] | None,
        Option(
            "Cache of answers, vectors and entities: a SQLite file or a postgresql:// URL. Default: a file in "
            "ASSAY_HOME.",
            holds="address",
            cli=Flag(long="--cache", metavar="FILE|URL"),
            examples=["postgresql://assay@db.example/answers"],
        ),
    ] = None
