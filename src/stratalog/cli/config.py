"""``stratalog config``: show and alter the configs of topics and brokers, as kafka-configs does.

Asked over a connection of our own: librdkafka can neither name the configs of all brokers together
nor keep two sources of one name, which is just what one wants to see.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratalog.cli.client import (
    DEFAULT_BOOTSTRAP_SERVER,
    BootstrapOption,
    CommandConfigOption,
    connection,
    read_properties,
)
from stratalog.cli.completion import complete_topic
from stratalog.cli.config_text import parse_added, parse_deleted
from stratalog.cli.failures import UsageError
from stratalog.cli.output import OutputFormat, OutputOption, write_json, write_line

if TYPE_CHECKING:
    from stratalog.cli.config_requests import ConfigFacts, Entity

TOPICS, BROKERS = "topics", "brokers"
_ELSEWHERE = ("clients", "users", "ips", "groups", "client-metrics", "broker-loggers")

EntityTypeOption = Annotated[
    str | None, typer.Option("--entity-type", metavar="TYPE", help="topics or brokers.")
]
EntityNameOption = Annotated[
    str | None, typer.Option("--entity-name", metavar="NAME", help="A topic, or a broker's id.")
]
EntityDefaultOption = Annotated[
    bool, typer.Option("--entity-default", help="What holds for all brokers.")
]
TopicEntityOption = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="Short for the two options above.",
        autocompletion=complete_topic,
    ),
]
BrokerOption = Annotated[
    str | None, typer.Option("--broker", metavar="ID", help="Likewise, for a broker.")
]
BrokerDefaultsOption = Annotated[
    bool, typer.Option("--broker-defaults", help="Likewise, for all brokers.")
]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """``name`` is None for all there are, and empty for what holds for all brokers."""

    kind: str
    name: str | None


def describe(
    entity_type: EntityTypeOption = None,
    entity_name: EntityNameOption = None,
    entity_default: EntityDefaultOption = False,
    topic: TopicEntityOption = None,
    broker: BrokerOption = None,
    broker_defaults: BrokerDefaultsOption = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="Also what was not set for it: static and defaults.")
    ] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfigOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show configs, and where each value comes from.

    \b
    Examples:
      stratalog config describe --topic orders
      stratalog config describe --broker 1 --all
    """
    from stratalog.cli.config_requests import ConfigClient, Entity

    chosen = _choose(entity_type, entity_name, entity_default, topic, broker, broker_defaults)
    with ConfigClient(connection(bootstrap_server, command_config)) as client:
        if chosen.name is None:
            entities = client.entities(chosen.kind)
        else:
            entities = [Entity(chosen.kind, chosen.name)]
            client.ensure_exists(entities[0])
        told = [
            (entity, [each for each in client.describe(entity) if show_all or each.is_own(entity)])
            for entity in entities
        ]
    if output is OutputFormat.JSON:
        write_json([_as_json(entity, configs) for entity, configs in told])
        return
    for entity, configs in told:
        _write(entity, configs, show_all=show_all)


def alter(
    entity_type: EntityTypeOption = None,
    entity_name: EntityNameOption = None,
    entity_default: EntityDefaultOption = False,
    topic: TopicEntityOption = None,
    broker: BrokerOption = None,
    broker_defaults: BrokerDefaultsOption = False,
    add_config: Annotated[
        str | None,
        typer.Option(
            "--add-config",
            metavar="K1=V1,K2=[V2,V3]",
            help="Configs to set; brackets keep the commas of a value.",
        ),
    ] = None,
    add_config_file: Annotated[
        str | None,
        typer.Option("--add-config-file", metavar="FILE", help="A properties file to set."),
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option("--delete-config", metavar="K1,K2", help="Configs to take away."),
    ] = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfigOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Set configs of a topic or of brokers, or take them away.

    It counts at once.

    \b
    Examples:
      stratalog config alter --topic orders --add-config retention.ms=86400000
      stratalog config alter --topic orders --delete-config retention.ms
      stratalog config alter --broker-defaults --add-config log.cleaner.threads=2
    """
    from stratalog.cli.config_requests import ConfigClient, Entity

    chosen = _choose(entity_type, entity_name, entity_default, topic, broker, broker_defaults)
    if chosen.name is None:
        raise UsageError("Which one? Name the entity whose configs are to be altered.")
    if add_config is not None and add_config_file is not None:
        raise UsageError("Give --add-config or --add-config-file, not both.")
    added = read_properties(add_config_file, "--add-config-file")
    if add_config is not None:
        added = parse_added(add_config)
    deleted = parse_deleted(delete_config or ())
    if not added and not deleted:
        raise UsageError(
            "Nothing to alter: give --add-config, --add-config-file or --delete-config."
        )
    entity = Entity(chosen.kind, chosen.name)
    with ConfigClient(connection(bootstrap_server, command_config)) as client:
        client.alter(entity, added, deleted)
    if output is OutputFormat.JSON:
        write_json({**entity.as_json(), "added": added, "deleted": deleted})
    elif entity.name:
        write_line(f"Completed updating config for {entity.one} {entity.name}.")
    else:
        write_line(f"Completed updating default config for {entity.kind} in the cluster.")


def _choose(
    entity_type: str | None,
    entity_name: str | None,
    entity_default: bool,
    topic: str | None,
    broker: str | None,
    broker_defaults: bool,
) -> _Chosen:
    short = [
        _Chosen(kind, name)
        for kind, name in (
            (TOPICS, topic),
            (BROKERS, broker),
            (BROKERS, "" if broker_defaults else None),
        )
        if name is not None
    ]
    is_long = entity_type is not None or entity_name is not None or entity_default
    if len(short) + is_long != 1:
        raise UsageError(
            "Configs of what? Give --entity-type with --entity-name, or one of "
            "--topic, --broker, --broker-defaults."
        )
    chosen = short[0] if short else _long(entity_type, entity_name, entity_default)
    if chosen.kind == TOPICS and chosen.name == "":
        raise UsageError("Topics have no defaults of their own: they are the brokers' configs.")
    if chosen.kind == BROKERS and chosen.name and not chosen.name.isdigit():
        raise UsageError(f"A broker is named by its id, a number, not by {chosen.name}.")
    return chosen


def _long(entity_type: str | None, entity_name: str | None, entity_default: bool) -> _Chosen:
    if entity_type in _ELSEWHERE:
        raise UsageError(f"--entity-type {entity_type} is not served; topics and brokers are.")
    if entity_type not in (TOPICS, BROKERS):
        raise UsageError("--entity-type is either topics or brokers.")
    if entity_default and entity_name is not None:
        raise UsageError("Give --entity-name or --entity-default, not both.")
    return _Chosen(entity_type, "" if entity_default else entity_name)


def _as_json(entity: "Entity", configs: "list[ConfigFacts]") -> dict[str, Any]:
    return {**entity.as_json(), "configs": [each.as_json() for each in configs]}


def _write(entity: "Entity", configs: "list[ConfigFacts]", *, show_all: bool) -> None:
    if entity.name:
        which = "All" if show_all else "Dynamic"
        write_line(f"{which} configs for {entity.one} {entity.name} are:")
    else:
        write_line(f"Default configs for {entity.kind} in the cluster are:")
    for each in configs:
        synonyms = ", ".join(
            f"{one.source}:{one.name}={_shown(one.value)}" for one in each.synonyms
        )
        sensitive = "true" if each.is_sensitive else "false"
        write_line(
            f"  {each.name}={_shown(each.value)} sensitive={sensitive} synonyms={{{synonyms}}}"
        )


def _shown(value: str | None) -> str:
    return "null" if value is None else value
