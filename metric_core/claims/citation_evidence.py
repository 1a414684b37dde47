r"""Distinguish citations from other numbers in brackets: intervals, indices of arrays, lists, thousands, links.

A number in brackets is a citation where a citation is possible. The text around it can show that it is something
else: `x[2]`, `a ∈ [1, 5]`, `scores from [1, 5]`, `the [1, 5] range`, `[1, 2, 3] =`. A number 0 needs more: it is
alone where a clause ends, or the response cites 0 alone elsewhere; so `[0, 1]` alone shows neither that the
response cites nor that it counts from 0. A number in parentheses counts where a response cites in no other way.
"""

import re
from collections.abc import Collection, Sequence

from metric_core.claims.citation_forms import CONJUNCTION, FoundForm
from metric_core.claims.cited_files import page_of

_BRACKETED = {"nested", "number", "wide"}
_LINKED = {"link", "url"}
_LONGEST_INDEX = 2
"""Characters of the longest id that is read as a number is, because intervals and indices have such names."""

_WINDOW = 40
_OPERATOR_BEFORE = re.compile(
    r"[=\u2208\u2209\u222a\u2229\u00d7\u2282\u2286\u2283\u00b1\u2264\u2265\u2248\u2192\u21a6^][ ]?\Z"
)
_QUOTES = {*"\"'\u201c\u201d\u201e\u00ab\u00bb"}
_OPERATOR_BEHIND = re.compile(r"[ ]?[=\u222a\u2229\u00d7\u2208]|[+{]")
_NOUN = (
    r"(?:intervals?|ranges?|domain|arrays?|lists?|vectors?|matri(?:x|ces)|tuples?|sequences?|ind(?:ex|ices)|elements?"
    r"|slots?|scales?|bereich|wertebereich|skala|listen?|vektor|intervalle?s?|intervalos?|rangos?|escala|listas?|matriz"
    r"|plages?|\u00e9chelle|listes?|vecteur|matrice|\u0905\u0902\u0924\u0930\u093e\u0932|\u0938\u0942\u091a\u0940)"
)
_BARE_NOUN_BEFORE = re.compile(rf"(?i)\b{_NOUN}[ ](?:(?:of|from|von|de)[ ])?\Z")
_NOUN_BEFORE = re.compile(
    r"(?i)\b(?:the|an?|das|der|dem|den|die|im|eine?[mnr]?|el|la|un|una|le|une)[ ](?:(?:unit|closed|open|half-open)[ ])?"
    rf"{_NOUN}[ ](?:(?:of|from|von|de)[ ])?\Z"
)
_NOUN_BEHIND = re.compile(rf"(?i)[ -](?:{_NOUN}\b|\u092e\u0947\u0902)")
_STATISTIC_BEFORE = re.compile(
    r"(?:\b(?:CI|CrI|HDI|HPD|IQR|KI|SD|SE|[Qq]uartiles?|[Pp]ercentiles?|[Tt]erciles?"
    r"|(?i:(?:confidence|credible|prediction|interquartile)[ ](?:intervals?|range)|(?:konfidenz|vertrauens)intervall"
    r"|intervalle[ ]de[ ]confiance|intervalo[ ]de[ ]confianza))|\bI\.?C\.?)"
    r"[ ]?(?:\(?\d{1,2}(?:[.,]\d)?[ ]?%\)?)?[:=]?[ ]\Z"
    r"|\b(?:a?OR|a?HR|I?RR|S?MD|[Mm]ean|[Mm]edians?|[Mm]ittelwert|[Mm]ediana?|[Mm]\u00e9diane)\b"
    r"(?:[ ](?:of|was|is|age|IQR|\(IQR\)|[=:]))*[ =:]{1,2}[-\u2212]?\d+(?:[.,]\d+)?[ ]?%?[ ]?\(?\Z"
)
"""Words before an interval of statistics: its name, or an estimate."""
_AGED_BEFORE = re.compile(
    r"(?i)(?:\b(?:aged?|pages|pp\.|\u00e2g\u00e9e?s?[ ]de|seiten|p\u00e1ginas|edades|alter)|(?<!\bfor[ ])\bages)[ ]\Z"
)
"""Words for what a range counts: ages and pages."""
_COUNTED_BEFORE = re.compile(
    r"(?i)(?:\A|[\n.!?(][ ]?|\b(?:for|in|at|of|from|between|only)[ ])"
    r"(?:ages|grades|levels|stages|phases|classes|steps|stufen|klassen|phasen|niveles|fases|niveaux)[ ]\Z"
)
"""Words for what a range counts where the sentence goes on behind it; a sentence that cites may end with them."""
_VERB_BEFORE = re.compile(
    r"(?i)\b(?:(?:lies?|lying|falls?|falling|is|are|was|were|be|being|rang(?:e|es|ing)|values?|numbers?|integers?"
    r"|points?|scores?|ratings?|scaled|normali[sz]ed|rescaled|mapped|clipped|clamped|restricted|bounded"
    r"|uniform(?:ly)?|distributed|defined|interval|liegt|liegen|werte?|zahlen|valores?|n\u00fameros?|est\u00e1n?"
    r"|valeurs?|nombres?|sont|est|[a-z])[ ](?:in|on|within|over|to|into|between|auf|im|zwischen|en|entre|sur|dans)"
    r"|returns?|prints?|outputs?|yields?|equals?|i\.e\.|e\.g\.|d\.[ ]?h\.|z\.[ ]?b\.|p\.[ ]?ej\.|c\.-\u00e0-d\.)[ ]\Z"
)
_IN_BEFORE = re.compile(r"(?i)\b(?:in|on|within|over|between|auf|im|zwischen|en|entre|sur|dans)[ ]\Z")
_CLAUSE_END = re.compile(
    r"(?i)[ ]?(?:[.,;:!?)\u3002\uff0c\u3001*_<\n]|\Z)|[ ]?[\[\u3010\uff3b]"
    rf"|[ ](?:{CONJUNCTION}|but|while|whereas|which|that|because|aber|pero|mais)\b"
)
_WORD_BEFORE = re.compile(r"[A-Za-z_0-9\u00c0-\u024f.]*[A-Za-z_0-9\u00c0-\u024f]\Z")
_INDEXED_BEFORE = re.compile(r"([A-Za-z_0-9.]+)(?:\[[^\[\]\n]{0,20}\]){1,2}\Z")
_CODE_WORD = re.compile(
    r"[a-z]|[a-z]{1,2}\d{1,2}|\w*_\w*|(?i:arr|arrays?|args?|argv|kwargs|lst|vec|vector|mat|matrix|nums?|tup|tuple|dict"
    r"|df|buf|idx|ptr|xs|ys|zs|rows?|cols?|items|elems)"
)
_CODE_OR_NAME = re.compile(r"[A-Z]|[a-z]+[A-Z]\w*|[A-Za-z]\w*(?:\.[A-Za-z]\w*)+")
_MAY_BE_ARRAY = re.compile(
    r"(?i)lists?|data|values?|results?|strings?|sequences?|tokens?|elements?|series|tables?|buffers?|queues?|stacks?"
    r"|inputs?|outputs?|keys?|names?|lines?|words?|points?|users?|files?|indices|scores?"
)
"""Words that are names of arrays where the response writes its citations apart from words."""

