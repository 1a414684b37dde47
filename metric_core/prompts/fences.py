r"""Put untrusted text in fences, which it can neither close nor leave by special tokens of a chat template.

A fence is `<quoted LABEL>`, the text, `</quoted>`. Anything that could be read as a fence or as a special token is
neutralized by a backslash after its first character (`<\/quoted>`, `<\|im_end|>`, `[\INST]`): it stays visible, and no
tokenizer reads it as a special token. Nothing else is changed, except control characters and line breaks other than
"\n".
"""

import re
from functools import lru_cache

from metric_core.prompts.homoglyphs import CLOSING_BRACKETS, OPENING_BRACKETS, fold_text

FENCE_WORD = "quoted"
_LABEL = re.compile(r"[a-z][a-z0-9_]*\Z")

_LINE_BREAK = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_UNWANTED = re.compile(
    "(\U0001f3f4[\U000e0061-\U000e007a]{3,5}\U000e007f)"  # a flag: the only legitimate use of tag characters
    "|[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHANGED = re.compile(f"{_LINE_BREAK.pattern}|{_UNWANTED.pattern}|{_SURROGATE.pattern}")

_FOLDED_TO_OPENING = "\uff1c\ufe64\u226e\u2329\ufe3d\ufe3f\uff3b\ufe47\uff3d\ufe48\uff03\ufe5f"
_MAY_OPEN = re.compile(rf"[{OPENING_BRACKETS}\[\]#{_FOLDED_TO_OPENING}]")
_MAY_OPEN_ASCII = tuple(character for character in map(chr, range(128)) if _MAY_OPEN.match(character))
_DELIMITER = re.compile(
    rf"""
    [{OPENING_BRACKETS}](?=(?i:               # a fence, whole or half, in any kind of brackets
        (?:(?:\s*/)+\s*)?{FENCE_WORD}(?:[{CLOSING_BRACKETS}]|(?![\w-]))
      | \s+{FENCE_WORD}\b[^<>\n]{{0,40}}[{CLOSING_BRACKETS}]
    ))
  | <(?=\|[^\s<>|]{{1,64}}\|?> | [^\s<>|\\]{{1,64}}\|>)  # <|im_start|>, <|turn>, <turn|> and the like
  | \[(?=\|[^\s\[\]|]{{1,64}}\|\])            # [|user|]
  | <(?=</?(?i:sys)>>)                        # <<SYS>>
  | <(?=(?i:
        /?(?:s|think|thinking|tools?|tool_(?:calls?|responses?|list)|arg_\w+|function_calls?|seed:\w+|minimax:\w+)
      | (?:bos|eos|pad|unk|mask|sop|eop|eod|eot|eom|eoh|eoa)(?:_token)?
      | (?:start|end)_of_\w+ | fim_\w+ | unused_?\d+ | reserved_\w+ | tokens_unused_\d+ | extra_id_\d+
      | special_\d+ | (?:image|audio)_soft_token | img_context
    )>)
  | \[(?=(?i:
        /?inst | /?system_prompt | /?available_tools | /?tool_(?:calls|results|content) | /?model_settings | [gs]mask
    )\])
  | \[(?=(?:/?THINK | ARGS | CALL_ID | IMG | IMG_BREAK | IMG_END | AUDIO | BEGIN_AUDIO | PREFIX | MIDDLE | SUFFIX)\])
  | \[(?=e~\[) | \](?=~!?b[\[\]])             # [e~[ and ]~b]
  | \#(?=\#\#+[ \t]*(?i:instructions?|input|output|response|system|user|human|assistant)[ \t]*:)
    """,
    re.VERBOSE,
)


def fence(label: str, text: str) -> str:
    r"""Return the text in a fence.

    Raises:
        ValueError: If the label has characters other than lower-case letters, digits and underscores.

    >>> fence("claim", "Rain </quoted> is wet.")
    '<quoted claim>\nRain <\\/quoted> is wet.\n</quoted>'
    """
    if not _LABEL.match(label):
        raise ValueError(
            f"the label of a fence must consist of lower-case letters, digits and underscores, got {label!r}"
        )
    return f"<{FENCE_WORD} {label}>\n{neutralize(text)}\n</{FENCE_WORD}>"


def contains_fence(text: str) -> bool:
    """Return whether a trusted text contains the beginning or the end of a fence.

    >>> contains_fence("The claim in <quoted claim> is to be judged.")
    True
    """
    return f"<{FENCE_WORD} " in text or f"</{FENCE_WORD}>" in text


@lru_cache(maxsize=1024)  # a premise is in many questions, of rows that are computed at the same time
def neutralize(text: str) -> str:
    r"""Return the text without control characters, with lookalikes of fences and special tokens neutralized.

    >>> neutralize("a < b, <b>bold</b>, x[0] # fine")
    'a < b, <b>bold</b>, x[0] # fine'
    >>> print(neutralize("<|im_end|>\r\n< / quoted >"))
    <\|im_end|>
    <\ / quoted >
    """
    text = _strip_controls(text)
    if text.isascii():
        if not any(character in text for character in _MAY_OPEN_ASCII):
            return text
        return _DELIMITER.sub(r"\g<0>\\", text)
    if not _MAY_OPEN.search(text):
        return text
    folded, positions = fold_text(text)
    pieces, done = [], 0
    for match in _DELIMITER.finditer(folded):
        end = positions[match.start()] + 1
        pieces += [text[done:end], "\\"]
        done = end
    return "".join([*pieces, text[done:]])


def _strip_controls(text: str) -> str:
    is_plain = text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()
    if is_plain or not _CHANGED.search(text):  # nearly every text
        return text
    text = _LINE_BREAK.sub("\n", text)
    text = _UNWANTED.sub(lambda match: match[1] or "", text)
    return _SURROGATE.sub("\ufffd", text)
