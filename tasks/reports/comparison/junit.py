"""Write a gate as JUnit XML, which continuous integration shows rule by rule; inconclusive rules are skipped."""

import re
from xml.etree import ElementTree as ET

from metric_core.gates.rules import Check, GateResult, Outcome
from tasks.documents.comparison.comparison_words import check_facts

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def gate_junit_xml(gate: GateResult, name: str) -> str:
    """Return the gate as the text of a JUnit XML file.

    If the gate failed only because inconclusive rules count as failed, these rules are failures.

    Args:
        name: Run that was checked.
    """
    outcomes = {check.outcome for check in gate.checks}
    is_strict = gate.outcome is Outcome.FAILED and Outcome.FAILED not in outcomes
    suite = ET.Element("testsuite", name=_clean(f"gate: {name}"))
    for check in gate.checks:
        case = ET.SubElement(
            suite, "testcase", classname=f"gate.{check.kind}", name=_clean(f"{check.subject}: {check.rule}"), time="0"
        )
        if check.outcome is Outcome.FAILED or (is_strict and check.outcome is Outcome.INCONCLUSIVE):
            ET.SubElement(case, "failure", message=_clean(check.reason), type=str(check.outcome)).text = _facts(check)
        elif check.outcome is Outcome.INCONCLUSIVE:
            ET.SubElement(case, "skipped", message=_clean(f"inconclusive: {check.reason}"))
        ET.SubElement(case, "system-out").text = _facts(check)
    if gate.left_out:
        ET.SubElement(suite, "system-out").text = _clean("\n".join(gate.left_out))
    failures, skipped = (sum(1 for _ in suite.iter(tag)) for tag in ("failure", "skipped"))
    counts = {"tests": len(gate.checks), "failures": failures, "errors": 0, "skipped": skipped}
    for element in (suite, suites := ET.Element("testsuites", name="assay")):
        for count, value in counts.items():
            element.set(count, str(value))
    suites.append(suite)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _facts(check: Check) -> str:
    return _clean(f"{check.outcome}: {check.subject}: {check.rule}; {check_facts(check)}")


def _clean(text: str) -> str:
    """Return the text with a replacement for each character that XML does not allow."""
    return _NOT_XML.sub("\ufffd", text)
