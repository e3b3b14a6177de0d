"""``stratalog topic``: create, list, describe, alter and delete topics, as kafka-topics does.

Every verb is one or two requests to the broker. ``list`` and ``describe`` also look at a bare log
directory (``--log-dir``), see ``topic_directory``.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratalog.cli.client import (
    DEFAULT_BOOTSTRAP_SERVER,
    REQUEST_SECONDS,
    BootstrapOption,
    ClientError,
    CommandConfigOption,
    OfflineLogDirOption,
    answer_of,
    connection,
    told,
)
from stratalog.cli.client_names import (
    ExcludeInternalOption,
    IfExistsOption,
    NameArgument,
    TopicRegexOption,
    choose_topics,
    ensure_found,
    one_name,
)
from stratalog.cli.failures import UsageError
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    WideOption,
    write_error,
    write_json,
    write_line,
)
from stratalog.cli.topic_describe import TopicFacts, facts_of, select, write_topics
from stratalog.cli.values import pairs

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_PARTITIONS_HELP = "The number of partitions; the broker's default if it is not given."
_REPLICAS_HELP = "How many brokers keep each partition; the broker's default if it is not given."
AssignmentOption = Annotated[
    str | None,
    typer.Option(
        "--replica-assignment",
        metavar="LIST",
        help="Brokers of each partition: replicas by ':', partitions by ','.",
    ),
]


def create(
    name: NameArgument = None,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="TOPIC", help="The topic's name.")
    ] = None,
    partitions: Annotated[
        int | None, typer.Option("--partitions", min=1, help=_PARTITIONS_HELP)
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", min=1, max=32767, help=_REPLICAS_HELP)
    ] = None,
    replica_assignment: AssignmentOption = None,
    configs: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="NAME=VALUE", help="A config; may be repeated."),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Do nothing if the topic exists.")
    ] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfigOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Create a topic.

    \b
    Examples:
      stratalog topic create orders --partitions 3
      stratalog topic create customers --config cleanup.policy=compact
    """
    from confluent_kafka.admin import NewTopic

    chosen = one_name(name, topic)
    assignment = _assignment(replica_assignment)
    if assignment and (partitions is not None or replication_factor is not None):
        raise UsageError("--replica-assignment says both numbers; leave the other two out.")
    asked: dict[str, Any] = {"num_partitions": partitions or -1}
    if assignment:
        asked = {"num_partitions": len(assignment), "replica_assignment": assignment}
    elif replication_factor is not None:
        asked["replication_factor"] = replication_factor
    admin = connection(bootstrap_server, command_config).admin()
    what = f"Creating topic {chosen}"
    is_created = True
    try:
        with told(what):
            request = NewTopic(chosen, config=_configs(configs), **asked)
            futures = admin.create_topics([request], request_timeout=REQUEST_SECONDS)
        answer_of(futures[chosen], what)
    except ClientError as error:
        if not if_not_exists or error.name != "TOPIC_ALREADY_EXISTS":
            raise
        is_created = False
    if output is OutputFormat.JSON:
        write_json({"topic": chosen, "created": is_created})
    elif is_created:
        write_line(f"Created topic {chosen}.")


