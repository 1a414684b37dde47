"""Make parts of premises as the code of verifiers' makers does: of whole sentences, joined again, as many as fit."""

import re
from collections.abc import Callable, Iterator, Sequence

from tasks.models.judges.verifiers.chunking import CountTokens
from tasks.models.judges.verifiers.chunking import size as size_in_bytes
from tasks.options.profile import SentenceParts

_LINE = "\n"
_MARK = re.compile(
    r"n't\b|'(?:s|re|ve|ll|d|m)\b"
    r"|(?:(?!n't\b)(?:\w|[./-](?=\w)|(?<=\d)[,:](?=\d)))+(?:\.(?=\s+\S))?"
    r"|\.{2,}|-{2,}|[^\w\s]"
)
"""Words, their contracted endings, numbers, and marks of punctuation, about as the Penn Treebank divides them: a full
stop is a mark of its own at the end of a sentence only."""

Split = Callable[[Sequence[str]], list[list[str]]]


def make_parts(
    rules: SentenceParts, premises: Sequence[str], split: Split, count_tokens: CountTokens
) -> list[tuple[str, ...]]:
    r"""Return the parts of each premise; none of a blank one.

    Args:
        split: Returns the sentences of each text.
        count_tokens: Returns the number of tokens of each text.

    >>> rules = SentenceParts(most=16)
    >>> split = lambda texts: [[text] if text else [] for text in texts]
    >>> make_parts(rules, ["Rain.\\nSnow."], split, lambda texts: [])
    [('Rain.\\nSnow.',)]
    """
    blocks = [premise.split(_LINE) if rules.keeps_lines else [premise] for premise in premises]
    flat = [block for each in blocks for block in each]
    found = iter(zip(flat, split(flat), strict=True))
    units = [list(_units([next(found) for _ in each])) for each in blocks]
    # No tokenizer makes more tokens than bytes, and words are fewer: what is short needs no count.
    long = [each for each in units if sum(map(size_in_bytes, each)) > rules.most]
    sizes = {unit: size_in_bytes(unit) for each in units for unit in each}
    sizes |= _sizes(rules, [unit for each in long for unit in each], count_tokens)
    return [tuple(_fill(rules, each, sizes)) for each in units]


def _units(blocks: Sequence[tuple[str, list[str]]]) -> Iterator[str]:
    """Yield the sentences of a premise, and the ends of its lines between them."""
    for number, (block, sentences) in enumerate(blocks):
        if number:
            yield _LINE
        indent = block[: len(block) - len(block.lstrip())] if sentences else ""
        yield from (f"{indent if not place else ''}{sentence}" for place, sentence in enumerate(sentences))


def _sizes(rules: SentenceParts, units: Sequence[str], count_tokens: CountTokens) -> dict[str, int]:
    distinct = list(dict.fromkeys(units))
    if rules.unit == "tokens":
        return dict(zip(distinct, count_tokens(distinct) if distinct else [], strict=True))
    return {unit: len(unit.split()) if rules.unit == "words" else len(_MARK.findall(unit)) for unit in distinct}


def _fill(rules: SentenceParts, units: Sequence[str], sizes: dict[str, int]) -> Iterator[str]:
    part: list[str] = []
    size = 0
    for unit in units:
        if part and size + sizes[unit] > rules.most:
            yield from _join(rules, part)
            part, size = [], 0
        part.append(unit)
        size += sizes[unit]
    yield from _join(rules, part)


def _join(rules: SentenceParts, part: Sequence[str]) -> Iterator[str]:
    """Yield a part, unless it is blank. Sentences of other lines are joined by the ends of these alone."""
    joined = rules.between.join(part).replace(f"{rules.between}{_LINE}{rules.between}", _LINE).strip()
    if joined:
        yield joined
