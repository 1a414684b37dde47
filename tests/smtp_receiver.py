"""An SMTP server on the loopback interface that accepts mail and keeps it for tests."""

import asyncio
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.tasks.models.judges.openai.fake_server import free_port


@dataclass
class Received:
    """A message as it arrived.

    Args:
        sender: Sender of the envelope.
        recipients: Recipients of the envelope.
        message: The message itself.
    """

    sender: str
    recipients: list[str]
    message: EmailMessage

    @property
    def subject(self) -> str:
        return str(self.message["Subject"])

    @property
    def text(self) -> str:
        """The plain text of the message."""
        part = self.message.get_body(("plain",))
        assert part is not None
        return str(part.get_content())


@dataclass
class SmtpReceiver:
    """A server that accepts mail while its context is entered.

    Args:
        certificate: File with the key and the certificate of the server, which then demands STARTTLS and a login.
        refused: Recipient that the server refuses.
        confirms_after: Seconds after which the server confirms a message that it has.
    """

    certificate: Path | None = None
    refused: str = ""
    confirms_after: float = 0.0
    received: list[Received] = field(default_factory=list)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    async def handle_RCPT(self, server: Any, session: Any, envelope: Envelope, address: str, options: Any) -> str:  # noqa: N802 a name that aiosmtpd looks for
        del server, session, options
        if address == self.refused:
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802
        del server, session
        message = message_from_bytes(cast("bytes", envelope.content), policy=policy.default)
        self.received.append(Received(envelope.mail_from or "", list(envelope.rcpt_tos), message))
        await asyncio.sleep(self.confirms_after)
        return "250 OK"

    def _log_in(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login, data.password))
        return AuthResult(success=True)

    def __enter__(self) -> Self:
        options: dict[str, Any] = {}
        if self.certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(self.certificate)
            options = {
                "tls_context": context,
                "require_starttls": True,
                "auth_required": True,
                "authenticator": self._log_in,
            }
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port, **options)
        self._controller.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._controller.stop()


def write_certificate(path: Path) -> Path:
    """Write a key and a certificate for localhost, signed by itself, and return the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    encryption = serialization.NoEncryption()
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