def list_topics(
    regex: TopicRegexOption = None,
    exclude_internal: ExcludeInternalOption = False,
    log_dir: OfflineLogDirOption = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfigOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List topics, one name a line.

    \b
    Examples:
      stratalog topic list
      stratalog topic list --topic 'orders.*' --exclude-internal
      stratalog topic list --log-dir data
    """
    if log_dir is not None:
        from stratalog.cli.topic_directory import look_at_topics

        names = [facts.name for facts in look_at_topics(log_dir)]
    else:
        names = topic_names(connection(bootstrap_server, command_config).admin())
    chosen = choose_topics(names, name=None, regex=regex, exclude_internal=exclude_internal)
    if output is OutputFormat.JSON:
        write_json(chosen)
        return
    for each in chosen:
        write_line(each)


def describe(
    name: NameArgument = None,
    regex: TopicRegexOption = None,
    topic_id: Annotated[
        str | None, typer.Option("--topic-id", help="The topic with this id.")
    ] = None,
    under_replicated: Annotated[
        bool,
        typer.Option("--under-replicated-partitions", help="Only where replicas lag behind."),
    ] = False,
    unavailable: Annotated[
        bool, typer.Option("--unavailable-partitions", help="Only where there is no leader.")
    ] = False,
    under_min_isr: Annotated[
        bool,
        typer.Option(
            "--under-min-isr-partitions", help="Only with fewer than min.insync.replicas."
        ),
    ] = False,
    at_min_isr: Annotated[
        bool,
        typer.Option("--at-min-isr-partitions", help="Only with exactly min.insync.replicas."),
    ] = False,
    with_overrides: Annotated[
        bool, typer.Option("--topics-with-overrides", help="Only topics with configs of their own.")
    ] = False,
    exclude_internal: ExcludeInternalOption = False,
    if_exists: IfExistsOption = False,
    log_dir: OfflineLogDirOption = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfigOption = None,
    wide: WideOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show topics with their configs and partitions.

    \b
    Examples:
      stratalog topic describe orders
      stratalog topic describe --topics-with-overrides
      stratalog topic describe --log-dir data -o json
    """
    found: list[TopicFacts]
    if log_dir is not None:
        from stratalog.cli.topic_directory import look_at_topics

        found = look_at_topics(log_dir)
    else:
        admin = connection(bootstrap_server, command_config).admin()
        # An id can only be looked up among all: the client asks by name.
        names = topic_names(admin)
        if topic_id is None:
            names = choose_topics(names, name=name, regex=regex)
        found = facts_of(admin, names)
    if topic_id is not None:
        found = [facts for facts in found if facts.topic_id == topic_id]
        ensure_found([facts.name for facts in found], topic_id, None, if_exists=if_exists)
    else:
        chosen = choose_topics(
            [facts.name for facts in found],
            name=name,
            regex=regex,
            exclude_internal=exclude_internal,
        )
        ensure_found(chosen, name, regex, if_exists=if_exists)
        found = [facts for facts in found if facts.name in chosen]
    found = select(
        found,
        under_replicated=under_replicated,
        unavailable=unavailable,
        under_min_isr=under_min_isr,
        at_min_isr=at_min_isr,
        with_overrides=with_overrides,
    )
    write_topics(found, output, shows_partitions=not with_overrides, is_wide=wide)


def alter(
    partitions: Annotated[int, typer.Option("--partitions", min=1, help="The new number.")],
    name: NameArgument = None,
    regex: TopicRegexOption = None,
    replica_assignment: AssignmentOption = None,
    if_exists: IfExistsOption = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfigOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Add partitions to a topic.

    A topic's configs are altered by 'stratalog config alter'.

    \b
    Example:
      stratalog topic alter orders --partitions 6
    """
    from confluent_kafka.admin import NewPartitions

    _need_topic(name, regex)
    admin = connection(bootstrap_server, command_config).admin()
    chosen = choose_topics(topic_names(admin), name=name, regex=regex)
    ensure_found(chosen, name, regex, if_exists=if_exists)
    assignment = _assignment(replica_assignment)
    counts = {facts.name: facts.partition_count for facts in facts_of(admin, chosen)}
    requests = []
    futures: dict[str, Any] = {}
    with told("Adding partitions"):
        for each in chosen:
            # As in Kafka's tool the list is of all partitions, those that exist included.
            more = {"replica_assignment": assignment[counts[each] :]} if assignment else {}
            requests.append(NewPartitions(each, partitions, **more))
        if requests:
            futures = admin.create_partitions(requests, request_timeout=REQUEST_SECONDS)
    failed = _settle(futures, "Adding partitions to topic")
    done = [each for each in chosen if each not in failed]
    _tell(output, "altered", done, failed, f"has {partitions} partitions now")


def delete(
    name: NameArgument = None,
    regex: TopicRegexOption = None,
    if_exists: IfExistsOption = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfigOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Delete topics with all their records.

    An argument is one exact name; --topic is a regular expression over names.

    \b
    Examples:
      stratalog topic delete orders
      stratalog topic delete --topic 'test-.*' --if-exists
    """
    _need_topic(name, regex)
    admin = connection(bootstrap_server, command_config).admin()
    chosen = choose_topics(topic_names(admin), name=name, regex=regex)
    ensure_found(chosen, name, regex, if_exists=if_exists)
    failed = {}
    if chosen:
        futures = admin.delete_topics(chosen, request_timeout=REQUEST_SECONDS)
        failed = _settle(futures, "Deleting topic")
    _tell(output, "deleted", [each for each in chosen if each not in failed], failed, "is deleted")


def topic_names(admin: "AdminClient") -> list[str]:
    """All topics of the cluster."""
    with told("Listing topics"):
        return sorted(admin.list_topics(timeout=REQUEST_SECONDS).topics)


def _need_topic(name: str | None, regex: str | None) -> None:
    if not name and not regex:
        raise UsageError("Which topic? Give it as an argument or with --topic.")


def _settle(futures: Any, what: str) -> dict[str, str]:
    """What went wrong, by topic."""
    failed = {}
    for topic, future in futures.items():
        try:
            answer_of(future, f"{what} {topic}")
        except ClientError as error:
            failed[topic] = str(error)
    return failed


def _tell(
    output: OutputFormat, verb: str, done: list[str], failed: dict[str, str], now: str
) -> None:
    if output is OutputFormat.JSON:
        write_json({verb: done, "failed": failed})
    else:
        for topic in done:
            write_line(f"Topic {topic} {now}.")
        for reason in failed.values():
            write_error(reason)
    if failed:
        raise typer.Exit(1)


def _configs(arguments: list[str] | None) -> dict[str, str]:
    found = pairs(arguments, "--config")
    return {name: value.strip() for name, value in found.items()}


def _assignment(text: str | None) -> list[list[int]]:
    """``0:1,1:0`` is partition 0 on brokers 0 and 1, partition 1 on 1 and 0."""
    if not text:
        return []
    try:
        found = [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--replica-assignment {text} is not a list of broker ids.") from None
    for number, brokers in enumerate(found):
        if len(set(brokers)) != len(brokers):
            raise UsageError(f"--replica-assignment names a broker twice for partition {number}.")
        if len(brokers) != len(found[0]):
            raise UsageError(f"--replica-assignment: partition {number} has another number.")
    return found
