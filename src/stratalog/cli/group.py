"""``stratalog group``: list and describe consumer groups, reset their offsets, delete them.

The verbs of kafka-consumer-groups with its flags. What ``reset-offsets`` would do is shown by
default; only ``--execute`` does it, and only to a group without members.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from stratalog.cli import group_reset
from stratalog.cli.client import (
    DEFAULT_BOOTSTRAP_SERVER,
    BootstrapOption,
    ClientError,
    CommandConfigOption,
    answer_of,
    connection,
    told,
)
from stratalog.cli.completion import complete_group, complete_topic
from stratalog.cli.failures import CommandError, UsageError
from stratalog.cli.group_describe import write_members, write_offsets, write_states
from stratalog.cli.group_facts import Group, Groups, ensure_partitions
from stratalog.cli.group_reset import Place, Plan
from stratalog.cli.optional_values import OptionalValues
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    WideOption,
    write_error,
    write_json,
    write_line,
    write_table,
)

_STATES = (
    "Empty",
    "Stable",
    "PreparingRebalance",
    "CompletingRebalance",
    "Dead",
    "Assigning",
    "Reconciling",
)
_TYPES = ("Classic", "Consumer")

GroupOption = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="GROUP",
        help="A consumer group; may be repeated.",
        autocompletion=complete_group,
    ),
]
AllGroupsOption = Annotated[bool, typer.Option("--all-groups", help="All consumer groups.")]
TimeoutOption = Annotated[
    int, typer.Option("--timeout", min=1, help="How long the broker may take, in ms.")
]


class ListCommand(OptionalValues):
    defaults: ClassVar[Mapping[str, str]] = {"--state": "", "--type": ""}


def list_groups(
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="[STATES]", help="Show states, or only groups in these."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--type", metavar="[TYPES]", help="Show types, or only groups of these."),
    ] = None,
    timeout_ms: TimeoutOption = 30_000,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfigOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List consumer groups.

    \b
    Examples:
      stratalog group list
      stratalog group list --state stable,empty
    """
    states = _words(state, _STATES, "--state")
    types = _words(kind, _TYPES, "--type")
    admin = connection(bootstrap_server, command_config).admin()
    found = Groups(admin, timeout_ms).listed(states, types)
    if output is OutputFormat.JSON:
        write_json([{"group": name, "type": a, "state": b} for name, a, b in found])
    elif state is None and kind is None:
        for name, _, _ in found:
            write_line(name)
    else:
        slots = [0, *([1] if kind is not None else []), *([2] if state is not None else [])]
        columns = ("GROUP", "TYPE", "STATE")
        write_table(
            [columns[slot] for slot in slots], [[row[slot] for slot in slots] for row in found]
        )


