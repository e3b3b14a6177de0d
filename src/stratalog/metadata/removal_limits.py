"""Which configs decide whether and when something of a topic is removed, and which remove more.

    cleanup.policy    delete                      compact
    then              retention.ms                min.compaction.lag.ms
                      retention.bytes             delete.retention.ms

Other configs decide when the work is done and in which files, never what may go in the end. If no
limit of one config is looser than those of another, what goes by the one goes by the other too.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from stratalog.config import TopicConfig
from stratalog.config.settings import settings_of

POLICY = "cleanup.policy"
LIMITS = {
    "delete": ("retention.ms", "retention.bytes"),
    "compact": ("min.compaction.lag.ms", "delete.retention.ms"),
}
_UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class LooserLimit:
    """A config by which more goes than by the known one."""

    name: str
    known: str
    given: str


def unstated_limits(
    config: TopicConfig, stated: Collection[str], policies: Iterable[str] | None = None
) -> list[str]:
    """The configs that decide what is removed by ``policies``, or by those of ``config``, and that
    neither the topic states nor its broker, of whose settings those in ``stated`` are known."""
    names = [POLICY]
    for policy in config.cleanup_policy if policies is None else policies:
        names += LIMITS[policy]
    known = settings_of(TopicConfig)
    return [
        name
        for name in names
        if name not in config.overrides and not set(known[name].synonyms) & set(stated)
    ]


def looser_limits(known: TopicConfig, given: TopicConfig, policy: str) -> list[LooserLimit]:
    """By which limits ``policy`` removes with ``given`` what it does not with ``known``."""
    if policy not in given.cleanup_policy:
        return []
    names = [name for name in LIMITS[policy] if _keeps(given, name) < _keeps(known, name)]
    if policy not in known.cleanup_policy:
        names.insert(0, POLICY)
    before, after = known.to_properties(every=True), given.to_properties(every=True)
    return [LooserLimit(name, before[name], after[name]) for name in names]


def removes_nothing(config: TopicConfig, name: str) -> bool:
    """Whether the value of a limit lets nothing go, as that of ``retention.bytes`` by default."""
    return name != POLICY and _keeps(config, name) == float("inf")


def _keeps(config: TopicConfig, name: str) -> float:
    """How much a limit keeps, as a number that grows with it."""
    value: int = getattr(config, name.replace(".", "_"))
    return float("inf") if value == _UNLIMITED else value
