"""Where our answers are not Apache Kafka's, on purpose, with the reason.

A difference names the steps and the field it is about, as patterns of ``fnmatch`` in which
brackets stand for themselves. One that no answer shows any more is an error: it would hide the day
on which it comes back.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from recorded_requests_golden import ABSENT, Disagreement
from recorded_requests_plain import CLOSED, NO_ANSWER, Plain


class Anything:
    """Equals whatever there is."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


ANYTHING = Anything()


class Difference(NamedTuple):
    steps: str
    path: str
    reason: str
    kafka: "Plain | Anything" = ANYTHING
    ours: "Plain | Anything" = ANYTHING

    def explains(self, found: Disagreement) -> bool:
        return (
            self.kafka == found.kafka
            and self.ours == found.ours
            and fnmatchcase(found.step, self.steps.replace("[", "[[]"))
            and fnmatchcase(found.path, self.path.replace("[", "[[]"))
        )


_NOT_SERVED = "What stratalog does not have it does not advertise."
_SENTENCE = "An error comes with a sentence also where Kafka sends only its code."
_UNANSWERED = "Kafka fails inside and never answers; the request is refused instead."
_INSIDE = "Kafka's code fails inside and calls that an unknown server error."
_NO_TRANSACTIONS = "There is no transaction coordinator."
_BY_ID = "A session by topic ids knows ids only; Kafka's remembers the name that it once found."
_KRAFT = "Kafka's metadata quorum sets this for every new cluster, with its default value."

# Of the walks and the values, which both brokers are asked in one run.
LIVE_DIFFERENCES = (
    Difference("topic-walk-*", "*.configs.min.insync.replicas.config_source", _KRAFT, 3, 5),
    Difference("*", "*error_message", _SENTENCE, ABSENT, "<text>"),
    Difference(
        "lists/cleanup.policy 2 ''",
        "",
        "Nothing added to a list leaves it as it is.",
        40,
        0,
    ),
    Difference(
        "values/*.replication.throttled.replicas=','",
        "",
        "A list of nothing but commas is refused.",
        0,
        40,
    ),
    Difference("broker-values/min.insync.replicas=* of 1", "", _KRAFT, 40, 0),
)

DIFFERENCES = (
    Difference("*", "*error_message", _SENTENCE, ABSENT, "<text>"),
    Difference("*", "*error_message", _SENTENCE, None, "<text>"),
    Difference("api-versions/*", "api_keys.*", _NOT_SERVED, ours=ABSENT),
    Difference("api-versions/*", "*features*", "There are no feature levels.", ours=ABSENT),
    Difference(
        "api-versions/api_versions v0 version 99 without tags",
        "",
        "Of a version that is not known, only the part of the header is read that all have.",
        CLOSED,
    ),
    Difference(
        "frames/heartbeat v4 tags without end",
        "",
        "A number of tags that is too large is refused. Kafka takes it for a negative number.",
        ours=CLOSED,
    ),
    Difference("*", "*.configs.min.insync.replicas.config_source", _KRAFT, 3, 5),
    Difference("*", "*.configs.min.insync.replicas.synonyms", _KRAFT),
    Difference("describe-configs/describe_configs v* all brokers", "results[0].configs", _KRAFT),
    Difference("alter/alter_configs v* a topic twice", "", _UNANSWERED, NO_ANSWER),
    Difference("produce-records/produce v* null records", "", _UNANSWERED, NO_ANSWER),
    Difference(
        "*/*alter_configs v* an unknown one of a broker",
        "responses[0].error_code",
        "Kafka keeps settings it does not know, for plugins; here they are refused.",
        "NONE",
        "INVALID_REQUEST",
    ),
    Difference(
        "change/incremental_alter_configs v* no such operation",
        "responses[0].error_code",
        _INSIDE,
        "UNKNOWN_SERVER_ERROR",
        "INVALID_REQUEST",
    ),
    Difference("fetch/fetch v* isolation of 5", "*", _INSIDE),
    Difference("list-offsets/list_offsets v* isolation of 5", "*", _INSIDE),
    Difference("fetch/fetch v* negative sizes", "*", _INSIDE),
    Difference("recreated/fetch v17 a session, its topic gone", "*.error_code", _BY_ID),
    Difference("recreated/fetch v17 a session, its topic replaced", "responses[0].*", _BY_ID),
    Difference("find-coordinator/find_coordinator v* of a transaction", "*", _NO_TRANSACTIONS),
    Difference("idempotence/* v* a transaction", "*", _NO_TRANSACTIONS),
    Difference(
        "refused-outright/consumer_group_heartbeat v* without a group",
        "error_code",
        "There is no consumer protocol, as in a Kafka with group.version=0.",
        "INVALID_REQUEST",
        "UNSUPPORTED_VERSION",
    ),
)


def unexplained(
    found: list[Disagreement], known: Sequence[Difference] = DIFFERENCES
) -> list[Disagreement]:
    return [each for each in found if not any(one.explains(each) for one in known)]


def unused(
    found: list[Disagreement], known: Sequence[Difference] = DIFFERENCES
) -> list[Difference]:
    return [one for one in known if not any(one.explains(each) for each in found)]
