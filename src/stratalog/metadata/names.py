"""Names and ids of topics: what a store allows, and what it gives.

Metrics spell ``.`` as ``_``, so two names that differ only there may not both exist.
"""

import uuid

from stratalog.errors import InvalidRequestError, InvalidTopicError
from stratalog.topic_names import (
    CLUSTER_METADATA_TOPIC,
    INTERNAL_TOPICS,
    broken_name_rule,
)

# Kafka means "none" and "the metadata log" by these.
_RESERVED_IDS = (0, 1)


def validate_topic_name(name: str) -> str:
    """Return ``name``, or raise which of Kafka's rules it breaks."""
    if (rule := broken_name_rule(name)) is not None:
        raise InvalidTopicError(name, rule)
    return name


def validate_new_topic_name(name: str) -> str:
    """As ``validate_topic_name``, for a topic that somebody wants to create."""
    if name == CLUSTER_METADATA_TOPIC:
        raise InvalidRequestError(f"{CLUSTER_METADATA_TOPIC} is not a topic that can be created")
    return validate_topic_name(name)


def metric_name(name: str) -> str | None:
    """How metrics spell a name that could collide there; None for one that cannot."""
    return name.replace(".", "_") if "." in name or "_" in name else None


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


def random_topic_id() -> uuid.UUID:
    """A new id, as Kafka draws them: none of the reserved, and none whose text form begins with a
    dash, which command lines would take for an option."""
    while True:
        topic_id = uuid.uuid4()
        # The first character of base64url is the upper six bits of the first byte; 62 is the dash.
        if topic_id.int not in _RESERVED_IDS and topic_id.bytes[0] >> 2 != 62:
            return topic_id
