"""Changes of topics, partitions and configs that are refused, and a store that fails."""

from stratalog.errors.base import StratalogError


class MetadataError(StratalogError):
    """A change of topics, partitions or configs that cannot be made; nothing was changed."""


class InvalidTopicError(MetadataError):
    """A topic name that Kafka does not allow, or that another topic's metrics would share."""

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(name, rule)
        self.name = name
        self.rule = rule

    def __str__(self) -> str:
        return f"topic name {self.name!r}: {self.rule}"


class TopicExistsError(MetadataError):
    """A topic of that name is there already."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"topic {self.name!r} exists already"


class UnknownTopicError(MetadataError):
    """There is no topic of that name, or no such partition of it."""

    def __init__(self, name: str, partition: int = -1) -> None:
        super().__init__(name, partition)
        self.name = name
        self.partition = partition

    def __str__(self) -> str:
        if self.partition >= 0:
            return f"topic {self.name!r} has no partition {self.partition}"
        return f"there is no topic {self.name!r}"


class UnknownTopicIdError(MetadataError):
    """There is no topic with that id."""

    def __init__(self, topic_id: str) -> None:
        super().__init__(topic_id)
        self.topic_id = topic_id

    def __str__(self) -> str:
        return f"there is no topic with the id {self.topic_id}"


class PolicyViolationError(MetadataError):
    """The topic's settings do not allow it."""


class InvalidPartitionsError(MetadataError):
    """A number of partitions that a topic cannot have, or cannot be given any more."""


class InvalidReplicationFactorError(MetadataError):
    """A number of replicas that is none, or more than there are nodes."""


class InvalidReplicaAssignmentError(MetadataError):
    """Replicas chosen by hand that are nobody, somebody twice, or not one per partition."""


class InvalidRequestError(MetadataError):
    """A request that contradicts itself, or that asks for what is never granted."""


class TooManyPartitionsError(MetadataError):
    """More partitions in one request than anybody may ask for at once."""


class InvalidUpdateVersionError(MetadataError):
    """A change of a partition that was decided on an older state of it."""

    def __init__(self, name: str, partition: int, given_epoch: int, partition_epoch: int) -> None:
        super().__init__(name, partition, given_epoch, partition_epoch)
        self.name = name
        self.partition = partition
        self.given_epoch = given_epoch
        self.partition_epoch = partition_epoch

    def __str__(self) -> str:
        return (
            f"{self.name}-{self.partition} is at partition epoch {self.partition_epoch}, "
            f"the change was made for {self.given_epoch}"
        )


class ProducerIdsExhaustedError(MetadataError):
    """Every producer id that 63 bits can hold has been given away."""


class AdoptionError(MetadataError):
    """A directory whose topics cannot be told from what it holds without guessing."""


class MetadataStoreError(MetadataError):
    """The store is closed, was never initialized, or can no longer be trusted."""
