"""Keep messages to people in the history until their recipients have accepted them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from sqlalchemy import ColumnElement, Connection, Executable, Row, delete, func, or_, select, update

from tasks.history.history_database import HistoryDatabase
from tasks.history.history_tables import MESSAGES

State: TypeAlias = Literal["waiting", "silenced", "sent", "dropped", "given up"]

_KEPT = timedelta(days=400)
"""Time for which messages are kept that are not to be sent: the same alert is not sent again in that time."""
_NO_REPLY = "no reply"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertMessage:
    """An alert to one recipient.

    Args:
        number: Number of the message; later ones have greater numbers.
        alert_id: Identity of the alert.
        content: The alert as JSON.
        state: Waiting: it is to be sent. Silenced: it is to be sent after a silence. Dropped: it need not be sent.
        created: Time at which it was written.
        tries: Number of times that it was sent without success.
    """

    number: int
    recipient: str
    alert_id: str
    content: Mapping[str, Any]
    state: State
    created: datetime
    tries: int
    reply: str


@dataclass(frozen=True, slots=True)
class Undelivered:
    """Messages that a recipient has not accepted.

    Args:
        since: Time of the oldest.
        reply: Last reply of the recipient to it.
    """

    recipient: str
    count: int
    since: datetime
    reply: str

    @property
    def sentence(self) -> str:
        """The state of the recipient in words."""
        messages = "a message" if self.count == 1 else f"{self.count} messages"
        return f"the {self.recipient} has not accepted {messages} since {self.since:%Y-%m-%d %H:%M}: {self.reply}"


class MessageLog(HistoryDatabase):
    """The messages in the history. Several threads, processes and machines may use it.

    Args:
        url: Address of the database, as in the option `history`; None means a file in ASSAY_HOME.
    """

    def put(
        self, name: str, alerts: Iterable[tuple[str, str, Mapping[str, object]]], state: State, at: datetime
    ) -> set[tuple[str, str]]:
        """Write messages, all or none, except for those that there are.

        Args:
            alerts: Name of the recipient, identity and content of each alert.
            at: Present time.

        Returns:
            Recipient and identity of the messages that are new.

        Raises:
            ConfigError: The database cannot be used.
        """
        found = list(alerts)
        with self.translate_errors("written"):
            return self.database.write(lambda connection: self.put_messages(connection, name, found, state, at))

    def put_messages(
        self,
        connection: Connection,
        name: str,
        alerts: Iterable[tuple[str, str, Mapping[str, object]]],
        state: State,
        at: datetime,
    ) -> set[tuple[str, str]]:
        """Write messages as `put` does, in a transaction."""
        fixed = {"name": name, "state": state, "created": at.timestamp(), "tries": 0, "reply": ""}
        rows = {
            (recipient, alert_id): {**fixed, "recipient": recipient, "alert_id": alert_id, "content": dict(content)}
            for recipient, alert_id, content in alerts
        }
        old = MESSAGES.c.ended < (at - _KEPT).timestamp()
        connection.execute(delete(MESSAGES).where(MESSAGES.c.name == name, old))
        insertion = self.database.insert(MESSAGES).on_conflict_do_nothing().returning(MESSAGES.c.number)
        return {key for key, row in rows.items() if connection.execute(insertion.values(row)).first() is not None}

    def messages(
        self,
        name: str,
        recipients: Collection[str] | None = None,
        *,
        state: State | None = None,
        alert_id: str | None = None,
    ) -> list[AlertMessage]:
        """Return the messages about an evaluation, oldest first.

        Args:
            recipients: Names of recipients; None for all.
            state: State of the messages; None for any.
            alert_id: Identity of an alert; None for all.

        Raises:
            ConfigError: The database cannot be used.
        """
        query = select(MESSAGES).where(MESSAGES.c.name == name).order_by(MESSAGES.c.number)
        if recipients is not None:
            query = query.where(MESSAGES.c.recipient.in_(recipients))
        if state is not None:
            query = query.where(MESSAGES.c.state == state)
        if alert_id is not None:
            query = query.where(MESSAGES.c.alert_id == alert_id)
        with self.translate_errors("read"):
            return self.database.read(lambda connection: [_message(row) for row in connection.execute(query)])

    def last_recipients(self, name: str, suffix: str) -> set[str]:
        """Return the recipients of the latest alert about an evaluation.

        Args:
            suffix: End of the names of recipients that are not looked at.

        Raises:
            ConfigError: The database cannot be used.
        """
        own = [MESSAGES.c.name == name, MESSAGES.c.recipient.not_like(f"%{suffix}")]
        last = select(MESSAGES.c.alert_id).where(*own).order_by(MESSAGES.c.number.desc()).limit(1)
        query = select(MESSAGES.c.recipient).where(*own, MESSAGES.c.alert_id == last.scalar_subquery())
        with self.translate_errors("read"):
            return set(self.database.read(lambda connection: connection.execute(query).scalars().all()))

    def end_silence(
        self, name: str, settle: Callable[[Sequence[AlertMessage]], Mapping[int, Mapping[str, object]]], at: datetime
    ) -> list[AlertMessage]:
        """Make silenced messages wait, and drop those that need not be sent any more; return the others.

        Args:
            settle: Function of the silenced messages to a recipient that returns the new contents of those to send.
            at: Present time.

        Raises:
            ConfigError: The database cannot be used.
        """
        silenced = update(MESSAGES).where(MESSAGES.c.name == name, MESSAGES.c.state == "silenced")

        def work(connection: Connection) -> list[AlertMessage]:
            # Of several runs that do this at once, one gets the messages.
            found = [_message(row) for row in connection.execute(silenced.values(state="waiting").returning(MESSAGES))]
            settled: dict[int, Mapping[str, Any]] = {}
            for recipient in {each.recipient for each in found}:
                own = sorted((each for each in found if each.recipient == recipient), key=lambda each: each.number)
                settled |= settle(own)
            for each in found:
                content = settled.get(each.number)
                changes = {"state": "dropped", "ended": at.timestamp()} if content is None else {"content": content}
                connection.execute(update(MESSAGES).where(MESSAGES.c.number == each.number).values(changes))
            query = select(MESSAGES).where(MESSAGES.c.number.in_(settled)).order_by(MESSAGES.c.number)
            return [_message(row) for row in connection.execute(query)]

        with self.translate_errors("written"):
            return self.database.write(work)

    def claim(self, name: str, recipient: str, holder: str, seconds: float) -> list[AlertMessage] | None:
        """Reserve all waiting messages to a recipient for one sender, and return them, oldest first.

        Args:
            seconds: Time after which another sender may claim them.

        Returns:
            The messages; None if another sender holds some.

        Raises:
            ConfigError: The database cannot be used.
        """
        waiting = [MESSAGES.c.name == name, MESSAGES.c.recipient == recipient, MESSAGES.c.state == "waiting"]
        others = MESSAGES.alias()
        is_held: ColumnElement[bool] = (
            select(others.c.number)
            .where(others.c.name == name, others.c.recipient == recipient, others.c.state == "waiting")
            .where(others.c.holder != holder, others.c.held_until > self.database.clock)
            .exists()
        )
        claiming = update(MESSAGES).where(*waiting, ~is_held)
        claiming = claiming.values(holder=holder, held_until=self.database.clock + seconds)

        def work(connection: Connection) -> list[AlertMessage] | None:
            # PostgreSQL looks for other holders only after this lock; in SQLite each statement is alone.
            lock = select(MESSAGES.c.number).where(*waiting).order_by(MESSAGES.c.number).with_for_update()
            if not connection.execute(lock).all():
                return []
            claimed = [_message(row) for row in connection.execute(claiming.returning(MESSAGES))]
            return sorted(claimed, key=lambda each: each.number) or None

        with self.translate_errors("written"):
            return self.database.write(work)

    def note_try(self, number: int, seconds: float) -> None:
        """Write down that a message is about to be sent, before it is sent.

        Args:
            seconds: Time after which another sender may claim it.

        Raises:
            ConfigError: The database cannot be used.
        """
        tried = {"tries": MESSAGES.c.tries + 1, "reply": _NO_REPLY, "held_until": self.database.clock + seconds}
        self._change([MESSAGES.c.number == number], tried)

    def note_reply(self, number: int, reply: str, *, at: datetime | None) -> None:
        """Write down what came back.

        Args:
            reply: The reply, or why there is none.
            at: Time at which the recipient accepted the message; None if it did not.

        Raises:
            ConfigError: The database cannot be used.
        """
        accepted = {} if at is None else {"state": "sent", "ended": at.timestamp(), "holder": None}
        self._change([MESSAGES.c.number == number], {"reply": reply, **accepted})

    def let_go(self, holder: str) -> None:
        """Let other senders claim the messages that a sender holds.

        Raises:
            ConfigError: The database cannot be used.
        """
        self._change([MESSAGES.c.holder == holder], {"holder": None, "held_until": None})

    def drop(self, name: str, present: Collection[str]) -> list[AlertMessage]:
        """Delete what waits for recipients that no longer exist, and return it.

        Args:
            present: Names of the recipients.

        Raises:
            ConfigError: The database cannot be used.
        """
        gone = [MESSAGES.c.recipient.not_in(present), MESSAGES.c.state.in_(("waiting", "silenced"))]
        return self._execute(delete(MESSAGES).where(MESSAGES.c.name == name, *gone).returning(MESSAGES))

    def give_up(self, name: str, *, before: datetime, most: int, at: datetime) -> list[AlertMessage]:
        """Give up messages that wait for too long, and return them.

        Args:
            before: Time of the oldest message that may still wait.
            most: Number of messages that may wait for a recipient: the latest ones.
            at: Present time.

        Raises:
            ConfigError: The database cannot be used.
        """
        waiting = [MESSAGES.c.name == name, MESSAGES.c.state == "waiting", MESSAGES.c.tries > 0]
        place = func.row_number().over(partition_by=MESSAGES.c.recipient, order_by=MESSAGES.c.number.desc())
        places = select(MESSAGES.c.number, place.label("place")).where(*waiting).subquery()
        surplus = select(places.c.number).where(places.c.place > most)
        too_many = or_(MESSAGES.c.created < before.timestamp(), MESSAGES.c.number.in_(surplus))
        return self._change([*waiting, too_many], {"state": "given up", "ended": at.timestamp()})

    def find_undelivered(self, name: str) -> tuple[Undelivered, ...]:
        """Return what recipients have not accepted although it was sent to them.

        Raises:
            ConfigError: The database cannot be used.
        """
        query = select(MESSAGES).where(MESSAGES.c.name == name, MESSAGES.c.state == "waiting")
        with self.translate_errors("read"):
            rows = self.database.read(lambda connection: connection.execute(query.order_by(MESSAGES.c.number)).all())
        waiting: dict[str, list[AlertMessage]] = {}
        for each in map(_message, rows):
            waiting.setdefault(each.recipient, []).append(each)
        return tuple(
            Undelivered(recipient, len(found), found[0].created, tried[0].reply)
            for recipient, found in waiting.items()
            if (tried := [each for each in found if each.tries])
        )

    def _change(self, where: Sequence[ColumnElement[bool]], values: Mapping[str, object]) -> list[AlertMessage]:
        return self._execute(update(MESSAGES).where(*where).values(**values).returning(MESSAGES))

    def _execute(self, change: Executable) -> list[AlertMessage]:
        """Change messages, and return them, oldest first."""
        with self.translate_errors("written"):
            rows = self.database.write(lambda connection: connection.execute(change).all())
        return sorted(map(_message, rows), key=lambda each: each.number)


def _message(row: Row[Any]) -> AlertMessage:
    return AlertMessage(
        number=row.number,
        recipient=row.recipient,
        alert_id=row.alert_id,
        content=row.content,
        state=row.state,
        created=datetime.fromtimestamp(row.created, UTC),
        tries=row.tries,
        reply=row.reply,
    )
