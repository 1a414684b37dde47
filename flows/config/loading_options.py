"""Declare the option that bounds the files that hold options."""

from typing import Annotated

from tasks.options.option import Option, OptionGroup


class LoadingOptions(OptionGroup, affects_scores=False):
    """The option that bounds configuration, gate and job files."""

    max_config_bytes: Annotated[
        int,
        Option(
            "Maximum number of bytes of a configuration, gate or job file, with the aliases of YAML written out. Set "
            "the environment variable: it is read before the file.",
            ge=1024,
        ),
    ] = 1024**2
