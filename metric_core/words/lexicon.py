"""Word lists: function words, negations, numerals, mutually exclusive words."""

_STOP_WORDS = """
    a about above according accordingly across actually additionally after again against all almost along already
    also although always am among an and another any anyone anything are around as at away back be because been
    before behind being below besides between both but by can could did do does doing done down due during each
    either else especially etc even ever every everyone everything exactly finally first for from further
    furthermore generally get gets getting going got had has have having he hence her here hers herself him himself
    his how however i if in include included includes including indeed instead into is it its itself just later
    least less let likely made mainly make makes making many may maybe me might mine more moreover most mostly much
    must my myself namely nearly nevertheless new next nonetheless now of off often on once one only onto or other
    others our ours ourselves out over overall own particularly per perhaps please possible quite rather really
    regarding s said same say says see seem seems several shall she should similarly since so some someone something
    sometimes soon specifically still such t than that the their theirs them themselves then there therefore these
    they thing things this those though through throughout thus to together too toward towards typically under until
    up upon us usually various very via was way we well were what whatever when where whereas whether which while
    who whoever whom whose why will with within would yes yet you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words with little content."""

ACRONYMS = frozenset({"IT", "US", "WHO"})
"""Acronyms that are function words in lower case."""

NEGATIONS = frozenset(
    {"hardly", "neither", "never", "no", "nobody", "none", "nor", "not", "nothing", "rarely", "unabl", "without"}
)
"""Words that negate the words near them, as stems."""

_CLAUSE_WORDS = """
    although because but however if since so that though unless until when whereas which while who
"""
CLAUSE_WORDS = frozenset(_CLAUSE_WORDS.split())
"""Words that open a clause, so a negation before them does not negate the words after them."""

CLAUSE_WORDS_AFTER_COMMA = frozenset({"and", "he", "i", "it", "or", "she", "the", "they", "this", "we", "you"})
"""Words that open a clause after a comma."""

JOINING_WORDS = frozenset({"and", "but", "or"})
"""Words that open a clause before an auxiliary."""

_AUXILIARIES = "am are can could did do does had has have is may might must shall should was were will would"
AUXILIARIES = frozenset(_AUXILIARIES.split())
"""Auxiliary verbs."""

NUMBER_WORDS = {
    "zero": 0, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
    "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90, "dozen": 12, "twice": 2, "thrice": 3,
}  # fmt: skip
"""Numerals. "one" is excluded: it is a pronoun more often than a number."""

NUMBER_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
"""Words that multiply the number before them."""

MONTHS = {
    name[:3]: name
    for name in (
        "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
        "december",
    )
}  # fmt: skip
"""First three letters -> month."""

_OPPOSITES = """
    weekday/weekdays weekend/weekends
    monday tuesday wednesday thursday friday saturday sunday
    hourly daily weekly fortnightly monthly quarterly yearly/annual/annually
    minute/minutes hour/hours day/days week/weeks month/months year/years
    first second third fourth fifth sixth last
    north south east west
    northern southern eastern western
    before after
    more less/fewer
    most least
    minimum maximum
    above/over below/under
    increase/rise/grow/gain decrease/fall/drop/decline/reduce/lower
    increased/rose/grew/gained/risen decreased/fell/dropped/declined/reduced/lowered
    high/higher/highest low/lower/lowest
    large/larger/largest/big/bigger/biggest small/smaller/smallest
    long/longer short/shorter
    old/older/oldest young/younger/youngest
    early/earlier/earliest late/later/latest
    allow/allowed/permit/permitted forbid/forbidden/prohibit/prohibited/ban/banned
    mandatory/required/compulsory/obligatory optional/voluntary
    approve/approved/accept/accepted reject/rejected/refuse/refused/decline/declined/deny/denied
    include/includes/included/including exclude/excludes/excluded/excluding
    with without
    always never
    all none
    start/starts/started/begin/begins/began end/ends/ended/stop/stops/stopped
    open/opens/opened close/closes/closed
    buy/bought/purchase sell/sold
    win/won lose/lost
    paid unpaid
    full part
    permanent temporary
    internal external
    inside outside
    public private
    online offline
    domestic international
    indoor outdoor
    employer employee/employees
    male female
    man/men woman/women
    father mother
    son daughter
    brother sister
    husband wife
    born died
    left right
    morning afternoon evening night
    am pm
    positive negative
    legal illegal
    gross net
    single married
    import/imports export/exports
    success/successful failure/unsuccessful
    upper lower
    hot cold
    warm cool
    summer winter
    empty full
    safe dangerous
    wet dry
    cheap/cheaper expensive
    top bottom
    entrance exit
    credit debit
    manual/manually automatic/automatically
    verbal/verbally written
"""
OPPOSITES = (
    tuple((f"month-{month}",) for month in MONTHS.values()),
    *(tuple(tuple(side.split("/")) for side in line.split()) for line in _OPPOSITES.strip().splitlines()),
)
"""Groups of mutually exclusive sides; a side is a tuple of synonyms."""
