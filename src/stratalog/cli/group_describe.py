"""What ``group describe`` tells, with the columns of kafka-consumer-groups."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from stratalog.cli.group_facts import Committed, Group, Groups, Member
from stratalog.cli.group_reset import Place
from stratalog.cli.output import (
    OutputFormat,
    write_error,
    write_json,
    write_line,
    write_table,
)
from stratalog.cli.table import Column

_MISSING = "-"


def write_offsets(
    asking: Groups,
    groups: Sequence[Group],
    output: OutputFormat,
    *,
    is_verbose: bool,
    is_wide: bool = False,
) -> None:
    """Committed offsets and lag of each partition that is read or has an offset."""
    told = [(group, _rows(asking, group)) for group in groups]
    if output is OutputFormat.JSON:
        write_json([{"group": g.group, "state": g.state, "offsets": rows} for g, rows in told])
        return
    names = ["group", "topic", "partition", "leader_epoch", "current_offset", "log_end_offset"]
    names += ["lag", "consumer_id", "host", "client_id"]
    if not is_verbose:
        names.remove("leader_epoch")
    for slot, (group, rows) in enumerate(told):
        _tell_state(group, is_first=slot == 0)
        if rows:
            write_table(
                [
                    Column(name.upper().replace("_", "-"), rank=_RANKS.get(name, 0))
                    for name in names
                ],
                [[_cell(row[name]) for name in names] for row in rows],
                is_wide=is_wide,
            )


# What is left out first where the terminal is narrow.
_RANKS = {"group": 2, "leader_epoch": 5, "client_id": 4, "host": 3, "consumer_id": 1}


def _rows(asking: Groups, group: Group) -> list[dict[str, Any]]:
    committed = asking.committed(group.group)
    assigned: dict[Place, Member] = {
        place: member for member in group.members for place in member.assignment
    }
    existing = asking.partitions()
    places = sorted({*committed, *assigned})
    ends = asking.ends(place for place in places if place[1] in existing.get(place[0], ()))
    rows = [
        _row(group, place, committed.get(place), ends.get(place), assigned.get(place))
        for place in places
    ]
    # Who reads nothing is still a member.
    idle = [member for member in group.members if not member.assignment]
    return rows + [_row(group, None, None, None, member) for member in idle]


def _row(
    group: Group,
    place: Place | None,
    committed: Committed | None,
    end: int | None,
    member: Member | None,
) -> dict[str, Any]:
    offset = None if committed is None else committed.offset
    return {
        "group": group.group,
        "topic": None if place is None else place[0],
        "partition": None if place is None else place[1],
        "leader_epoch": None if committed is None else committed.leader_epoch,
        "current_offset": offset,
        "log_end_offset": end,
        "lag": None if offset is None or end is None else end - offset,
        "consumer_id": None if member is None else member.consumer_id,
        "host": None if member is None else member.host,
        "client_id": None if member is None else member.client_id,
    }


def write_members(groups: Sequence[Group], output: OutputFormat, *, is_verbose: bool) -> None:
    if output is OutputFormat.JSON:
        write_json(
            [
                {
                    "group": group.group,
                    "state": group.state,
                    "members": [_member_as_json(each) for each in group.members],
                }
                for group in groups
            ]
        )
        return
    for slot, group in enumerate(groups):
        _tell_state(group, is_first=slot == 0)
        if not group.members:
            continue
        is_static = any(each.group_instance_id for each in group.members)
        columns = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
        if is_static:
            columns.insert(2, "GROUP-INSTANCE-ID")
        if is_verbose:
            columns.append("CURRENT-ASSIGNMENT")
        rows = []
        for each in group.members:
            row: list[object] = [group.group, each.consumer_id, each.host, each.client_id]
            if is_static:
                row.insert(2, each.group_instance_id or _MISSING)
            row.append(len(each.assignment))
            if is_verbose:
                row.append(assignment_text(each.assignment) or _MISSING)
            rows.append(row)
        write_table(columns, rows)


def write_states(groups: Sequence[Group], output: OutputFormat) -> None:
    if output is OutputFormat.JSON:
        write_json([_group_as_json(group) for group in groups])
        return
    columns = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
    rows = [
        (
            group.group,
            f"{group.coordinator} ({group.coordinator_id})",
            group.assignment_strategy or _MISSING,
            group.state,
            len(group.members),
        )
        for group in groups
    ]
    if rows:
        write_table(columns, rows)


def assignment_text(places: Iterable[Place]) -> str:
    """``orders:0,1;payments:2``."""
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(places):
        by_topic[topic].append(partition)
    return ";".join(
        f"{topic}:{','.join(map(str, partitions))}" for topic, partitions in by_topic.items()
    )


def _member_as_json(member: Member) -> dict[str, Any]:
    row = asdict(member)
    row["assignment"] = [{"topic": topic, "partition": n} for topic, n in member.assignment]
    return row


def _group_as_json(group: Group) -> dict[str, Any]:
    row = asdict(group)
    row["members"] = len(group.members)
    return row


def _tell_state(group: Group, *, is_first: bool) -> None:
    if not is_first:
        write_line()
    if group.state == "Empty":
        write_error(f"Consumer group '{group.group}' has no active members.")
    elif group.state not in ("Stable", "Dead"):
        write_error(f"warning: consumer group '{group.group}' is rebalancing.")


def _cell(value: object) -> object:
    return _MISSING if value is None else value
