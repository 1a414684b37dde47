"""Units of values, and words that say how a number is to be read."""

from collections.abc import Mapping

DURATION, DAY, MONTH = "duration", 86_400.0, 2_629_800.0
SHARE, MONEY = "share", frozenset({"dollars", "euros", "pounds", "yen"})

_SIZES = {
    DURATION: "ms:.001 millisecond:.001 second:1 sec:1 minute:60 min:60 hour:3600 hr:3600 h:3600 day:86400 week:604800 "
    "fortnight:1209600 month:2629800 year:31557600 yr:31557600 decade:315576000",
    "length": "mm:.001 cm:.01 m:1 metre:1 meter:1 km:1000 kilometre:1000 kilometer:1000 inch:.0254 inches:.0254 "
    "foot:.3048 feet:.3048 ft:.3048 yard:.9144 mile:1609.344",
    "mass": "mg:1e-6 g:.001 gram:.001 kg:1 kilogram:1 kilo:1 tonne:1000 lb:.4536 ounce:.02835 oz:.02835",
    "data": "kb:1e3 kilobyte:1e3 mb:1e6 megabyte:1e6 gb:1e9 gigabyte:1e9 tb:1e12 terabyte:1e12",
    "volume": "ml:.001 litre:1 liter:1",
    SHARE: "percent:1 pct:1 %:1",
    "dollars": "$:1 dollar:1 usd:1 cent:.01",
    "euros": "€:1 euro:1 eur:1",
    "pounds": "£:1 pound:1 gbp:1",
    "yen": "¥:1 yen:1 jpy:1",
}
UNITS: Mapping[str, tuple[str, float]] = {
    name: (kind, float(size))
    for kind, sizes in _SIZES.items()
    for name, size in (pair.split(":") for pair in sizes.split())
}
"""Name of a unit in the singular, or its sign -> kind, and size in the unit in which the kind is compared."""

SCALES: Mapping[str, float] = {
    "hundred": 1e2,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "k": 1e3,
    "m": 1e6,
    "mn": 1e6,
    "b": 1e9,
    "bn": 1e9,
}
"""Words, and letters behind an amount of money, that multiply the number before them."""

_ABOUT = "about almost approx approximately around circa nearly over roughly some than ~"
ABOUT = frozenset(_ABOUT.split())
"""Words before a number that is not exact."""

_IN_TIME = "after before by during each every early from in late mid of since to until year ("
IN_TIME = frozenset(_IN_TIME.split())
"""Words before a year or a month."""

_LABELS = """
    act appendix article chapter class clause day division episode example exercise figure grade group highway issue
    item lesson level line module no note number page paragraph part phase point question round route rule season
    section series stage step table tier title type unit version volume week zone §
"""
LABELS = frozenset(_LABELS.split())
"""Words before a number that names a thing and is no value of it."""