_CODE_BEHIND = re.compile(r"[A-Za-z0-9_(]|\.[a-z_]")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_TASK_BEFORE = re.compile(r"(?:^|\n)[ \t]*(?:[-*+]|\d{1,3}[.)])[ ]\Z")
_NUMBER_TARGET = re.compile(r"#(?:user-content-)?(?:ref|cit|fn|note|foot|source|src|doc|bib|context|passage|chunk)")
_SENTENCE_PART_END = re.compile(rf"[ ]?(?:[.,;:!?\u3002](?!\d)|\n|\Z|(?:{CONJUNCTION}[ ])?\(\d)")
_SQUARED = re.compile(
    r"(?i)\b(?:(?:kilo|kil\u00f3|centi|milli|deci|quadrat)?(?:met(?:er|re|ro)s?|metern|m\u00e8tres?)|miles?|feet|foot"
    r"|inch(?:es)?|yards?|seconds?|pulgadas?)\Z"
)


_RAISED_LIST = re.compile(r"[\u2070\u00b9\u00b2\u00b3\u2074-\u2079][,\u207b][ ]?\Z")
_LETTERS_BEFORE = re.compile(r"[^\W\d_](?:[^\W\d_]|['\u2019](?=[^\W\d_]))*\Z")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff\u0900-\u0dff]")
_UNITS = frozenset(
    ["mm", "cm", "dm", "hm", "km", "nm", "µm", "μm", "ft", "in", "yd", "mi", "ha", "sec", "CO", "NO", "SO", "PO"]
)
"""Short words whose square or cube is a unit, or whose index is written as one."""
_FUNCTIONS = frozenset(["sin", "cos", "tan", "cot", "sec", "csc", "log", "ln", "exp"])


