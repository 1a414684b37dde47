"""Send e-mail through an SMTP server that a URL names."""

import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate
from ipaddress import ip_address
from typing import Literal, Self, TypeAlias
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from metric_core.errors import ConfigError

Security: TypeAlias = Literal["ssl", "starttls", "insecure"]

WANTED = "smtp://USER:PASSWORD@HOST:587, smtps://USER:PASSWORD@HOST:465, or either without USER:PASSWORD"
SECONDS = 30.0
"""Time limit, in seconds, for connecting, encrypting and logging in."""
CONFIRMATION_SECONDS = 120.0
"""Time limit, in seconds, for the server's confirmation of a message: one that is not waited for may arrive twice."""

_PORTS: dict[Security, int] = {"ssl": 465, "starttls": 587, "insecure": 25}


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """An SMTP server, and how to log in there.

    Args:
        host: Name or address of the server.
        security: "ssl" encrypts from the first byte, "starttls" before anything else is sent; "insecure" never.
        user: Name to log in with; None sends without a login.
    """

    host: str
    port: int
    security: Security
    user: str | None = None
    password: str = field(default="", repr=False)

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Return the server that a URL names.

        `smtps://` encrypts from the start, `smtp://` with STARTTLS, which the server must then offer. Servers on this
        machine, and URLs that end in `?tls=none`, are spoken to without encryption.

        Args:
            url: URL of the server. Special characters of the password are percent-encoded.

        Raises:
            ConfigError: The text is not such a URL; the message does not repeat it, because it may hold a password.

        >>> SmtpServer.from_url("smtp://me%40example.com:secret@mail.example.com")
        SmtpServer(host='mail.example.com', port=587, security='starttls', user='me@example.com')
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"the URL of the SMTP server is not valid; it must be {WANTED}") from error
        options = parse_qs(parts.query, keep_blank_values=True)
        if parts.scheme not in ("smtp", "smtps") or not parts.hostname or parts.path not in ("", "/"):
            raise ConfigError(f"the URL of the SMTP server must be {WANTED}; got something else, not repeated here")
        if options not in ({}, {"tls": ["none"]}) or (options and parts.scheme == "smtps"):
            raise ConfigError(
                "the URL of the SMTP server has options after ?; smtp:// knows only ?tls=none, and smtps:// has none"
            )
        security: Security = "starttls"
        if parts.scheme == "smtps":
            security = "ssl"
        elif options or _is_loopback(parts.hostname):
            security = "insecure"
        user = None if parts.username is None else unquote(parts.username)
        return cls(parts.hostname, port or _PORTS[security], security, user, unquote(parts.password or ""))

    def apprise_url(self, sender: str, recipients: Sequence[str]) -> str:
        """Return the URL under which Apprise, the library of Prefect's notification blocks, sends by this server.

        >>> SmtpServer.from_url("smtps://me:s%2Fe@mail.example").apprise_url("a@b.example", ["c@d.example"])
        'mailtos://me:s%2Fe@mail.example:465?from=a%40b.example&to=c%40d.example&mode=ssl&format=text&smtp=mail.example'
        """
        scheme = "mailto" if self.security == "insecure" else "mailtos"
        login = "" if self.user is None else f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@"
        options = {
            "from": sender,
            "to": ",".join(recipients),
            "mode": self.security,
            "format": "text",
            "smtp": self.host,
        }
        return f"{scheme}://{login}{_bracketed(self.host)}:{self.port}?{urlencode(options)}"


def send_mail(  # noqa: PLR0913 the parts of a message
    server: SmtpServer, sender: str, recipients: Sequence[str], subject: str, text: str, *, identity: str
) -> str:
    """Send a message as plain text, and return what became of it.

    Args:
        subject: Subject of the message; line breaks become spaces.
        identity: Identity of the message, the same whenever it is sent again: mailboxes recognize a copy by it.

    Raises:
        OSError: The server cannot be reached, or its certificate is not trusted.
        SMTPException: The server offers no encryption, or refuses the login, the sender or every recipient.
        RuntimeError: The server refused some of the recipients; the others have the message.
    """
    message = EmailMessage()
    message["Subject"] = " ".join(subject.split())
    message["From"] = sender
    message["To"] = ", ".join(recipients)
    message["Date"] = formatdate()
    message["Message-ID"] = f"<{identity}@{sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"  # so that answering machines stay silent
    message.set_content(text)
    context = ssl.create_default_context()
    if server.security == "ssl":
        connection: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=SECONDS, context=context)
    else:
        connection = smtplib.SMTP(server.host, server.port, timeout=SECONDS)
    with connection:
        if server.security == "starttls":
            connection.starttls(context=context)
        if server.user is not None:
            connection.login(server.user, server.password)
        if connection.sock is not None:
            connection.sock.settimeout(CONFIRMATION_SECONDS)
        refused = connection.send_message(message)
    if refused:
        raise RuntimeError(f"the server refused the recipients {', '.join(sorted(refused))}; the others have it")
    return f"{server.host} accepted the message for {', '.join(recipients)}"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
