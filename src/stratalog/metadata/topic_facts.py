"""What the metadata in a log directory tells of topics' files: compacted, tiered.

The metadata is that of the store of a stratalog broker, or of ``__cluster_metadata-0``. A default
that a broker has in its own properties file is in neither of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stratalog.errors import AdoptionError, StratalogError
from stratalog.metadata.cluster_log import ClusterMetadata, read_cluster_metadata
from stratalog.metadata.kept_store import read_kept_image
from stratalog.topic_names import CLUSTER_METADATA_TOPIC

_DEFAULT_POLICY = "delete"


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """``known`` are the topics that the metadata names; the other sets are parts of it."""

    known: frozenset[str] = frozenset()
    not_compacted: frozenset[str] = frozenset()
    tiered: frozenset[str] = frozenset()


def read_topic_facts(log_dir: str) -> TopicFacts:
    """Nothing is known where there is no metadata. Errors as of ``read_kept_image``."""
    image = read_kept_image(log_dir)
    if image is not None:
        configs = {
            topic.name: topic.configs for topic in image.topics.values() if not topic.is_held
        }
        overrides = image.broker_overrides(image.node_id)
        return _facts(configs, overrides.get("log.cleanup.policy", _DEFAULT_POLICY))
    cluster = _cluster_metadata(log_dir)
    if cluster is None:
        return TopicFacts()
    named = {
        topic.name: cluster.topic_configs.get(topic.name, {}) for topic in cluster.topics.values()
    }
    policies = [each.get("log.cleanup.policy", "") for each in cluster.broker_configs.values()]
    default = "compact" if any("compact" in each for each in policies) else _DEFAULT_POLICY
    return _facts(named, default)


def find_topic_facts(log_dir: str) -> TopicFacts:
    """``read_topic_facts`` for a reader to whom metadata that cannot be read tells nothing."""
    try:
        return read_topic_facts(log_dir)
    except StratalogError:
        return TopicFacts()


def not_compacted_topics(log_dir: str) -> frozenset[str]:
    """Topics that are known not to be compacted. Errors as of ``read_kept_image``."""
    return read_topic_facts(log_dir).not_compacted


def _facts(configs: Mapping[str, Mapping[str, str]], default_policy: str) -> TopicFacts:
    return TopicFacts(
        frozenset(configs),
        frozenset(
            name
            for name, each in configs.items()
            if "compact" not in each.get("cleanup.policy", default_policy)
        ),
        frozenset(
            name for name, each in configs.items() if each.get("remote.storage.enable") == "true"
        ),
    )


def _cluster_metadata(log_dir: str) -> ClusterMetadata | None:
    directory = Path(log_dir, f"{CLUSTER_METADATA_TOPIC}-0")
    try:
        names = [entry.name for entry in directory.iterdir()]
        return read_cluster_metadata(names, lambda name: (directory / name).read_bytes())
    except (AdoptionError, OSError):
        return None