def keep_citations(
    text: str, found: Sequence[FoundForm], ids: Collection[str] = (), passages: int | None = None
) -> list[FoundForm]:
    """Return those of the parts with the form of a marker that are citations.

    Args:
        found: Parts that have the form of a marker, in order.
        ids: Ids of the retrieved contexts.
        passages: Number of retrieved contexts; None if it is not known.

    >>> from metric_core.claims.citation_forms import find_forms
    >>> text = "It rains [1]. All scores lie in [0, 1], as x[0] does. It pours [2]."
    >>> [each.labels for each in keep_citations(text, find_forms(text), passages=3)]
    [('1',), ('2',)]
    """
    pages = {page_of(name) for name in ids} - {None}
    possible = [each for each in found if _is_possible(text, each, pages, passages)]
    numbers = [each for each in possible if each.form in _BRACKETED]
    apart = {each.start for each in numbers if not _word_before(text, each)}
    zeros = [each for each in numbers if each.labels == ("0",) and _CLAUSE_END.match(text, each.end)]
    if apart or len(numbers) == 1:
        zeros = [each for each in zeros if each.start in apart]
    zero_starts = {each.start for each in zeros}
    cites_zero = bool(zeros) or "0" in ids or any(each.form == "named" and _holds_zero(each) for each in possible)

    def is_citation(each: FoundForm) -> bool:
        if each.form not in _BRACKETED:
            return True
        if apart and _MAY_BE_ARRAY.fullmatch(_word_before(text, each)) and not _CLAUSE_END.match(text, each.end):
            return False
        return each.start in zero_starts if each.labels == ("0",) else cites_zero or not _holds_zero(each)

    return _keep_parentheses(text, [each for each in possible if is_citation(each)], ids, passages)


def _is_possible(text: str, each: FoundForm, pages: Collection[str | None], passages: int | None) -> bool:
    """Return whether a citation is possible at the place of a part, whatever else the text cites."""
    if each.form in _LINKED:
        return page_of(each.labels[0]) in pages
    if each.form == "superscript":
        return "0" not in each.labels and not _is_power(text, each)
    is_short = all(len(label) <= _LONGEST_INDEX for label in each.labels)
    if each.form == "id":
        before = text[max(0, each.start - _WINDOW) : each.start]
        return not is_short or not (_TASK_BEFORE.search(before) or _is_operand(text, each, passages))
    if each.form not in _BRACKETED:
        return True
    return not (
        not all(map(str.isdecimal, each.labels))
        or _THOUSANDS.fullmatch(text, each.start + 1, each.end - 1)
        or _is_other_link(each, pages, passages)
        or _is_operand(text, each, passages)
    )


def _is_power(text: str, each: FoundForm) -> bool:
    """Return whether raised numbers are a power, an exponent of a unit, or the rest of a list that begins with one."""
    before = text[max(0, each.start - _WINDOW) : each.start]
    if _RAISED_LIST.search(before):
        return True
    word = _LETTERS_BEFORE.search(before)
    name = "" if word is None else word[0]
    if (len(name) == 1 and not _IDEOGRAPH.fullmatch(name)) or name in _FUNCTIONS:
        return True
    is_square = each.labels[0] in ("2", "3")
    return is_square and (before.endswith(")") or name in _UNITS or _SQUARED.search(before) is not None)


