"""A real Alertmanager, where one is installed: the alerts that it keeps, and those that it notifies people of."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from flows.alerting.alert import Alert, AlertIncident
from flows.alerting.recipients import AlertmanagerRecipient, RecipientError
from flows.config.alert_options import AlertmanagerSettings
from tests.flows.alerting.test_services import incident
from tests.json_endpoint import JsonEndpoint
from tests.tasks.models.judges.openai.fake_server import free_port
from tests.waiting import wait_until

PROGRAM = shutil.which("alertmanager") or shutil.which("prometheus-alertmanager")

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no alertmanager on the PATH")


@pytest.fixture
def chat() -> Iterator[JsonEndpoint]:
    with JsonEndpoint() as running:
        yield running


@pytest.fixture
def alertmanager(tmp_path: Path, chat: JsonEndpoint) -> Iterator[str]:
    """Run Alertmanager, which notifies `chat` at once, and yield its URL."""
    config = (
        "route: {receiver: chat, group_by: [incident], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}\n"
        f"receivers: [{{name: chat, webhook_configs: [{{url: '{chat.url}', send_resolved: true}}]}}]\n"
    )
    tmp_path.joinpath("config.yml").write_text(config, encoding="utf-8")
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        str(PROGRAM),
        f"--config.file={tmp_path / 'config.yml'}",
        f"--storage.path={tmp_path}",
        f"--web.listen-address={url.removeprefix('http://')}",
        "--cluster.listen-address=",
    ]
    with tmp_path.joinpath("log").open("w") as log, subprocess.Popen(command, stderr=log, stdout=log) as process:
        wait_until(lambda: _is_ready(url) or process.poll() is not None, "Alertmanager")
        assert process.poll() is None, tmp_path.joinpath("log").read_text(encoding="utf-8")
        yield url
        process.terminate()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready").is_success
    except httpx.HTTPError:
        return False


def active(url: str) -> set[str]:
    return {each["labels"]["incident"] for each in httpx.get(f"{url}/api/v2/alerts").json()}


def notifications(chat: JsonEndpoint) -> list[tuple[str, str]]:
    return [(each["labels"]["incident"], each["status"]) for sent in chat.received for each in sent["alerts"]]


def test_incidents_are_open_until_a_run_ends_them(alertmanager: str, chat: JsonEndpoint) -> None:
    recipient = AlertmanagerRecipient(AlertmanagerSettings(url=alertmanager))

    def tell(*incidents: AlertIncident) -> None:
        recipient.send(Alert(name="support", outcome="worse", incidents=incidents, flow_run="1"))

    tell(incident("a", "opened"))
    wait_until(lambda: notifications(chat) == [("support/a", "firing")], "the first notification")
    tell(incident("a", "continuing"), incident("b", "opened"))
    wait_until(lambda: ("support/b", "firing") in notifications(chat), "the second notification")
    assert active(alertmanager) == {"support/a", "support/b"}
    tell(incident("b", "continuing"), incident("a", "resolved"))
    wait_until(lambda: ("support/a", "resolved") in notifications(chat), "the end of the first")
    assert active(alertmanager) == {"support/b"}
    tell(incident("b", "resolved"))
    wait_until(lambda: ("support/b", "resolved") in notifications(chat), "the end of the second")
    assert active(alertmanager) == set()
    assert sorted(notifications(chat)) == [
        (f"support/{key}", status) for key in "ab" for status in ("firing", "resolved")
    ]


def test_test_message_is_told(alertmanager: str, chat: JsonEndpoint) -> None:
    recipient = AlertmanagerRecipient(AlertmanagerSettings(url=alertmanager))
    recipient.send(Alert(index="test", version="test", outcome="test", flow_run=""))
    wait_until(lambda: notifications(chat) == [("rag-assay/test", "firing")], "the notification of the test")


def test_address_that_is_no_alertmanager_is_said(alertmanager: str) -> None:
    recipient = AlertmanagerRecipient(AlertmanagerSettings(url=f"{alertmanager}/elsewhere"))
    with pytest.raises(RecipientError, match="status 404"):
        recipient.send(Alert(index="test", version="test", outcome="test", flow_run=""))
