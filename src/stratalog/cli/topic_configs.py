"""Which logs a command is for, and what is known of their topics' configs.

Kafka keeps a topic's configs in its cluster's metadata, not beside its logs. So whoever wants
something removed from a bare directory must say by which configs: ``--config`` gives those of the
topics that are chosen. Topics that are not chosen, and Kafka's own unless they are named, have
unknown configs: they are looked at, never changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stratalog.cli.failures import CommandError, UsageError, refused_as_usage
from stratalog.cli.values import pairs

if TYPE_CHECKING:
    from stratalog.config import BrokerConfig, TopicConfig
    from stratalog.storage.files import FileSystem

PathArgument = Annotated[
    str, typer.Argument(metavar="PATH", help="A log directory, or one topic-partition in it.")
]
ConfigOption = Annotated[
    list[str] | None,
    typer.Option(
        "--config", metavar="NAME=VALUE", help="A config of the topics chosen; may be repeated."
    ),
]
BrokerConfigOption = Annotated[
    str | None,
    typer.Option(
        "--broker-config", metavar="FILE", help="A server.properties, for the broker's defaults."
    ),
]


@dataclass(frozen=True, slots=True)
class Chosen:
    """``replicas`` are the directories that the command is for, in order of their names.

    ``default`` is what would count for a topic of which nothing is known.
    """

    log_directory: str
    replicas: tuple[str, ...]
    topics: frozenset[str]
    broker: "BrokerConfig"
    config: "TopicConfig"
    default: "TopicConfig"
    is_known: bool

    def topic_config(self, topic: str) -> "TopicConfig | None":
        """What is known of a topic's configs: all or nothing."""
        return self.config if self.is_known and topic in self.topics else None


def choose(
    files: "FileSystem",
    path: str,
    *,
    topics: Sequence[str] | None,
    configs: Sequence[str] | None,
    broker_config: str | None,
) -> Chosen:
    """What ``path`` and the options name; nothing is opened yet."""
    from stratalog.config import TopicConfig
    from stratalog.errors import ConfigError
    from stratalog.storage.inspection import find_replicas
    from stratalog.storage.layout import parse_replica_directory
    from stratalog.topic_names import CLUSTER_METADATA_TOPIC, INTERNAL_TOPICS

    found = find_replicas(files, path)
    properties = pairs(configs, "--config", is_once=True)
    with refused_as_usage(ConfigError):
        broker = _broker(broker_config, found.log_directory)
        config = TopicConfig.from_properties(properties, broker=broker)
    wanted = frozenset(topics or ())
    replicas, named = [], set()
    for replica in found.replicas:
        name = parse_replica_directory(Path(replica).resolve().name)
        topic = name.topic_partition.topic
        # What is moving in or has been set aside is not a log of this directory.
        if name.state or topic == CLUSTER_METADATA_TOPIC or (wanted and topic not in wanted):
            continue
        replicas.append(replica)
        # Kafka's own are kept by rules that it gives them itself: the defaults would delete them.
        if wanted or not found.is_log_directory or topic not in INTERNAL_TOPICS:
            named.add(topic)
    if missing := sorted(wanted - named):
        raise CommandError(f"There is no log of {', '.join(missing)} in {path}.")
    return Chosen(
        found.log_directory,
        tuple(replicas),
        frozenset(named),
        broker,
        config,
        TopicConfig.from_properties({}, broker=broker),
        bool(configs),
    )


def choose_to_change(
    path: str,
    *,
    topics: Sequence[str] | None,
    configs: Sequence[str] | None,
    broker_config: str | None,
    what: str,
    policy: str,
) -> Chosen:
    """The same, for a command that takes something out of the logs of a whole log directory."""
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import find_replicas

    files = OsFileSystem()
    if not find_replicas(files, path).is_log_directory:
        raise UsageError(f"{path} is one log; name its log directory, and the topic by --topic.")
    chosen = choose(files, path, topics=topics, configs=configs, broker_config=broker_config)
    if not chosen.is_known:
        raise UsageError(
            f"The topics' configs are unknown, so nothing may be {what}. Give them with --config, "
            f"at least --config cleanup.policy={policy} if that is so."
        )
    return chosen


def _broker(path: str | None, log_directory: str) -> "BrokerConfig":
    from stratalog.config import BrokerConfig
    from stratalog.config.properties import parse_properties

    properties: dict[str, str] = {}
    if path is not None:
        try:
            properties = parse_properties(Path(path).read_bytes())
        except OSError as error:
            raise CommandError(f"--broker-config {path}: {error.strerror}.") from error
    # The directory is the one that was named, whatever the broker of that file used.
    broker = BrokerConfig.from_properties(
        {name: value for name, value in properties.items() if name not in ("log.dir", "log.dirs")},
        allows_unknown=True,
    )
    return replace(broker, log_dirs=(str(Path(log_directory).absolute()),))