def describe(
    groups: GroupOption = None,
    all_groups: AllGroupsOption = False,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Committed offsets and lag: what is shown anyway.")
    ] = False,
    members: Annotated[bool, typer.Option("--members", help="Members and what they read.")] = False,
    state: Annotated[bool, typer.Option("--state", help="State and coordinator.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="More columns.")] = False,
    timeout_ms: TimeoutOption = 30_000,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfigOption = None,
    wide: WideOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show what groups have read, and who their members are.

    \b
    Examples:
      stratalog group describe --group billing
      stratalog group describe --all-groups --members --verbose
    """
    if offsets + members + state > 1:
        raise UsageError("Give one of --offsets, --members and --state.")
    asking = Groups(connection(bootstrap_server, command_config).admin(), timeout_ms)
    found = asking.described(_chosen(asking, groups, all_groups=all_groups))
    missing = [each.group for each in found if each.state == "Dead"]
    there = [each for each in found if each.state != "Dead"]
    if members:
        write_members(there, output, is_verbose=verbose)
    elif state:
        write_states(there, output)
    else:
        write_offsets(asking, there, output, is_verbose=verbose, is_wide=wide)
    for name in missing:
        write_error(f"Consumer group '{name}' does not exist.")
    if missing:
        raise typer.Exit(1)


def delete(
    groups: GroupOption = None,
    all_groups: AllGroupsOption = False,
    timeout_ms: TimeoutOption = 30_000,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfigOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Delete consumer groups and their offsets.

    They must have no members.

    \b
    Example:
      stratalog group delete --group billing
    """
    admin = connection(bootstrap_server, command_config).admin()
    chosen = _chosen(Groups(admin, timeout_ms), groups, all_groups=all_groups)
    done, failed = [], {}
    with told("Deleting groups"):
        futures = (
            admin.delete_consumer_groups(chosen, request_timeout=timeout_ms / 1000)
            if chosen
            else {}
        )
    for name, future in futures.items():
        try:
            answer_of(future, f"Deleting group {name}")
            done.append(name)
        except ClientError as error:
            failed[name] = str(error)
    if output is OutputFormat.JSON:
        write_json({"deleted": done, "failed": failed})
    else:
        for name in done:
            write_line(f"Group {name} is deleted.")
        for reason in failed.values():
            write_error(reason)
    if failed:
        raise typer.Exit(1)


# --- reset-offsets ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Scenario:
    """Exactly one of these is what was asked for."""

    to_earliest: bool
    to_latest: bool
    to_current: bool
    to_offset: int | None
    shift_by: int | None
    timestamp_ms: int | None
    from_file: str | None


def reset_offsets(
    groups: GroupOption = None,
    all_groups: AllGroupsOption = False,
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC[:0,1]",
            help="A topic, or some of its partitions.",
            autocompletion=complete_topic,
        ),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All that the group has offsets of.")
    ] = False,
    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", help="To the first record there is.")
    ] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the log's end.")] = False,
    to_current: Annotated[
        bool, typer.Option("--to-current", help="To what it is; the log's end where it is none.")
    ] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", help="To this offset.")] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", help="By so many records, back if negative.")
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option("--to-datetime", metavar="YYYY-MM-DDThh:mm:ss.sss", help="To this moment."),
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option("--by-duration", metavar="PnDTnHnMnS", help="To so long before now."),
    ] = None,
    from_file: Annotated[
        str | None, typer.Option("--from-file", metavar="CSV", help="To what --export wrote.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done: the default.")
    ] = False,
    execute: Annotated[bool, typer.Option("--execute", help="Do it.")] = False,
    export: Annotated[bool, typer.Option("--export", help="Write the result as CSV.")] = False,
    timeout_ms: TimeoutOption = 30_000,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfigOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Reset the offsets of groups that have no members.

    Shows what would be done, unless --execute is given.

    \b
    Examples:
      stratalog group reset-offsets --group billing --topic orders --to-earliest
      stratalog group reset-offsets --group billing --topic orders:0,1 --shift-by -100 --execute
      stratalog group reset-offsets --group billing --all-topics --by-duration PT1H --execute
    """
    scenario = _scenario(
        to_earliest, to_latest, to_current, to_offset, shift_by, to_datetime, by_duration, from_file
    )
    if dry_run and execute:
        raise UsageError("Give --dry-run or --execute, not both.")
    scope = topics or ()
    if from_file is None and bool(scope) == all_topics:
        raise UsageError("Offsets of what? Give --topic or --all-topics.")
    asking = Groups(connection(bootstrap_server, command_config).admin(), timeout_ms)
    chosen = _chosen(asking, groups, all_groups=all_groups)
    planned = _plans_of_file(from_file, chosen)
    plans: dict[str, Plan] = {}
    failed = False
    for group in asking.described(chosen):
        if not group.is_inactive:
            write_error(
                f"Offsets can only be reset while group '{group.group}' is inactive; it is "
                f"{group.state}."
            )
            failed = True
            continue
        if planned is not None and group.group not in planned:
            write_error(f"The file has no offsets for group {group.group}.")
            failed = True
            continue
        wanted = None if planned is None else planned[group.group]
        plan = _plan(asking, group, scenario, scope, wanted)
        if execute:
            asking.commit(group.group, plan)
        plans[group.group] = plan
    _tell(plans, output, is_done=execute, exports=export, has_group=len(groups or ()) != 1)
    if failed:
        raise typer.Exit(1)


def _scenario(
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    from_file: str | None,
) -> _Scenario:
    values = (to_offset, shift_by, to_datetime, by_duration, from_file)
    if to_earliest + to_latest + to_current + sum(each is not None for each in values) != 1:
        raise UsageError(
            "To what? Give one of --to-earliest, --to-latest, --to-current, --to-offset, "
            "--shift-by, --to-datetime, --by-duration and --from-file."
        )
    timestamp_ms = None
    if to_datetime is not None:
        timestamp_ms = group_reset.parse_datetime(to_datetime)
    elif by_duration is not None:
        now_ms = time.time_ns() // 1_000_000
        timestamp_ms = max(0, now_ms - group_reset.parse_duration(by_duration))
    return _Scenario(
        to_earliest, to_latest, to_current, to_offset, shift_by, timestamp_ms, from_file
    )


def _plans_of_file(path: str | None, groups: list[str]) -> dict[str, Plan] | None:
    if path is None:
        return None
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise CommandError(f"--from-file {path}: {error.strerror}.") from error
    return group_reset.from_csv(text, groups)


def _plan(
    asking: Groups, group: Group, scenario: _Scenario, scope: Any, planned: Plan | None
) -> Plan:
    """Where the group's offsets are to be, in order of partitions."""
    existing = asking.partitions()
    committed = {place: each.offset for place, each in asking.committed(group.group).items()}
    if planned is not None:
        places = sorted(planned)
    elif scope:
        topics, places = group_reset.parse_scope(scope)
        for topic in topics:
            if topic not in existing:
                raise CommandError(f"There is no topic {topic}.")
            places += [(topic, partition) for partition in existing[topic]]
        places = sorted(set(places))
    else:
        places = sorted(committed)
    ensure_partitions(places, existing)
    return _offsets(asking, scenario, places, committed, planned)


