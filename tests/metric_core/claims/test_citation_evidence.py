"""Intervals, indices and other brackets change neither the text nor the passages that the citations name."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from metric_core.claims.citations import find_citations, strip_citations
from metric_core.claims.cited_contexts import first_number
from metric_core.records import Sample

DATA = Path(__file__).parents[4] / "shared" / "meta_eval" / "citations_attributionbench.parquet"


def test_what_only_looks_like_a_marker_stays() -> None:
    for text in [
        "All scores lie in [0, 1].",
        "The interval [0, 1] is closed, and so is the range [1, 5].",
        "Ratings are in [1, 5], on the [1, 5] scale.",
        "With x \u2208 [1, 3] and f = [1, 2, 3].",
        "It returns [1, 2, 3], i.e. [1, 2].",
        "Die Werte liegen im Intervall [0, 1].",
        "Los valores en [0, 1] y el intervalo [1, 2].",
        "Les valeurs sont dans [0, 1].",
        "\u092e\u093e\u0928 [0, 1] \u092e\u0947\u0902 \u0939\u0948\u0902\u0964",
        "Between [10, 20] and over [30, 40] of them.",
        "Take `row[0]` of it.",
        "```\nprint(args[1])\n```",
        "~~~python\nargs[1]\n~~~\nDone.",
        "It ends in code:\n```\nargs[1]",
        "<code>args[1]</code> and <pre>x [2]</pre>",
        "Then x[0] = 1, x[2] is 3, arr[1] and my_list[3] grow.",
        "Read rows[1].name, m[0][1], m[i][2] and f.args[1] of it.",
        "So [sic] it is [see above], 5 m\u00b2 of it, [...] and [x].",
        "[1 2 3], [-1, 1], [1.5], [a, b], [0.0, 1.0], [0, 1) and (0, 1]",
        "The matrix [[1, 2], [3, 4]] and [[1 2] [3 4]].",
        "So $x \\in [1, 2]$, \\(x = [1]\\) and \\[y [2]\\] and $$[3]$$.",
        "- [ ] to do\n- [x] done",
        "In [2021] and [1999], [1,000] and [12,345,678] of them.",
        "From [2021-01, 2021-02], at [12:30].",
        "[Figure 3], [May 2021], [COVID-19], [Smith 2020], [Step 1]",
        "Call [911](tel:911), see [3](#section-3) and [1](notes.html).",
        "Pattern [0-9]+ or [1-5]{2} matches; H[2]O is water.",
        "It won (7\u20135), [6-4] and (6-7).",
        "First (1) it rains, then (2) it pours.",
        "(1) It rains.\n(2) It pours.",
        'The marker "[1]" and \u201c[2]\u201d name passages.',
        "In 5 meters\u00b2 and (a + b)\u00b2 and 10 degrees\u2070.",
        "See https://example.org/a and [this](https://example.org/b).",
    ]:
        assert find_citations(text, passages=3) == [], text
        assert strip_citations(text, passages=3).text == text, text


def test_numbers_count_where_a_citation_can_stand() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("It rains [0]. It pours [0, 2].", ["0", "0 2"]),
        ("It rains [0]. All scores lie in [0, 1].", ["0"]),
        ("It rains [0, 2]. It pours [1].", ["1"]),  # no number 0 alone: the response does not say that it cites 0
        ("It rains[0]. It pours[1].", ["0", "1"]),
        ("It rains [1]. The list[0] is long.", ["1"]),
        ("Paris[1] is old, and London[2] is big.", ["1", "2"]),
        ("Paris [1] is old. Its old scans[2] say so. Its list[3] is long.", ["1", "2"]),
        ("As shown in [1, 2], it rains.", ["1 2"]),
        ("It costs $5 [1], not $6 [2].", ["1", "2"]),
        ("It rains [7].", ["7"]),
        ("It rains [2](https://example.org/x).", ["2"]),
        ("See https://example.org/wiki/Fars_Province[3]", ["3"]),
        ("It rains (1). It pours (3).", ["1", "3"]),
        ("It rains (1). It pours (4).", []),
        ("It rains (1). It pours [3].", ["3"]),
        ("He has a dog (1).", []),
        ("It has parameters\u00b2.", ["2"]),
        ("GDP[1]\u304c\u4e0a\u304c\u308b\u3002", ["1"]),
    ]
    for text, labels in cases:
        assert [" ".join(found.labels) for found in find_citations(text, passages=3)] == labels, (text, labels)


def test_ids_are_markers_and_so_are_names_that_differ_in_the_number() -> None:
    found = find_citations("It rains [kb-1]. It pours [kb-9]. It snows [ab-1], x[a] and [a].", ("kb-1", "kb-2", "a"))
    assert [citation.labels for citation in found] == [("kb-1",), ("kb-9",), ("a",)]
    assert [found.labels for found in find_citations("It is [a[1]].", ("a[1]",))] == [("a[1]",)]


def test_links_are_citations_of_contexts_whose_id_is_the_url() -> None:
    text = "It rains ([Weather](https://example.org/a)). Read [this](https://example.org/a/) page, not [2](https://b.org/2)."
    found = find_citations(text, ("https://www.example.org/a",), passages=1)
    assert [citation.labels for citation in found] == [("https://example.org/a",), ("https://example.org/a/",)]
    assert strip_citations(text, ("https://www.example.org/a",), passages=1).text == text.replace(
        " ([Weather](https://example.org/a))", ""
    )


def test_an_interval_moves_no_number() -> None:
    row = Sample(retrieved_contexts=("a", "b", "c"))
    labels = [label for found in find_citations("It rains [1]. All scores lie in [0, 1].") for label in found.labels]
    assert (labels, first_number(labels, row)) == (["1"], 1)


@pytest.mark.skipif(not DATA.exists(), reason="the labelled citations are not beside the project")
def test_the_markers_of_labelled_responses_are_found_and_leave_nothing() -> None:
    rows: list[dict[str, Any]] = pq.read_table(DATA, columns=["response"]).to_pylist()
    texts = [row["response"] for row in rows]
    marked = [text for text in texts if "[1]" in text]
    assert len(marked) > 200
    for text in texts:
        stripped = strip_citations(text).text
        assert (stripped == text) == (not find_citations(text)) or "in [" in text
    assert sum("[1]" not in strip_citations(text).text for text in marked) >= 0.95 * len(marked)
