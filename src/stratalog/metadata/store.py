"""What every metadata store offers, be it a file beside the logs or a service of several nodes."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from stratalog.config import BrokerConfig
from stratalog.errors import StratalogError
from stratalog.metadata.dynamic_configs import ConfigChange
from stratalog.metadata.image import MetadataChange, MetadataImage, TopicMetadata
from stratalog.metadata.topics import NewTopic, PartitionChange

Listener = Callable[[MetadataChange], None]


class MetadataStore(Protocol):
    """Topics, configs and ids of a cluster.

    Reading is looking at ``image``, from any thread. Changing is durable before the call returns;
    what is refused raises an error of its own type and changes nothing. Changes are made by one
    thread at a time, and listeners hear of each in that thread, in order, after it is durable;
    they neither raise nor make changes.
    """

    @property
    def image(self) -> MetadataImage: ...

    @property
    def static_broker(self) -> BrokerConfig:
        """The settings that this node was started with."""

    @property
    def broker(self) -> BrokerConfig:
        """The settings of this node, with the dynamic ones over those it was started with."""

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` after each change, until what this returns is called."""

    def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[TopicMetadata | StratalogError]:
        """What became of each: a topic in state CREATING, or why there is none."""

    def create_topic(self, wanted: NewTopic) -> TopicMetadata: ...

    def create_partitions(
        self,
        name: str,
        new_count: int,
        *,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> TopicMetadata:
        """The topic, CREATING again until the directories of its new partitions are there."""

    def mark_live(self, *topic_ids: uuid.UUID) -> None:
        """The directories of these topics are there."""

    def begin_delete(self, *topic_ids: uuid.UUID) -> tuple[TopicMetadata, ...]:
        """From now on they are no topics; their directories are to be renamed and removed."""

    def finish_delete(self, *topic_ids: uuid.UUID) -> None:
        """Their directories are out of the way."""

    def change_partitions(self, changes: Sequence[PartitionChange]) -> None: ...

    def alter_topic_configs(
        self, name: str, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> TopicMetadata: ...

    def replace_topic_configs(
        self, name: str, configs: Mapping[str, str | None], *, validate_only: bool = False
    ) -> TopicMetadata: ...

    def alter_broker_configs(
        self, node_id: int | None, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> None: ...

    def replace_broker_configs(
        self,
        node_id: int | None,
        configs: Mapping[str, str | None],
        *,
        validate_only: bool = False,
    ) -> None: ...

    def set_known(self, name: str, configs: Mapping[str, str | None]) -> TopicMetadata:
        """``configs`` are, with those that are known, all that a held topic overrides: it is no
        longer held. A topic that is not held is refused."""

    def allocate_producer_ids(self) -> range:
        """A block of producer ids that nobody was or will be given but the caller."""

    def go_on_with_producer_ids(self, seen: int) -> None:
        """Give out none that the logs know: ``seen`` is the largest."""

    def close(self) -> None: ...
