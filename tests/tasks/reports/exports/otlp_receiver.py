"""An OTLP endpoint on the loopback interface that keeps what it gets."""

from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.loopback_server import LoopbackServer, QuietHandler


class OtlpReceiver(LoopbackServer):
    """An endpoint that serves while its context is entered.

    Args:
        status: Status of its replies.
        accepts: Number of requests that it accepts before it replies with 400.
    """

    def __init__(self, status: int = 200, accepts: int = 1_000_000) -> None:
        self.logs: list[Any] = []
        self.spans: list[Any] = []
        self.services: set[str] = set()
        self.headers: list[dict[str, str]] = []
        receiver = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                content = self.read_body()
                receiver.headers.append(dict(self.headers))
                receiver._keep(self.path, content)
                self.send(status if len(receiver.headers) <= accepts else 400)

        super().__init__(Handler)

    @property
    def url(self) -> str:
        return self.origin

    def _keep(self, path: str, content: bytes) -> None:
        if path == "/v1/logs":
            for logs in ExportLogsServiceRequest.FromString(content).resource_logs:
                self._note_service(logs.resource)
                self.logs += [record for scope in logs.scope_logs for record in scope.log_records]
        elif path == "/v1/traces":
            for spans in ExportTraceServiceRequest.FromString(content).resource_spans:
                self._note_service(spans.resource)
                self.spans += [span for scope in spans.scope_spans for span in scope.spans]

    def _note_service(self, resource: Any) -> None:
        self.services.add(str(attributes_of(resource)["service.name"]))


def attributes_of(message: Any) -> dict[str, Any]:
    """Return the attributes of a resource, span or log record."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in message.attributes}
