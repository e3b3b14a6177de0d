"""Which offsets a group is reset to: kafka-consumer-groups' scenarios, as pure functions.

A plan maps partitions to offsets. What lies outside of a partition's log is moved to its nearest
end, as Kafka's tool does, with a warning that says so.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO

from stratalog.cli.failures import CommandError, UsageError

Place = tuple[str, int]
Plan = dict[Place, int]

_DURATION = re.compile(
    r"(?P<sign>[+-])?P(?:(?P<days>[+-]?\d+)D)?"
    r"(?P<time>T(?:(?P<hours>[+-]?\d+)H)?(?:(?P<minutes>[+-]?\d+)M)?"
    r"(?:(?P<seconds>[+-]?\d+)(?:[.,](?P<fraction>\d{0,9}))?S)?)?",
    re.IGNORECASE,
)
# yyyy-MM-ddTHH:mm[:ss[.SSS]] and a zone, Z or +HH[:mm]; UTC if none is named.
_DATETIME = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)?"
)


@dataclass(frozen=True, slots=True)
class Clamped:
    """A plan inside of the logs, and a sentence for each offset that had to be moved."""

    plan: Plan
    warnings: list[str] = field(default_factory=list)


def clamp(
    wanted: Mapping[Place, int], starts: Mapping[Place, int], ends: Mapping[Place, int]
) -> Clamped:
    """Every offset inside of ``[start, end]`` of its partition."""
    clamped = Clamped({})
    for place, offset in wanted.items():
        inside = min(max(offset, starts[place]), ends[place])
        if inside != offset:
            than = "higher than the end" if offset > inside else "lower than the start"
            clamped.warnings.append(
                f"Offset {offset} is {than} of {place[0]}-{place[1]}; {inside} is taken."
            )
        clamped.plan[place] = inside
    return clamped


def shift(places: Iterable[Place], committed: Mapping[Place, int], by: int) -> Plan:
    wanted: Plan = {}
    for place in places:
        if place not in committed:
            raise CommandError(
                f"Cannot shift the offset of {place[0]}-{place[1]}: none has been committed."
            )
        wanted[place] = committed[place] + by
    return wanted


def parse_scope(texts: Sequence[str]) -> tuple[list[str], list[Place]]:
    """``topic`` and ``topic:0,1,2``: whole topics, and partitions that are named."""
    topics: list[str] = []
    places: list[Place] = []
    for text in texts:
        topic, separator, partitions = text.partition(":")
        if not separator:
            topics.append(topic)
            continue
        numbers = partitions.split(",")
        if not topic or not all(each.strip().isdigit() for each in numbers):
            raise UsageError(f"--topic {text} is neither TOPIC nor TOPIC:0,1,2.")
        places += [(topic, int(each)) for each in numbers]
    return topics, places


def parse_datetime(text: str) -> int:
    """Milliseconds since 1970 of ``YYYY-MM-DDThh:mm:ss.sss``, in UTC unless it names a zone."""
    if _DATETIME.fullmatch(text):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            return round(moment.timestamp() * 1000)
    raise UsageError(f"{text} is not a datetime of the form YYYY-MM-DDThh:mm:ss.sss.")


def parse_duration(text: str) -> int:
    """Milliseconds of an ISO 8601 duration ``PnDTnHnMnS``, as Java reads them."""
    found = _DURATION.fullmatch(text)
    parts = found.groupdict() if found else {}
    names = ("days", "hours", "minutes", "seconds")
    if not found or not any(parts[each] for each in names) or (parts["time"] or "").upper() == "T":
        raise UsageError(f"{text} is not a duration of the form PnDTnHnMnS.")
    units = (86_400_000, 3_600_000, 60_000, 1000)
    total = sum(int(parts[name] or 0) * unit for name, unit in zip(names, units, strict=True))
    if parts["fraction"]:
        part = int(parts["fraction"][:3].ljust(3, "0"))
        total += -part if (parts["seconds"] or "").startswith("-") else part
    return -total if parts["sign"] == "-" else total


# --- CSV -------------------------------------------------------------------------------------


def to_csv(plans: Mapping[str, Plan], *, has_group: bool) -> str:
    """``topic,partition,offset`` lines; the group comes first when there are several."""
    import csv

    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for group, plan in plans.items():
        for (topic, partition), offset in plan.items():
            row = (topic, partition, offset)
            writer.writerow((group, *row) if has_group else row)
    return out.getvalue()


def from_csv(text: str, groups: Sequence[str]) -> dict[str, Plan]:
    """What ``to_csv`` wrote, of either form; lines without a group are for the only one."""
    import csv

    plans: dict[str, Plan] = {}
    for number, row in enumerate(csv.reader(StringIO(text)), start=1):
        if not row:
            continue
        cells = [each.strip() for each in row]
        if len(cells) == 3 and len(groups) == 1:
            cells.insert(0, groups[0])
        if len(cells) != 4 or not cells[2].isdigit() or not cells[3].isdigit():
            form = "topic,partition,offset" if len(groups) == 1 else "group,topic,partition,offset"
            raise CommandError(f"Line {number} of the file is not {form}.")
        group, topic, partition, offset = cells
        plans.setdefault(group, {})[topic, int(partition)] = int(offset)
    return plans
