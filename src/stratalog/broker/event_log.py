"""The log of a running broker: one line for each event that an operator acts on.

    2026-03-01T09:30:00.125Z WARNING directory_full path=/data/a reason="3 bytes are free, ..."

A line is time, level, event and fields, or with the style ``json`` one object with all of them.
Values come from clients too, so they are quoted and cut: an event never takes two lines, and never
moves a terminal's cursor.

Whatever happens again and again does not fill a disk: of each event ``BURST`` lines are written at
once and then one every ``INTERVAL_MS``; the next line says how many were left out. Nor does whoever
reads the log, or has stopped to, keep the broker waiting: what a pipe has no room for is left out.

It is the standard library's logging below: any thread may call, and a program that runs a broker
inside itself may listen to the logger ``stratalog`` in its own way.
"""

import json
import logging
import select
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TextIO

STYLES: Final = ("text", "json")
BURST: Final = 20
INTERVAL_MS: Final = 10_000
VALUE_CHARACTERS_MAX: Final = 500
# As much as a pipe takes at once, and whole.
LINE_BYTES_MAX: Final = select.PIPE_BUF

# Those that ask for an operator's attention; every other event is for information.
LEVELS: Final[dict[str, int]] = {
    "accept_failed": logging.WARNING,
    "admin_unavailable": logging.ERROR,
    "appends_refused": logging.ERROR,
    "automatic_topics_left_out": logging.WARNING,
    "client_disconnected": logging.WARNING,
    "commit_pending": logging.ERROR,
    "commit_refused": logging.WARNING,
    "connection_refused": logging.WARNING,
    "consumer_refused": logging.WARNING,
    "directory_full": logging.ERROR,
    "directory_offline": logging.ERROR,
    "few_open_files": logging.WARNING,
    "foreign_protocol": logging.WARNING,
    "handler_failed": logging.ERROR,
    "lease_lapsed": logging.WARNING,
    "log_damaged": logging.ERROR,
    "recovery_cut": logging.WARNING,
    "log_offline": logging.ERROR,
    "log_uncleanable": logging.WARNING,
    "loop_stalled": logging.WARNING,
    "offsets_topic_not_created": logging.ERROR,
    "retention_failed": logging.WARNING,
    "settings_unknown": logging.WARNING,
    "stop_cut_short": logging.ERROR,
    "task_failed": logging.ERROR,
    "topic_held": logging.WARNING,
    "transaction_refused": logging.WARNING,
}

_logger = logging.getLogger("stratalog")
# Without a listener nothing is written; the library itself has no business on stderr.
_logger.addHandler(logging.NullHandler())
_SHORT_CHARACTERS = 50
_UNQUOTED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/+@,[]()")


def log_event(event: str, /, **fields: object) -> None:
    """``event`` is one word of a fixed set, never made from what a client sent."""
    level = LEVELS.get(event, logging.INFO)
    if _logger.isEnabledFor(level):
        _logger.log(level, event, extra={"fields": fields})


@dataclass(slots=True)
class _Allowance:
    """How many lines of one event may still be written, as of ``at_ms``."""

    lines: int
    at_ms: int
    suppressed: int = 0


