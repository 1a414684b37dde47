"""Load a profile: a packaged one by its name, or one of a user from a file."""

import tomllib
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from metric_core.errors import ConfigError
from metric_core.parsing.regular_files import regular
from tasks.options.profile import Profile
from tasks.runtime.wording import prefix_place

FOLDER = Path(__file__).parent / "profiles"


def profile_names() -> tuple[str, ...]:
    """Return the names of the packaged profiles, sorted.

    >>> "minicheck-7b" in profile_names()
    True
    """
    return tuple(sorted(path.name.removesuffix(".toml") for path in FOLDER.glob("*.toml")))


def is_profile_name(word: str) -> bool:
    """Return whether a word names a packaged profile, or a file of the user by a path that ends with `.toml`.

    >>> is_profile_name("factcg"), is_profile_name("mine/verifier.toml"), is_profile_name("builtin")
    (True, True, False)
    """
    return word in profile_names() or (word.endswith(".toml") and "://" not in word and "@" not in word)


def load_profile(name: str) -> Profile:
    """Return a profile.

    Args:
        name: Name of a packaged profile, or path of a file that ends with `.toml`.

    Raises:
        ConfigError: The profile does not exist, or the file is not one.

    >>> load_profile("factcg").license
    'MIT'
    """
    if name.endswith(".toml"):
        return _read(Path(name).expanduser())  # not cached: the file may change while the process runs
    if name not in profile_names():
        raise ConfigError(
            f"there is no profile {name!r}; wanted one of {', '.join(profile_names())}, or the path of a file of your "
            "own that ends with .toml"
        )
    return _packaged(name)


@lru_cache
def _packaged(name: str) -> Profile:
    return _read(FOLDER / f"{name}.toml")


def _read(path: Path) -> Profile:
    try:
        content = tomllib.loads(regular(path).read_text(encoding="utf-8-sig"))
        return Profile.model_validate(content)
    except OSError as error:
        raise ConfigError(f"the profile {path} cannot be read: {error.strerror}. Check its path") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the profile {path} is not UTF-8; save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the profile {path} is not TOML: {error}") from error
    except ValidationError as error:
        problems = "; ".join(
            prefix_place(each["loc"] or ("profile",), each["msg"].removeprefix("Value error, "))
            for each in error.errors()
        )
        raise ConfigError(
            f"the profile {path} is not valid: {problems}. `assay docs judge-servers` shows its format"
        ) from error
