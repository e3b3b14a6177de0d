"""docs/reference/config.md, made from the fields themselves: ``make docs`` writes it.

``python -m stratalog.config.reference FILE`` writes the page, without FILE to standard output.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from stratalog.config.broker import BrokerConfig
from stratalog.config.effectless import EFFECTLESS
from stratalog.config.own import OwnSettings
from stratalog.config.security import SECURITY_NAMES, open_value, reason_of
from stratalog.config.settings import LONG_MAX, Setting, settings_of
from stratalog.config.topic import TopicConfig

_OPENING = """\
# Settings

Names, types, defaults and valid values are those of Apache Kafka 4.3.1, except where the last
section says otherwise. A value outside its rule, or a name that does not exist, is refused with
the name, the value and the rule.

This page is made from the code by `make docs`.
"""

_TOPIC = """
## Topic settings

What a topic sets itself wins over the broker's setting, and that over the default. Where several
broker settings are named, the first that is set counts; minutes and hours are converted.
"""

_BROKER = """
## Broker settings

Kafka's other broker settings (controllers, quotas, threads, tiered storage and so on) are accepted
in a `server.properties` and do nothing; those of security have a section below. A name in the file
that Kafka itself does not know is passed over with a warning, as in Kafka; one that is nearly a
known name is refused, and so is any unknown name in `--set`. All that is wrong with a file is told
at once.
"""

_SECURITY = """
## Security settings

A broker is served with none of these at a value that would close a door, since it does not honour
them: it does not start, and says which and why. Accepted is what closes nothing: no value, or the
one in the table. That holds for `listener.name.LISTENER.` before the name as well, and for the
name of a SASL mechanism, unless the listener is in `controller.listener.names`; of one listener,
`max.connections` and `max.connections.per.ip` are refused too. Tools that read a file of settings
accept them all.
"""

_EFFECTLESS = """
## Dynamic settings without effect

Tools set these while a broker runs, before and after what they do. They are checked, kept and told
by DescribeConfigs, and change nothing on one node. Configs of groups and of client metrics are
told with Kafka's defaults, and cannot be other than those.
"""

_OWN = """
## stratalog's own broker settings

Apache Kafka does not know these, and ignores them.
"""

_DIFFERENCES = """
## Differences from Apache Kafka

- A broker setting whose name is nearly a known one is refused; Kafka starts without it.
- A listener without a host is refused: to Kafka it is every interface. Say `0.0.0.0`, and in
  `advertised.listeners` what clients connect to.
- `--listen` does not take the place of a listener that asks clients who they are.
- `listeners` defaults to the loopback interface, Kafka's to every one. One listener for clients is
  served, of the protocol PLAINTEXT; those in `controller.listener.names` are passed over.
- `node.id` may be left out: it is what `meta.properties` says, and 1 in a new directory.
- `internal.segment.bytes` has a lower bound of 14; Kafka takes any number.
- `remote.storage.enable=true` is refused: there is no tiered storage.
- NaN is refused where a number is expected.
- `log.cleaner.threads=0` is refused with a reason; Kafka's start fails on a division by zero.
- Two spellings of one directory in `log.dirs`, or one inside another, are refused when the settings
  are read.
"""


# What Kafka has and nothing here reads: followers, elections, plugins, remote storage and the like.
NO_EFFECT = frozenset(
    (
        "auto.leader.rebalance.enable",
        "background.threads",
        "broker.rack",
        "delete.records.purgatory.purge.interval.requests",
        "fetch.purgatory.purge.interval.requests",
        "follower.replication.throttled.replicas",
        "leader.imbalance.check.interval.seconds",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "log.dir.failure.timeout.ms",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "max.request.partition.size.limit",
        "num.replica.fetchers",
        "producer.purgatory.purge.interval.requests",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "replica.fetch.backoff.ms",
        "replica.fetch.max.bytes",
        "replica.fetch.min.bytes",
        "replica.fetch.response.max.bytes",
        "replica.fetch.wait.max.ms",
        "replica.selector.class",
        "replica.socket.receive.buffer.bytes",
        "replica.socket.timeout.ms",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "transaction.max.timeout.ms",
        "unclean.leader.election.enable",
        "unclean.leader.election.interval.ms",
    )
)


def render() -> str:
    """The whole page."""
    topic = settings_of(TopicConfig).values()
    broker = [each for each in settings_of(BrokerConfig).values() if not each.ours]
    own = settings_of(OwnSettings).values()
    parts = [
        _OPENING,
        _TOPIC,
        *_table(topic, with_synonyms=True),
        _BROKER,
        *_table(broker, with_synonyms=False),
        _SECURITY,
        *_security_table(),
        _EFFECTLESS,
        *_effectless_table(),
        _OWN,
        *_table(own, with_synonyms=False),
        _DIFFERENCES,
    ]
    return "".join(parts)


def _table(settings: Iterable[Setting], *, with_synonyms: bool) -> Iterator[str]:
    heads = ["setting", "type", "default", "valid", "meaning"]
    if with_synonyms:
        heads.insert(4, "broker's setting")
    yield f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"
    for each in sorted(settings, key=lambda each: each.name):
        cells = [f"`{each.name}`", each.kind.value, _default(each), each.rule, each.doc]
        if with_synonyms:
            cells.insert(4, ", ".join(f"`{name}`" for name in each.synonyms) or "none")
        if each.internal:
            cells[0] += " (internal)"
        if each.name in NO_EFFECT:
            cells[-1] += " *Checked; has no effect here.*"
        yield f"| {' | '.join(cells)} |\n"


def _effectless_table() -> Iterator[str]:
    yield "\n| setting | type | valid | meaning |\n|---|---|---|---|\n"
    for name, each in sorted(EFFECTLESS.items()):
        yield f"| `{name}` | {each.kind.value} | {each.rule} | {each.doc} |\n"


def _security_table() -> Iterator[str]:
    yield "\n| setting | accepted beside none | why no other |\n|---|---|---|\n"
    for name in sorted(SECURITY_NAMES):
        value = open_value(name)
        yield f"| `{name}` | {value} | {reason_of(name)} |\n"


def _default(each: Setting) -> str:
    if each.default is None:
        return "not set"
    if each.default == LONG_MAX:
        return "2^63-1"
    return each.text(each.default) or "empty"


def main(arguments: list[str]) -> None:
    if arguments:
        Path(arguments[0]).write_text(render(), encoding="utf-8")
    else:
        sys.stdout.write(render())


if __name__ == "__main__":
    main(sys.argv[1:])
