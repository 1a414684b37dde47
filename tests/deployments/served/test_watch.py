"""Runs that cannot report themselves, on a pool without a worker: the server sends messages by HTTP and by SMTP.

The runs are due when the server and the worker of the other tests start, so that nothing is waited for here.
"""

import pytest
from prefect.client.orchestration import get_client
from prefect.states import Completed, Running

from deployments.cli._support.doctor_checks import _check_automations
from deployments.local_server import ServerAddress
from deployments.registry.apply import remove
from deployments.registry.automations import automations_of, pause_reports, stale_automations
from deployments.registry.changes import Change
from tests.deployments.served.conftest import Ground, Unattended
from tests.service_receivers import keys_at_services
from tests.waiting import wait_until

pytestmark = [pytest.mark.prefect, pytest.mark.served]

KINDS = [f"{kind}{over}" for kind in ("late", "missing", "stuck", "failed") for over in ("", " over")]
BLOCKS = ["webhook", "email", "pagerduty", "pagerduty-end", "alertmanager"]


def test_run_without_a_worker_is_reported_once_by_http_and_mail(ground: Ground, workerless: Unattended) -> None:
    del ground
    wait_until(lambda: workerless.alerts_about("asleep"), "the report about a run that no worker has started")
    (alert,) = workerless.alerts_about("asleep")
    assert alert["title"].startswith("evaluation asleep has not run: the run of 20")
    assert alert["title"].endswith(" UTC has not started")
    assert "prefect worker start --pool nobody" in alert["text"]
    mails = wait_until(lambda: [each for each in workerless.mailbox.received if "asleep" in each.subject], "the mail")
    assert {tuple(each.recipients) for each in mails} == {("team@example.com",)}
    assert {each.subject for each in mails} == {alert["title"]}
    assert mails[0].text.splitlines() == alert["text"].splitlines()


def test_services_have_an_incident_until_a_run_starts(ground: Ground, workerless: Unattended) -> None:
    del ground
    keys = keys_at_services("asleep/missed runs")

    wait_until(lambda: workerless.incidents_of("asleep") == keys, "the incident at each service")
    for name, receiver in workerless.services.receivers.items():
        (told,) = (str(receiver.open[each]) for each in keys[name])
        assert "has not started" in told
        assert "prefect worker start --pool nobody" in told
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name("monitor/monitor-asleep")
        automations = str([each.model_dump(mode="json") for each in automations_of(client, ["monitor-asleep"])])
        assert [each for each in workerless.services.secrets.values() if each in automations] == []
        run = client.create_flow_run_from_deployment(deployment.id)
        client.set_flow_run_state(run.id, Running(), force=True)
    wait_until(lambda: not any(workerless.incidents_of("asleep").values()), "its end")


def test_crash_that_nothing_resumes_and_failure_before_the_flow_are_reported(
    ground: Ground, workerless: Unattended
) -> None:
    del ground
    wait_until(lambda: len(workerless.alerts_about("broken")) == 2, "the reports about a crash and a failure")
    failed, crashed = sorted((each["title"] for each in workerless.alerts_about("broken")), key=len, reverse=True)
    assert crashed.endswith(" UTC crashed and was not resumed")
    assert failed.endswith(" UTC failed before it could report")
    both = keys_at_services("broken/missed runs", "broken/error: not reported")
    wait_until(lambda: workerless.incidents_of("broken") == both, "the incidents at each service")
    with get_client(sync_client=True) as client:
        run = client.create_flow_run_from_deployment(client.read_deployment_by_name("monitor/monitor-broken").id)
        client.set_flow_run_state(run.id, Running(), force=True)
        keys = keys_at_services("broken/error: not reported")
        wait_until(lambda: workerless.incidents_of("broken") == keys, "the end of the first")
        client.set_flow_run_state(run.id, Completed(), force=True)
        wait_until(lambda: not any(workerless.incidents_of("broken").values()), "the end of the second")


def test_deploying_again_resumes_paused_reports_and_changes_nothing_else(
    ground: Ground, workerless: Unattended
) -> None:
    del ground
    assert {each.change for each in workerless.first if each.kind == "block"} == {Change.CREATED}
    with get_client(sync_client=True) as client:
        names = {each.name: each.enabled for each in automations_of(client, ["monitor-asleep"])}
        assert names == {f"rag-assay: monitor-asleep: {kind}": True for kind in KINDS}
        pause_reports(client, "monitor-asleep")
    again = workerless.deploy("asleep")
    assert {each.name: each.change for each in again if each.change is not Change.UNCHANGED} == dict.fromkeys(
        names, Change.UPDATED
    )


def test_recipients_whose_variables_are_not_set_are_named(ground: Ground, workerless: Unattended) -> None:
    lacking = workerless.deploy("broken", env={})
    (hook, mail, *services) = (each.detail for each in lacking if each.kind == "unreported")
    assert "the webhook gets no message about runs that are missing: env:WATCH_HOOK names an env" in hook
    assert "the email gets no message about runs that are missing: env:WATCH_MAIL names an env" in mail
    assert [each.partition(" gets")[0] for each in services] == ["the pagerduty", "the alertmanager"]
    removed = {each.name for each in lacking if each.change is Change.REMOVED}
    blocks = {each.rpartition("/")[2] for each in removed if "/" in each}
    assert blocks == {f"rag-assay-monitor-broken-{each}" for each in BLOCKS}
    assert {each for each in removed if "/" not in each} == {f"rag-assay: monitor-broken: {kind}" for kind in KINDS}
    (found,) = (each.found for each in _check_automations(ServerAddress(ground.url)) if each.name == "missing runs")
    assert "monitor-broken" in found.rpartition(": ")[2].split(", ")
    assert "monitor-asleep" not in found


def test_undeploying_removes_blocks_and_automations(ground: Ground, workerless: Unattended) -> None:
    del ground, workerless
    shown = remove("-asleep", dry_run=True)
    done = remove("-asleep", dry_run=False)
    told = [[(each.kind, each.name) for each in changes if "monitor-asleep" in each.name] for changes in (shown, done)]
    assert told[0] == told[1]
    assert [kind for kind, _ in told[1]] == ["automation"] * 8 + ["block"] * 5 + ["deployment"]
    with get_client(sync_client=True) as client:
        assert [each.name for each in stale_automations(client) if "asleep" in each.name] == []
        assert [each.name for each in client.read_block_documents() if "asleep" in (each.name or "")] == []
