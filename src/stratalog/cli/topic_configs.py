"""Which logs a command is for, and by which configs it goes.

They are what is known of the log directory (``directories.known_directory``), with what
``--config`` gives laid over the topics that are chosen: Apache Kafka's own only if they are named.
A topic of which not all is known is looked at, never changed, and no command removes more than what
is known allows, unless it is told to in so many words.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from stratalog.cli.failures import CommandError, UsageError, refused_as_usage
from stratalog.cli.values import pairs

if TYPE_CHECKING:
    from stratalog.config import BrokerConfig, TopicConfig
    from stratalog.directories.known_directory import KnownDirectory
    from stratalog.directories.topic_configs import KnownConfig, TopicConfigs
    from stratalog.storage.files import FileSystem
    from stratalog.storage.layout import TopicPartition
    from stratalog.storage.views import LogOffsets, LogView

Answer = TypeVar("Answer")
ConfigOption = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        metavar="NAME=VALUE",
        help="A config to count for the topics chosen, over those that are known; may be repeated.",
    ),
]
BrokerConfigOption = Annotated[
    str | None,
    typer.Option(
        "--broker-config",
        metavar="FILE",
        help="A server.properties, for the settings of its broker.",
    ),
]
BeyondOption = Annotated[
    bool,
    typer.Option(
        "--beyond-known-configs",
        help="Remove also what the topics' known configs keep, or where they are not known.",
    ),
]
HighWatermarkOption = Annotated[
    bool,
    typer.Option(
        "--high-watermark-is-end",
        help="Of a log that no checkpoint names, as of one that was copied by itself, all counts "
        "as replicated.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """``replicas`` are the directories that the command is for, in order of their names; ``named``
    the topics that ``given`` counts for. ``strangers`` are topics whose files here are of another
    topic of that name than the one that is known."""

    log_directory: str
    replicas: tuple[str, ...]
    topics: frozenset[str]
    named: frozenset[str]
    strangers: frozenset[str]
    known: "KnownDirectory"
    known_configs: "TopicConfigs"
    counting_configs: "TopicConfigs"
    broker: "BrokerConfig"
    given: Mapping[str, str]
    is_server_given: bool
    # What the owner says, where it can be asked.
    offsets: "Mapping[TopicPartition, LogOffsets]"
    is_end_replicated: bool
    is_beyond: bool

    def look_at(
        self,
        files: "FileSystem",
        directory: str,
        config: "TopicConfig",
        ask: "Callable[[LogView], Answer]",
    ) -> Answer:
        """What ``ask`` says of a log as its owner knows it, or as its files show it."""
        from stratalog.storage.inspection import topic_partition_of
        from stratalog.storage.views import look_at

        return look_at(
            files,
            directory,
            config,
            ask,
            offsets=self.offsets.get(topic_partition_of(directory)),
            is_end_replicated=self.is_end_replicated,
        )

    def check_unchanged(self, files: "FileSystem") -> None:
        """For whoever owns the directory now: another may have been its owner since it was looked
        at, and have changed configs."""
        from stratalog.directories.known_directory import learn_directory

        now = learn_directory(files, self.log_directory)
        for topic in sorted(self.topics):
            known = (self.known.topics.get(topic), self.known.server_configs)
            if known != (now.topics.get(topic), now.server_configs):
                raise CommandError(f"The configs of {topic} were changed just now: try again.")
        if self.known.dynamic_configs != now.dynamic_configs:
            raise CommandError("The configs of its broker were changed just now: try again.")

    def resolved(self, topic: str) -> "KnownConfig":
        """What counts for a topic, be it known or not."""
        given = self.given if topic in self.named else {}
        return self.counting_configs.of(topic, given, is_stranger=topic in self.strangers)

    def topic_config(self, topic: str) -> "TopicConfig | None":
        """What counts for a topic; None if it is held, or not chosen."""
        found = self.resolved(topic)
        is_given = (bool(self.given) or self.is_beyond) and topic in self.named
        return found.config if topic in self.topics and (found.is_known or is_given) else None

    def known_config(self, topic: str) -> "KnownConfig":
        """What counts without anything that was given."""
        return self.known_configs.of(topic, is_stranger=topic in self.strangers)


def choose(
    files: "FileSystem",
    path: str,
    *,
    topics: Sequence[str] | None = None,
    configs: Sequence[str] | None = None,
    broker_config: str | None = None,
    is_end_replicated: bool = False,
    is_beyond: bool = False,
) -> Chosen:
    """What ``path`` and the options name, and what is known of it; no log is opened yet."""
    from stratalog.config import TopicConfig
    from stratalog.directories.known_directory import learn_directory
    from stratalog.directories.owners import ask_offsets
    from stratalog.errors import ConfigError
    from stratalog.storage.inspection import find_replicas
    from stratalog.storage.layout import parse_replica_directory
    from stratalog.topic_names import CLUSTER_METADATA_TOPIC, INTERNAL_TOPICS

    found = find_replicas(files, path)
    given = pairs(configs, "--config", is_once=True)
    known = learn_directory(files, found.log_directory)
    with refused_as_usage(ConfigError):
        server = _server(broker_config)
        # The directory is the one that was named, whatever the broker used.
        counting = known.topic_configs(server)
        broker = replace(counting.broker, log_dirs=(str(Path(found.log_directory).absolute()),))
        TopicConfig.from_properties(given, broker=broker)
    wanted = frozenset(topics or ())
    replicas, named = [], set()
    of_topic: dict[str, list[str]] = {}
    for replica in found.replicas:
        name = parse_replica_directory(Path(replica).resolve().name)
        topic = name.topic_partition.topic
        # What is moving in or has been set aside is not a log of this directory.
        if name.state or topic == CLUSTER_METADATA_TOPIC or (wanted and topic not in wanted):
            continue
        replicas.append(replica)
        of_topic.setdefault(topic, []).append(replica)
        # Kafka's own are kept by rules that it gives them itself: others are not meant for them.
        if wanted or not found.is_log_directory or topic not in INTERNAL_TOPICS:
            named.add(topic)
    if missing := sorted(wanted - named):
        raise CommandError(f"There is no log of {', '.join(missing)} in {path}.")
    return Chosen(
        log_directory=found.log_directory,
        replicas=tuple(replicas),
        topics=frozenset(of_topic),
        named=frozenset(named),
        strangers=frozenset(
            topic for topic in of_topic if _is_stranger(files, known, topic, of_topic[topic])
        ),
        known=known,
        known_configs=known.topic_configs(),
        counting_configs=counting,
        broker=broker,
        given=given,
        is_server_given=server is not None,
        offsets=(ask_offsets(known.reach, of_topic) or {}) if known.reach else {},
        is_end_replicated=is_end_replicated,
        is_beyond=is_beyond,
    )


def choose_to_change(
    path: str,
    *,
    topics: Sequence[str] | None,
    configs: Sequence[str] | None,
    broker_config: str | None,
    policy: str,
    is_beyond: bool,
    is_end_replicated: bool,
) -> Chosen:
    """What a command is for that takes something out of the logs of a whole log directory, by
    ``policy`` of ``cleanup.policy``; refused if more would go than what is known allows."""
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import find_replicas

    files = OsFileSystem()
    if not find_replicas(files, path).is_log_directory:
        raise UsageError(f"{path} is one log; name its log directory, and the topic by --topic.")
    chosen = choose(
        files,
        path,
        topics=topics,
        configs=configs,
        broker_config=broker_config,
        is_end_replicated=is_end_replicated,
        is_beyond=is_beyond,
    )
    if not is_beyond:
        for topic in sorted(chosen.named):
            _refuse_beyond(chosen, topic, policy, is_named=bool(topics))
    if chosen.topics and all(chosen.topic_config(each) is None for each in chosen.topics):
        topic = min(chosen.topics)
        raise UsageError(_unknown_sentence(chosen, topic, chosen.resolved(topic).unknown))
    return chosen


def _refuse_beyond(chosen: Chosen, topic: str, policy: str, *, is_named: bool) -> None:
    from stratalog.metadata.removal_limits import POLICY, looser_limits, removes_nothing

    known, counting = chosen.known_config(topic), chosen.resolved(topic)
    looser = [
        each
        for each in looser_limits(known.config, counting.config, policy)
        if each.name not in known.unknown_for(policy)
    ]
    if looser:
        limit = looser[0]
        raise CommandError(
            f"Topic {topic} has {limit.name}={limit.known} ({chosen.known.how}); with "
            f"{limit.name}={limit.given} more would be removed than that allows. Alter the topic's "
            "configs, or say --beyond-known-configs."
        )
    is_given = bool(chosen.given) or chosen.is_server_given
    if not (is_given or is_named):
        return  # it is held, and passed over
    unknown = [
        each for each in counting.unknown_for(policy) if not removes_nothing(counting.config, each)
    ]
    # By another policy nothing goes here, whatever its limits are.
    if POLICY not in unknown and policy not in counting.config.cleanup_policy:
        unknown = []
    if unknown or (counting.is_held and not chosen.given):
        raise UsageError(_unknown_sentence(chosen, topic, unknown))


def _unknown_sentence(chosen: Chosen, topic: str, unknown: Sequence[str]) -> str:
    by_default = chosen.resolved(topic).config.to_properties(every=True)
    counting = ", ".join(f"{name}={by_default[name]}" for name in unknown)
    default = f"; {counting} would count by default" if counting else ""
    needed = "Give them with --config" if counting else "Give its configs with --config"
    return (
        f"The configs of topic {topic} are unknown: {why_unknown(chosen, topic)}{default}. "
        f"{needed}, start its broker, or say --beyond-known-configs."
    )


def why_unknown(chosen: Chosen, topic: str) -> str:
    """Why a topic is held, in the middle of a sentence."""
    known = chosen.known.topics.get(topic)
    if topic in chosen.strangers:
        return f"its files are of another topic than the {topic} that is known"
    if not chosen.known.topics:
        return chosen.known.how
    if known is None:
        return f"{chosen.known.how}, and does not mention it"
    if known.is_held:
        return "it was adopted without all of them ('stratalog topic adopt')"
    unknown = ", ".join(chosen.resolved(topic).unknown)
    if unknown:
        return f"it leaves {unknown} to its broker, whose settings are unknown (--broker-config)"
    return "some of them are not possible here"


def by_default_warnings(chosen: Chosen, topic: str) -> list[str]:
    """What counts for a topic by its default alone, beside what was given for it."""
    if chosen.topic_config(topic) is None:
        return []
    found = chosen.resolved(topic)
    texts = found.config.to_properties(every=True)
    return [
        f"{name} of {topic} is not known: by default it is {texts[name]}" for name in found.unknown
    ]


def _is_stranger(
    files: "FileSystem", known: "KnownDirectory", topic: str, replicas: Sequence[str]
) -> bool:
    from stratalog.directories.known_directory import topic_id_in
    from stratalog.storage.checkpoint import format_id

    told = known.topics.get(topic)
    if told is None or told.topic_id is None:
        return False
    expected = format_id(told.topic_id)
    return any(topic_id_in(files, each) not in ("", expected) for each in replicas)


def _server(path: str | None) -> "BrokerConfig | None":
    from stratalog.config import BrokerConfig
    from stratalog.config.properties import parse_properties

    if path is None:
        return None
    try:
        properties = parse_properties(Path(path).read_bytes())
    except OSError as error:
        raise CommandError(f"--broker-config {path}: {error.strerror}.") from error
    return BrokerConfig.from_properties(
        {name: value for name, value in properties.items() if name not in ("log.dir", "log.dirs")},
        allows_unknown=True,
    )
