"""Snapshots whose files stay, and the leases of batch queries: when they begin, how long they last.

Nothing tells a batch source that its query has ended, or whether there will be one at all. So a
load holds its files for a minute, in which most are planned; a plan for as long as ``leaseSeconds``
says; and every task that reads renews that. What nobody renews ends by itself.

A lease that began after the files were listed would come too late for some of them. So it begins
first, with where the logs start, and covers whatever is listed then.
"""

import logging
import socket

from stratalog.scans.leasing import Holding, hold, hold_ranges, renew
from stratalog.scans.slices import ScanIsolation
from stratalog.scans.snapshot import DirectorySnapshot, take_snapshot
from stratalog.spark.offsets import PartitionRanges
from stratalog.spark.options import SourceOptions

LOAD_SECONDS = 60
_OFFSET_MAX = 2**63 - 1

_log = logging.getLogger(__name__)


def hold_all(
    options: SourceOptions, *, seconds: float, holder: str, only_if_owned: bool = False
) -> Holding:
    """Hold all that the options select, from where its logs start now.

    ``only_if_owned``: nothing, unless an owner of ours is there who might remove it.
    """
    starts = take_snapshot(
        options.path,
        options.selection,
        isolation=ScanIsolation.READ_UNCOMMITTED,
        with_segments=False,
    )
    if only_if_owned and starts.owner.kind != "stratalog":
        return Holding(why_not="nobody is there who would remove anything")
    ranges = {key: (each.start_offset, _OFFSET_MAX) for key, each in starts.partitions.items()}
    return hold_ranges(starts.path, ranges, seconds=seconds, holder=holder)


def hold_load(options: SourceOptions) -> tuple[str, ...]:
    """Hold what is about to be loaded."""
    if not options.lease_seconds or options.lease_ids:
        return ()
    seconds = min(LOAD_SECONDS, options.lease_seconds)
    holder = f"spark load on {_host()}"
    return hold_all(options, seconds=seconds, holder=holder, only_if_owned=True).lease_ids


def hold_plan(
    snapshot: DirectorySnapshot,
    options: SourceOptions,
    ranges: PartitionRanges,
    load_ids: tuple[str, ...],
) -> tuple[str, ...]:
    """Hold what a plan reads: by the load's lease if that still lasts, and else by a new one.

    A new one would be for less. But it would not hold what has been deleted since, as the load's
    does.
    """
    if not options.lease_seconds:
        return ()
    if options.lease_ids:
        # Of a snapshot that is held until its end; the plan only makes that last.
        renew(snapshot.path, options.lease_ids, options.lease_seconds)
        return options.lease_ids
    if load_ids and renew(snapshot.path, load_ids, options.lease_seconds):
        return load_ids
    held = hold(snapshot, ranges, seconds=options.lease_seconds, holder=f"spark batch on {_host()}")
    if not held.is_held:
        _log.info("the files of this scan are not held: %s", held.why_not)
    return held.lease_ids


def _host() -> str:
    return socket.gethostname()
