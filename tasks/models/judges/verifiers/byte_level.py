"""Find the positions of byte-level tokens in a text, from the tokens that a server names."""

from collections.abc import Sequence
from functools import lru_cache

_FIRST_FREE = 256


@lru_cache(maxsize=1)
def _bytes_by_character() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary represents.

    Printable bytes stand for themselves, the others for the characters from U+0100 on, as in GPT-2 (Radford et al.,
    2019), whose vocabulary ModernBERT, RoBERTa and Llama 3 have in common.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(_FIRST_FREE + number): byte for number, byte in enumerate(others)
    }


def token_offsets(text: str, tokens: Sequence[str]) -> list[tuple[int, int]] | None:
    r"""Return the positions of tokens in the text that they make up; None if they do not.

    Args:
        tokens: Its tokens, as a tokenizer names them.

    >>> token_offsets("It rains.", ["It", "\u0120rain", "s", "."])
    [(0, 2), (2, 7), (7, 8), (8, 9)]
    >>> token_offsets("It rains.", ["It", "##s"]) is None
    True
    """
    table = _bytes_by_character()
    content = text.encode("utf-8", "replace")
    starts = [0]
    for character in text:
        starts.append(starts[-1] + len(character.encode("utf-8", "replace")))
    character_at = {byte: position for position, byte in enumerate(starts)}
    offsets, done = [], 0
    for token in tokens:
        # A token added to the vocabulary, such as a run of spaces, is named as it is written.
        is_byte_level = all(character in table for character in token)
        part = bytes(table[character] for character in token) if is_byte_level else token.encode("utf-8", "replace")
        if content[done : done + len(part)] != part:
            return None
        offsets.append((done, done + len(part)))
        done += len(part)
    if done != len(content):
        return None
    return [(_before(start, character_at), _behind(end, character_at, len(text))) for start, end in offsets]


def _before(byte: int, character_at: dict[int, int]) -> int:
    """Return the character that a byte belongs to."""
    while byte not in character_at:
        byte -= 1
    return character_at[byte]


def _behind(byte: int, character_at: dict[int, int], length: int) -> int:
    """Return the position behind the character that the byte before belongs to."""
    while byte not in character_at:
        byte += 1
    return min(character_at[byte], length)
