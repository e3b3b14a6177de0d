"""Small files of our own, in ``<partition>/.stratalog/``, which Apache Kafka ignores.

rolls      a line of JSON per roll: which segment it began, and why
aborts     a line per segment that has a .txnindex: its base offset
cleaner    JSON: the last cleaning's statistics, and why the log cannot be cleaned if so
damage     JSON: what recovery found and may not cut away; until a person has decided
cuts       JSON: what recovery has cut off and keeps in ``cut``, see ``kept_cuts``
log-start  the offset this log starts at, where it is not its first segment's
"""

import json
import os
from collections.abc import Container
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from stratalog.errors import DiskError
from stratalog.records._kernels import crc32c
from stratalog.storage.damage import Damage
from stratalog.storage.files import FileSystem, read_file, replace_file
from stratalog.storage.layout import OWN_DIRECTORY
from stratalog.storage.rolling import RollCause, RollReason
from stratalog.storage.segments import Segments


@dataclass(frozen=True, slots=True)
class KnownDamage:
    """The recovery point that counted when damage was found, and the segments it was found in."""

    recovery_point: int
    base_offsets: frozenset[int]


class OwnFiles:
    def __init__(self, files: FileSystem, directory: str, *, exists: bool | None = None) -> None:
        self._files = files
        self._directory = f"{directory}/{OWN_DIRECTORY}"
        self._exists = files.exists(self._directory) if exists is None else exists

    @property
    def exists(self) -> bool:
        return self._exists

    def _make_directory(self) -> None:
        if not self._exists:
            if not self._files.exists(self._directory):
                self._files.make_directory(self._directory)
            self._exists = True

    def _read(self, name: str) -> str:
        if not self._exists:
            return ""
        path = f"{self._directory}/{name}"
        if not self._files.exists(path):
            return ""
        return read_file(self._files, path).decode(errors="replace")

    # --- why segments were rolled -------------------------------------------------------------

    def note_roll(self, base_offset: int, reason: RollReason, now_ms: int) -> None:
        line = {
            "base_offset": base_offset,
            "cause": reason.cause.value,
            "explanation": reason.explanation,
            "at_ms": now_ms,
        }
        with suppress(DiskError):
            self._make_directory()
            self._append("rolls", json.dumps(line) + "\n")

    def _append(self, name: str, line: str) -> None:
        file = self._files.open(f"{self._directory}/{name}", create=True)
        try:
            file.write_at(file.size_bytes(), [line.encode()])
        finally:
            file.close()

    def keep_rolls(self, base_offsets: Container[int]) -> None:
        """Forget the reasons of segments that are gone."""
        known = self._read("rolls").splitlines()
        kept = [line for line in known if _base_offset_in(line) in base_offsets]
        if len(kept) < len(known):
            with suppress(DiskError):
                content = "".join(f"{line}\n" for line in kept)
                self._replace_hint("rolls", content)

    def rolls(self) -> dict[int, RollReason]:
        """The reasons known, by the base offset of the segment that each began."""
        found = {}
        for line in self._read("rolls").splitlines():
            with suppress(ValueError, KeyError, TypeError):
                roll = json.loads(line)
                found[int(roll["base_offset"])] = RollReason(
                    RollCause(roll["cause"]), str(roll["explanation"])
                )
        return found

    # --- which segments hold aborted transactions ---------------------------------------------

    def note_aborts(self, base_offset: int) -> None:
        """A segment without a ``.txnindex`` has no aborts, unless the file was lost: this tells."""
        with suppress(DiskError):
            self._make_directory()
            self._append("aborts", f"{base_offset}\n")

    def aborts(self) -> frozenset[int]:
        """The segments that are known to have had a ``.txnindex``."""
        lines = self._read("aborts").splitlines()
        return frozenset(int(line) for line in lines if line.isascii() and line.isdigit())

    def keep_aborts(self, segments: Segments) -> None:
        """Forget those of segments that are gone, or have no aborts any more."""
        known = self.aborts()
        if not known:
            return
        kept = {segment.base_offset for segment in segments if segment.has_aborts()} & known
        if kept != known:
            with suppress(DiskError):
                content = "".join(f"{base_offset}\n" for base_offset in sorted(kept))
                self._replace_hint("aborts", content)

    # --- the log start, once more -------------------------------------------------------------

    def note_log_start(self, offset: int) -> None:
        """``log-start-offset-checkpoint`` is no hint: losing it would bring deleted records back.
        So each partition keeps a copy."""
        self._make_directory()
        number = b"%d" % offset
        content = b"%s %08x\n" % (number, crc32c(number))
        replace_file(self._files, f"{self._directory}/log-start", content)

    def forget_log_start(self) -> None:
        """The log is about to start lower: the copy must not come back either."""
        self._files.unlink(f"{self._directory}/log-start", missing_ok=True)
        self._files.sync_directory(self._directory)

    def log_start(self) -> int:
        """The copy; 0 where there is none."""
        number, _, crc = self._read("log-start").strip().partition(" ")
        intact = number.isascii() and number.isdigit() and crc == f"{crc32c(number.encode()):08x}"
        return int(number) if intact else 0

    # --- cleaning -------------------------------------------------------------------------------

    def cleaner_notes(self) -> dict[str, Any]:
        """``last_run`` and ``uncleanable``, as far as they are known."""
        with suppress(ValueError, RecursionError, DiskError):
            notes = json.loads(self._read("cleaner") or "{}")
            if isinstance(notes, dict):
                return notes
        return {}

    def note_cleaning(self, statistics: dict[str, Any]) -> None:
        """A cleaning went well; if earlier ones did not, that is over."""
        self._write_hint("cleaner", json.dumps({"last_run": statistics}))

    def note_uncleanable(self, trouble: dict[str, Any]) -> None:
        notes = self.cleaner_notes() | {"uncleanable": trouble}
        self._write_hint("cleaner", json.dumps(notes))

    def forget_uncleanable(self) -> None:
        """There is nothing to clean any more, so nothing that cannot be."""
        notes = self.cleaner_notes()
        if notes.pop("uncleanable", None) is not None:
            self._write_hint("cleaner", json.dumps(notes))

    def _replace_hint(self, name: str, content: str) -> None:
        """The old content or the new after a crash of this process; not synced, since these are
        hints, and whoever changes a log should not have to wait for them."""
        self._write_hint(f"{name}.tmp", content)
        path = f"{self._directory}/{name}"
        if self._files.exists(f"{path}.tmp"):
            self._files.rename(f"{path}.tmp", path)

    def _write_hint(self, name: str, content: str) -> None:
        """Not durable, and best effort: nothing but what people are shown depends on it."""
        with suppress(DiskError):
            self._make_directory()
            file = self._files.open(f"{self._directory}/{name}", create=True)
            try:
                file.truncate(0)
                file.write_at(0, [content.encode()])
            finally:
                file.close()

    # --- damage -------------------------------------------------------------------------------

    def note_damage(self, recovery_point: int, damage: dict[int, list[Damage]]) -> None:
        content: dict[str, Any] = {
            "recovery_point": recovery_point,
            "damage": {
                str(base): [asdict(each) for each in found] for base, found in damage.items()
            },
        }
        self._make_directory()
        # Not best effort, unlike the rest: a sync of the partition's names that failed unnoticed
        # could lose more than this.
        self._files.sync_directory(os.path.dirname(self._directory))
        replace_file(
            self._files, f"{self._directory}/damage", json.dumps(content, indent=1).encode()
        )

    def known_damage(self) -> KnownDamage | None:
        """What an earlier start found, if this log was left damaged."""
        text = self._read("damage")
        if not text:
            return None
        try:
            content = json.loads(text)
            bases = frozenset(int(base_offset) for base_offset in content["damage"])
            return KnownDamage(int(content["recovery_point"]), bases)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return KnownDamage(0, frozenset([0]))  # garbled: everything is read again

    def forget_damage(self) -> None:
        if self._exists:
            self._files.unlink(f"{self._directory}/damage", missing_ok=True)


def _base_offset_in(line: str) -> int:
    try:
        return int(json.loads(line)["base_offset"])
    except (ValueError, KeyError, TypeError):
        return -1
