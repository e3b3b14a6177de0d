"""DescribeClientQuotas (key 48), versions 0 to 1.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class ComponentData(NamedTuple):
    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""


class DescribeClientQuotasRequest(NamedTuple):
    components: Sequence[ComponentData] = ()
    strict: bool = False


class EntityData(NamedTuple):
    entity_type: str = ""
    entity_name: str | None = ""


class ValueData(NamedTuple):
    key: str = ""
    value: float = 0.0


class EntryData(NamedTuple):
    entity: Sequence[EntityData] = ()
    values: Sequence[ValueData] = ()


class DescribeClientQuotasResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: Sequence[EntryData] | None = ()


_LAYOUT_ComponentData: Layout = (
    ComponentData,
    ("string", 0, 1, -1, -1),
    ("int8", 0, 1, -1, -1),
    ("string", 0, 1, 0, -1),
)

REQUEST: Layout = (
    DescribeClientQuotasRequest,
    ("[]struct", 0, 1, -1, -1, _LAYOUT_ComponentData),
    ("bool", 0, 1, -1, -1),
)

_LAYOUT_EntityData: Layout = (
    EntityData,
    ("string", 0, 1, -1, -1),
    ("string", 0, 1, 0, -1),
)

_LAYOUT_ValueData: Layout = (
    ValueData,
    ("string", 0, 1, -1, -1),
    ("float64", 0, 1, -1, -1),
)

_LAYOUT_EntryData: Layout = (
    EntryData,
    ("[]struct", 0, 1, -1, -1, _LAYOUT_EntityData),
    ("[]struct", 0, 1, -1, -1, _LAYOUT_ValueData),
)

RESPONSE: Layout = (
    DescribeClientQuotasResponse,
    ("int32", 0, 1, -1, -1),
    ("int16", 0, 1, -1, -1),
    ("string", 0, 1, 0, -1),
    ("[]struct", 0, 1, 0, -1, _LAYOUT_EntryData),
)
