"""Kafka's settings that ask for what is not done here: a value that asks for it is refused.

Passed over, it would leave an operator waiting for metrics, a cordon or tiers that never come.
What would leave a door open is in ``security``.
"""

from collections.abc import Mapping

from stratalog.config.effectless import EFFECTLESS
from stratalog.errors import ConfigError

_JMX = "org.apache.kafka.common.metrics.JmxReporter"
_PLUG_IN = "plug-ins of the JVM are not loaded; metrics are Prometheus'"

# The elements that are accepted of each, beside none.
_UNHONOURED: dict[str, tuple[tuple[str, ...], str]] = {
    "cordoned.log.dirs": ((), "new replicas go to any directory here; only none can be cordoned"),
    "kafka.metrics.reporters": ((), _PLUG_IN),
    "metric.reporters": ((_JMX,), _PLUG_IN),
    "remote.log.storage.system.enable": (
        ("false",),
        "nothing is tiered here, and what Apache Kafka has tiered is not read; leave the setting "
        "out, or set it to false",
    ),
}

UNHONOURED_NAMES = tuple(_UNHONOURED)


def check_unhonoured(name: str, text: str) -> None:
    """Refuse a value that Kafka would refuse, or that asks for what is not done here."""
    if name in EFFECTLESS:
        EFFECTLESS[name].parse(text)
    if name in _UNHONOURED:
        accepted, reason = _UNHONOURED[name]
        elements = {part.strip() for part in text.split(",")} - {""}
        if not elements <= {*accepted} and text.strip().lower() not in accepted:
            raise ConfigError(name, text, reason)


def unhonoured_refusals(properties: Mapping[str, str]) -> list[ConfigError]:
    """Why each of ``properties`` is refused whose value asks for what is not done here."""
    refusals = []
    for name, text in properties.items():
        try:
            check_unhonoured(name, text)
        except ConfigError as refused:
            refusals.append(refused)
    return refusals
