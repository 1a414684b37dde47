"""Units of values, and words that say how a value is to be read."""

from collections.abc import Mapping

DURATION, CALENDAR = "duration", 8.64e4
"""Kind of durations, which are compared in seconds, and the seconds of a day, from which on calendars differ."""


def _units(kind: str, sizes: Mapping[str, float]) -> dict[str, tuple[str, float]]:
    return {name: (kind, size) for names, size in sizes.items() for name in names.split()}


UNITS: Mapping[str, tuple[str, float]] = {
    **_units(
        DURATION,
        {
            "millisecond ms": 0.001,
            "second sec": 1,
            "minute min": 60,
            "hour hr h": 3600,
            "day": CALENDAR,
            "week": 7 * CALENDAR,
            "fortnight": 14 * CALENDAR,
            "month": 365.25 / 12 * CALENDAR,
            "quarter": 365.25 / 4 * CALENDAR,
            "year yr": 365.25 * CALENDAR,
            "decade": 3652.5 * CALENDAR,
            "century centuries": 36525 * CALENDAR,
        },
    ),
    **_units(
        "length",
        {
            "mm millimetre millimeter": 0.001,
            "cm centimetre centimeter": 0.01,
            "m metre meter": 1,
            "km kilometre kilometer": 1000,
            "inch inches": 0.0254,
            "foot feet ft": 0.3048,
            "yard": 0.9144,
            "mile mi": 1609.344,
        },
    ),
    **_units("mass", {"mg milligram": 1e-6, "g gram": 0.001, "kg kilogram kilo": 1, "tonne": 1000}),
    **_units("mass", {"lb pound-weight": 0.4536, "ounce oz": 0.02835}),
    **_units("data", {"kb kilobyte": 1e3, "mb megabyte": 1e6, "gb gigabyte": 1e9, "tb terabyte": 1e12}),
    **_units("volume", {"ml millilitre milliliter": 0.001, "litre liter": 1}),
    **_units("share", {"percent per-cent pct": 1, "percentage": 1}),
    **_units("dollars", {"dollar usd buck": 1, "cent": 0.01}),
    **_units("euros", {"euro eur": 1}),
    **_units("pounds", {"pound gbp": 1}),
    **_units("yen", {"yen jpy": 1}),
}
"""Name of a unit in the singular -> kind and size in the unit in which the kind is compared."""

SYMBOLS: Mapping[str, tuple[str, float]] = {
    "%": ("share", 1),
    "$": ("dollars", 1),
    "€": ("euros", 1),
    "£": ("pounds", 1),
    "¥": ("yen", 1),
}

MONEY = frozenset({"dollars", "euros", "pounds", "yen"})

BETWEEN = frozenset(
    {"working", "business", "calendar", "consecutive", "full", "additional", "more", "further", "u.s", "us"}
)
"""Words between a number and its unit."""

SCALES: Mapping[str, float] = {"k": 1e3, "m": 1e6, "bn": 1e9, "mn": 1e6, "b": 1e9}
"""Letters directly behind an amount of money."""

ABOUT = frozenset(
    {"about", "almost", "approximately", "around", "circa", "nearly", "over", "roughly", "some", "than", "~", "approx"}
)
"""Words before a value that is not exact."""

TO = frozenset({"-", "\u2013", "\u2014", "to", "or"})
"""Words between the two ends of a range."""

YEARLY = frozenset(
    {"after", "before", "by", "during", "early", "from", "in", "late", "mid", "of", "since", "spring", "summer"}
    | {"until", "winter", "autumn", "fall", "year", "and", "("}
    | TO
)
"""Words before a number that is a year."""

LABELS = frozenset(
    {"appendix", "article", "chapter", "class", "clause", "division", "example", "exercise", "figure", "grade"}
    | {"group", "item", "lesson", "level", "line", "module", "no", "note", "page", "paragraph", "part", "phase"}
    | {"point", "question", "round", "rule", "season", "section", "stage", "step", "table", "tier", "type", "unit"}
    | {"volume", "zone", "episode", "issue", "day", "week", "series", "act", "title", "§", "#", "highway", "route"}
)
"""Words before a number that names a thing and is no value of it."""
