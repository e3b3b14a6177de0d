"""What Kafka lets a topic be called, and the topics that are its own; the only place that knows."""

import re

TOPIC_NAME_LENGTH_MAX = 249
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+")

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
# The controllers' log. It lies in a log directory as a topic's would, and no client sees it.
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
# What clients are told is internal: the broker alone writes to these.
INTERNAL_TOPICS = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state"))
# Of the logs in a directory, those that hold nobody's records but Kafka's.
KAFKAS_OWN_TOPICS = INTERNAL_TOPICS | {CLUSTER_METADATA_TOPIC}


def broken_name_rule(name: str) -> str | None:
    """Which rule of Kafka's a topic's name breaks, as a sentence; None if it may be called so."""
    if not name:
        return "a topic name may not be empty"
    if name in (".", ".."):
        return "a topic may not be called '.' or '..'"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return f"a topic name has at most {TOPIC_NAME_LENGTH_MAX} characters, this {len(name)}"
    if _TOPIC_NAME.fullmatch(name) is None:
        return "a topic name holds only ASCII letters, digits, '.', '_' and '-'"
    return None