def _is_other_link(each: FoundForm, pages: Collection[str | None], passages: int | None) -> bool:
    """Return whether a number leads to something else than a passage: a section, an issue, a telephone."""
    if each.target.startswith("#"):
        return _NUMBER_TARGET.match(each.target) is None
    return bool(each.target) and _is_beyond(each, passages) and page_of(each.target) not in pages


def _is_operand(text: str, each: FoundForm, passages: int | None) -> bool:
    """Return whether brackets are an index, an interval or a list by what is around them."""
    before = text[max(0, each.start - _WINDOW) : each.start]
    if before[-1:] in _QUOTES and text[each.end : each.end + 1] in _QUOTES:
        return True
    if _OPERATOR_BEFORE.search(before) or _OPERATOR_BEHIND.match(text, each.end) or _is_index(text, each, before):
        return True
    if len(each.labels) == 1 and not _holds_zero(each):
        return False
    if _NOUN_BEHIND.match(text, each.end):
        return True
    return before.endswith((" ", "(")) and _is_measured(text, each, before, passages)


def _is_measured(text: str, each: FoundForm, before: str, passages: int | None) -> bool:
    """Return whether the words before a list or range say that it is an interval, or counts something."""
    if _STATISTIC_BEFORE.search(before) or _AGED_BEFORE.search(before):
        return True
    if _COUNTED_BEFORE.search(before) and not _CLAUSE_END.match(text, each.end):
        return True
    noun = _BARE_NOUN_BEFORE if _holds_zero(each) else _NOUN_BEFORE
    is_beyond_in = _is_beyond(each, passages) and _IN_BEFORE.search(before)
    return bool(is_beyond_in or noun.search(before) or _VERB_BEFORE.search(before))


def _is_index(text: str, each: FoundForm, before: str) -> bool:
    """Return whether brackets are an index of the name that they are written to: x[2], row[1].name, m[i][0]."""
    indexed = _INDEXED_BEFORE.search(before)
    if indexed and _CODE_WORD.fullmatch(indexed[1]):
        return True
    word = _word_before(text, each)
    if not word:
        return False
    if _CODE_WORD.fullmatch(word) or _CODE_BEHIND.match(text, each.end):
        return True
    return _CODE_OR_NAME.fullmatch(word) is not None and not _CLAUSE_END.match(text, each.end)


def _keep_parentheses(
    text: str, kept: Sequence[FoundForm], ids: Collection[str], passages: int | None
) -> list[FoundForm]:
    """Return the citations, those in parentheses only where a response cites in no other way, and not as in a list."""
    numbers = [each for each in kept if each.form == "parenthesis"]
    others = [each for each in kept if each.form != "parenthesis"]
    labels = {label for each in numbers for label in each.labels}
    are_cited = (
        not others
        and (len(numbers) > 1 or labels <= set(ids))
        and all(label in ids or 1 <= int(label) <= (passages or 0) for label in labels)
        and all(_SENTENCE_PART_END.match(text, each.end) and not _begins_line(text, each) for each in numbers)
    )
    return numbers if are_cited else others


def _word_before(text: str, each: FoundForm) -> str:
    """Return the word of Latin letters that brackets are written to without a space; that of a URL is none."""
    word = _WORD_BEFORE.search(text[max(0, each.start - _WINDOW) : each.start])
    return word[0] if word and word.string[word.start() - 1 : word.start()] not in ("/", ":") else ""


def _begins_line(text: str, each: FoundForm) -> bool:
    before = text[max(0, each.start - _WINDOW) : each.start].rstrip(" \t")
    return not before or before.endswith("\n")


def _holds_zero(each: FoundForm) -> bool:
    return any(label.lstrip("0") == "" or label.endswith(("-0", " 0")) for label in each.labels)


def _is_beyond(each: FoundForm, passages: int | None) -> bool:
    """Return whether every number is beyond the number of passages, as far as that is known."""
    return passages is not None and all(label.isdecimal() and int(label) > passages for label in each.labels)