def _offsets(
    asking: Groups,
    scenario: _Scenario,
    places: list[Place],
    committed: dict[Place, int],
    planned: Plan | None,
) -> Plan:
    if scenario.to_earliest:
        found = asking.starts(places)
    elif scenario.to_latest:
        found = asking.ends(places)
    elif scenario.timestamp_ms is not None:
        found = asking.at(places, scenario.timestamp_ms)
    elif scenario.to_current:
        kept = {place: committed[place] for place in places if place in committed}
        found = {**asking.ends(place for place in places if place not in kept), **kept}
    else:
        if planned is not None:
            wanted = planned
        elif scenario.shift_by is not None:
            wanted = group_reset.shift(places, committed, scenario.shift_by)
        else:
            assert scenario.to_offset is not None
            wanted = dict.fromkeys(places, scenario.to_offset)
        clamped = group_reset.clamp(wanted, asking.starts(places), asking.ends(places))
        for warning in clamped.warnings:
            write_error(f"warning: {warning}")
        found = clamped.plan
    return {place: found[place] for place in places}


def _tell(
    plans: dict[str, Plan], output: OutputFormat, *, is_done: bool, exports: bool, has_group: bool
) -> None:
    if exports:
        typer.echo(group_reset.to_csv(plans, has_group=has_group), nl=False)
        return
    rows = [
        (group, topic, partition, offset)
        for group, plan in plans.items()
        for (topic, partition), offset in plan.items()
    ]
    if output is OutputFormat.JSON:
        names = ("group", "topic", "partition", "new_offset")
        write_json(
            {"executed": is_done, "offsets": [dict(zip(names, row, strict=True)) for row in rows]}
        )
        return
    write_table(("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), rows)
    if not is_done:
        write_error("Nothing was changed: --execute does it.")


# --- both ------------------------------------------------------------------------------------


def _chosen(asking: Groups, groups: list[str] | None, *, all_groups: bool) -> list[str]:
    if bool(groups) == all_groups:
        raise UsageError("Which group? Give --group or --all-groups.")
    return groups if groups else [name for name, _, _ in asking.listed((), ())]


def _words(text: str | None, allowed: tuple[str, ...], option: str) -> list[str]:
    """A list by commas, in any case; none for an option without a value."""
    words = [each.strip() for each in (text or "").split(",") if each.strip()]
    known = {each.lower() for each in allowed}
    for word in words:
        if word.lower() not in known:
            raise UsageError(f"{option} {word}: it is one of {', '.join(allowed)}.")
    return words
