"""Write figures as text."""

from math import isinf


def format_number(value: float) -> str:
    """Return a value with up to three decimals, or four significant digits from 100 on.

    >>> format_number(0.66666), format_number(42.0), format_number(-0.0001)
    ('0.667', '42', '0')
    """
    text = f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 100 else f"{value:.4g}"
    return "0" if text == "-0" else text


def format_fixed(value: float) -> str:
    """Return a value with three decimals, without a sign on zero.

    >>> format_fixed(0.5), format_fixed(-0.0001)
    ('0.500', '0.000')
    """
    text = f"{value:.3f}"
    return text.removeprefix("-") if float(text) == 0 else text


def describe_bounds(bounds: tuple[float, float]) -> str:
    """Return the range of a metric in words.

    >>> describe_bounds((0, 1)), describe_bounds((0, float("inf")))
    ('0 to 1', '0 and above')
    """
    low, high = bounds
    return f"{low:g} and above" if isinf(high) else f"{low:g} to {high:g}"
