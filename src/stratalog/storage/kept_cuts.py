"""What recovery has cut off a log although valid batches followed: kept aside, and told.

``<partition>/.stratalog/cuts``    JSON: when, from which offset on, why, and the names of the files
``<partition>/.stratalog/cut/``    the bytes: the end of the damaged segment from the damage on, and
                                   the segments behind it, whole

Cutting is made of these steps, so that it can be interrupted anywhere and begun again:

1. ``begin``: the cut is noted, with the names that its files will have
2. ``keep_end``: the end of the damaged segment is copied
3. ``keep_segment``: the segments behind it are renamed, the last one first, so that what is left is
   always the log up to some segment
4. whoever cuts does so, durably
5. ``finish``: the cut is noted as made

Until step 4 is durable the damage is there, the next start finds it, and goes on by the note. Kept
are bytes that nobody was promised; they go after ``KEPT_MS``, and before that when a newer cut
would make them more than ``KEPT_BYTES_MAX``.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from stratalog.errors import NotARegularFileError
from stratalog.storage.files import File, FileSystem, read_file, replace_file
from stratalog.storage.layout import CUT_DIRECTORY, LOG_SUFFIX, OWN_DIRECTORY, segment_file

KEPT_MS = 7 * 24 * 3_600_000
KEPT_BYTES_MAX = 1 << 30

_COPY_BYTES = 4 << 20
_NOTE = "cuts"
# Unlike that of a repair's copies: what those hold a person has dropped, and is missed by nobody.
_SUFFIX = ".recovery"


@dataclass(frozen=True, slots=True)
class KeptCut:
    """One cut: the log ended at ``start_offset`` behind it."""

    at_ms: int
    start_offset: int
    base_offset: int
    position: int
    size_bytes: int
    reason: str
    names: tuple[str, ...]
    is_made: bool = False

    @property
    def kept_until_ms(self) -> int:
        return self.at_ms + KEPT_MS

    @property
    def sentence(self) -> str:
        until = datetime.fromtimestamp(self.kept_until_ms / 1000, UTC)
        return (
            f"recovery has cut off {self.size_bytes} bytes from here on, which were not known to "
            f"be flushed: {self.reason}; they are kept in {CUT_DIRECTORY} until "
            f"{until:%Y-%m-%d %H:%M} UTC"
        )


class KeptCuts:
    """The cuts of one partition that are kept aside. Only its owner changes them; anybody may
    ``read``."""

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._partition = directory
        self._own = f"{directory}/{OWN_DIRECTORY}"
        self._cut = f"{directory}/{CUT_DIRECTORY}"
        self._note = f"{self._own}/{_NOTE}"

    def read(self) -> tuple[KeptCut, ...]:
        """Those noted, the oldest first; a note that is garbled tells nothing."""
        try:
            if not self._files.exists(self._note):
                return ()
            rows = json.loads(read_file(self._files, self._note))
            return tuple(KeptCut(**{**row, "names": tuple(row["names"])}) for row in rows)
        except (ValueError, KeyError, TypeError, RecursionError, NotARegularFileError):
            return ()

    def begin(self, wanted: KeptCut, bases: Sequence[int]) -> KeptCut:
        """Note that ``wanted`` is about to be made, which also takes the segments ``bases``; or go
        on with the same one, which an earlier start began."""
        known: Sequence[KeptCut] = self.read()
        stale = [each for each in known if not each.is_made]
        for each in stale:
            is_same = each.start_offset == wanted.start_offset
            if is_same and all(_name_of(each, base_offset) for base_offset in bases):
                return each
        known = [replace(each, is_made=True) for each in known]
        stamp = datetime.fromtimestamp(wanted.at_ms / 1000, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        names = [f"{wanted.base_offset:020d}{LOG_SUFFIX}.{wanted.position}.{stamp}{_SUFFIX}"]
        names += [f"{base_offset:020d}{LOG_SUFFIX}.0.{stamp}{_SUFFIX}" for base_offset in bases]
        cut = replace(wanted, names=tuple(names))
        for path in (self._own, self._cut):
            if not self._files.exists(path):
                self._files.make_directory(path)
            self._files.sync_directory(path.rpartition("/")[0])
        self._write([*self._within_bounds(known, cut.size_bytes), cut])
        return cut

    def keep_end(self, cut: KeptCut, file: File) -> None:
        """Copy the bytes of the damaged segment from the cut on."""
        start, end = cut.position, file.size_bytes()
        path = self._path(cut.names[0])
        self._files.unlink(path, missing_ok=True)
        target = self._files.open(path, create=True)
        try:
            at = 0
            while start + at < end:
                piece = file.read_at(start + at, min(_COPY_BYTES, end - start - at))
                target.write_at(at, [piece])
                at += len(piece)
            target.sync()
        except BaseException:
            self._files.unlink(path, missing_ok=True)
            raise
        finally:
            target.close()
        self._files.sync_directory(self._cut)

    def keep_segment(self, cut: KeptCut, base_offset: int) -> None:
        """Move the ``.log`` of a segment behind the damage out of the log."""
        name = _name_of(cut, base_offset)
        assert name is not None, f"the segment at {base_offset} is none of those cut"
        source = segment_file(self._partition, base_offset, LOG_SUFFIX)
        self._files.rename(source, self._path(name))
        self._files.sync_directory(self._cut)

    def finish(self, cut: KeptCut) -> None:
        made = replace(cut, is_made=True)
        self._write([made if each.names == cut.names else each for each in self.read()])

    def give_up(self, cut: KeptCut) -> None:
        """Nothing was cut after all."""
        self._write([each for each in self.read() if each.names != cut.names])

    def settled(self) -> tuple[KeptCut, ...]:
        """Those noted, after recovery: what a crash kept from being noted as made is made."""
        known = self.read()
        if any(not each.is_made for each in known):
            known = tuple(replace(each, is_made=True) for each in known)
            self._write(known)
        return known

    def remove_due(self, now_ms: int) -> None:
        """Remove what was kept long enough. Any thread, once the log is open."""
        known = self.read()
        due = [each for each in known if each.is_made and each.kept_until_ms <= now_ms]
        self._unlink(due)
        self._write([each for each in known if each not in due])

    def _within_bounds(self, known: Sequence[KeptCut], coming_bytes: int) -> list[KeptCut]:
        """Remove the oldest as far as the newest would be too many with them."""
        room = KEPT_BYTES_MAX - coming_bytes
        kept: list[KeptCut] = []
        for each in reversed(known):
            room -= each.size_bytes
            if room < 0:
                self._unlink([each])
            else:
                kept.insert(0, each)
        return kept

    def _unlink(self, cuts: Sequence[KeptCut]) -> None:
        for name in (name for cut in cuts for name in cut.names):
            self._files.unlink(self._path(name), missing_ok=True)

    def _path(self, name: str) -> str:
        return f"{self._cut}/{name}"

    def _write(self, cuts: Sequence[KeptCut]) -> None:
        if cuts:
            content = json.dumps([asdict(each) for each in cuts], indent=1).encode()
            replace_file(self._files, self._note, content)
        else:
            self._files.unlink(self._note, missing_ok=True)


def _name_of(cut: KeptCut, base_offset: int) -> str | None:
    """The name in ``cut`` of the whole ``.log`` of the segment at ``base_offset``."""
    wanted = f"{base_offset:020d}{LOG_SUFFIX}.0."
    return next((name for name in cut.names[1:] if name.startswith(wanted)), None)