class EventHandler(logging.Handler):
    """Writes events to ``stream``. ``now_ms`` is the time that counts for what is left out."""

    def __init__(
        self,
        stream: TextIO,
        *,
        style: str = "text",
        now_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000,
    ) -> None:
        super().__init__()
        assert style in STYLES, style
        self._stream = stream
        self._format = _as_json if style == "json" else _as_text
        self._now_ms = now_ms
        self._allowances: dict[str, _Allowance] = {}
        self._room = _room_in(stream)

    def emit(self, record: logging.LogRecord) -> None:
        event, fields = _event_of(record)
        allowance = self._allow(event)
        if allowance is None:
            return
        if allowance.suppressed:
            fields = {**fields, "suppressed": allowance.suppressed}
        try:
            if not self._has_room():
                allowance.suppressed += 1
                return
            line = self._format(record, event, fields)
            if len(line) >= LINE_BYTES_MAX:
                short = {name: _cut(value, _SHORT_CHARACTERS) for name, value in fields.items()}
                line = self._format(record, event, short)
            self._stream.write(line + "\n")
            self._stream.flush()
            allowance.suppressed = 0
        except (OSError, ValueError):
            pass  # nobody listens any more; a broker goes on without a log

    def _has_room(self) -> bool:
        return self._room is None or bool(self._room.poll(0))

    def _allow(self, event: str) -> _Allowance | None:
        now_ms = self._now_ms()
        allowance = self._allowances.get(event)
        if allowance is None:
            allowance = self._allowances[event] = _Allowance(BURST, now_ms)
        earned = (now_ms - allowance.at_ms) // INTERVAL_MS
        if earned > 0:
            allowance.lines = min(allowance.lines + earned, BURST)
            allowance.at_ms += earned * INTERVAL_MS
        if allowance.lines == 0:
            allowance.suppressed += 1
            return None
        allowance.lines -= 1
        return allowance

    def write_suppressed(self) -> None:
        """At the end: a line for each event of which some were left out since its last."""
        self.acquire()
        try:
            for event, allowance in self._allowances.items():
                if allowance.suppressed:
                    allowance.lines = max(allowance.lines, 1)
                    self.emit(
                        _logger.makeRecord(_logger.name, logging.INFO, "", 0, event, (), None)
                    )
        finally:
            self.release()


def _room_in(stream: TextIO) -> "select.poll | None":
    """Tells whether ``stream`` takes a line without waiting; None if it always does. A pipe that
    can be written to has room for PIPE_BUF bytes."""
    try:
        room = select.poll()
        room.register(stream.fileno(), select.POLLOUT)
    except (OSError, ValueError):
        return None
    return room


def start_event_log(
    stream: TextIO | None = None, *, style: str = "text", level: int = logging.INFO
) -> EventHandler:
    """Write events to ``stream``, or stderr; also what asyncio has to complain about."""
    handler = EventHandler(stream or sys.stderr, style=style)
    _logger.setLevel(level)
    _logger.addHandler(handler)
    logging.getLogger("asyncio").addHandler(handler)
    return handler


def stop_event_log(handler: EventHandler) -> None:
    handler.write_suppressed()
    _logger.removeHandler(handler)
    logging.getLogger("asyncio").removeHandler(handler)
    handler.close()


# --- lines ------------------------------------------------------------------------------------


def _event_of(record: logging.LogRecord) -> tuple[str, dict[str, object]]:
    fields: dict[str, object] | None = getattr(record, "fields", None)
    if fields is not None or record.name == _logger.name:
        return record.msg, fields or {}
    # Somebody else's words: all of one source count as one event.
    fields = {"message": record.getMessage()}
    if record.exc_info is not None and record.exc_info[1] is not None:
        error = record.exc_info[1]
        fields["error"] = f"{type(error).__name__}: {error}"
        fields["at"] = _place_of(error)
    return record.name, fields


def _place_of(error: BaseException) -> str:
    """Where an error was raised: for a line, what a traceback is for a page."""
    at = error.__traceback__
    if at is None:
        return ""
    while at.tb_next is not None:
        at = at.tb_next
    return f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}"


def _as_text(record: logging.LogRecord, event: str, fields: Mapping[str, object]) -> str:
    shown = [_moment(record), record.levelname, event]
    shown.extend(f"{name}={_quoted(value)}" for name, value in fields.items())
    return " ".join(shown)


def _as_json(record: logging.LogRecord, event: str, fields: Mapping[str, object]) -> str:
    line: dict[str, Any] = {"time": _moment(record), "level": record.levelname, "event": event}
    for name, value in fields.items():
        is_plain = value is None or isinstance(value, bool | int | float)
        line.setdefault(name, value if is_plain else _cut(value))
    return json.dumps(line, separators=(",", ":"))


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _quoted(value: object) -> str:
    text = _cut(value)
    return text if text and _UNQUOTED.issuperset(text) else json.dumps(text)


def _cut(value: object, characters_max: int = VALUE_CHARACTERS_MAX) -> str:
    text = str(value)
    if len(text) <= characters_max:
        return text
    return f"{text[:characters_max]}... ({len(text)} characters)"
