"""Kafka's settings that close a door to somebody, and that this broker does not honour.

Each is accepted where its value closes nothing: when it is empty, Kafka's default, or an open value
such as ``ssl.client.auth=none``. Any other value is refused with the reason. Passed over, it would
leave a port open that its operator believes to be closed.

    name                                     the setting of every listener
    listener.name.LISTENER.name              of one listener
    listener.name.LISTENER.MECHANISM.name    of one SASL mechanism of it; also without the listener

``split_door`` parts such a name.
"""

import re
from collections.abc import Mapping

from stratalog.errors import ConfigError

_TLS = "TLS is not served: every listener is PLAINTEXT"
_SASL = "SASL is not served: nobody who connects is authenticated"
_AUTHORIZER = "there is no authorizer here: who can connect may do everything"
_POLICY = "plug-ins of the JVM are not loaded: every change would be allowed"
_PRINCIPAL = "plug-ins of the JVM are not loaded: every client is User:ANONYMOUS"
_TOKEN = "delegation tokens are not issued or accepted here"
_QUOTA = "this limit is not kept here; max.connections and max.connections.per.ip are"
_PROVIDERS = "values are not looked up elsewhere: write them into the file"
_BETWEEN = "brokers do not speak to each other here, and only PLAINTEXT is served"

# The values that are accepted, beside the empty one.
_OPEN_VALUES: dict[str, tuple[tuple[str, ...], str]] = {
    "allow.everyone.if.no.acl.found": (("true",), _AUTHORIZER),
    "alter.config.policy.class.name": ((), _POLICY),
    "authorizer.class.name": ((), _AUTHORIZER),
    "client.quota.callback.class": ((), "plug-ins of the JVM are not loaded, and quotas not kept"),
    "config.providers": ((), _PROVIDERS),
    "connection.failed.authentication.delay.ms": (("100",), _SASL),
    "connections.max.reauth.ms": (("0",), _SASL),
    "create.topic.policy.class.name": ((), _POLICY),
    "delegation.token.expiry.check.interval.ms": (("3600000",), _TOKEN),
    "delegation.token.expiry.time.ms": (("86400000",), _TOKEN),
    "delegation.token.max.lifetime.ms": (("604800000",), _TOKEN),
    "delegation.token.secret.key": ((), _TOKEN),
    "max.connection.creation.rate": (("2147483647",), _QUOTA),
    "max.connections.per.ip.overrides": ((), _QUOTA),
    "principal.builder.class": (
        ("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",),
        _PRINCIPAL,
    ),
    "sasl.client.callback.handler.class": ((), _SASL),
    "sasl.enabled.mechanisms": (("GSSAPI",), _SASL),
    "sasl.jaas.config": ((), _SASL),
    "sasl.kerberos.kinit.cmd": (("/usr/bin/kinit",), _SASL),
    "sasl.kerberos.min.time.before.relogin": (("60000",), _SASL),
    "sasl.kerberos.principal.to.local.rules": (("DEFAULT",), _SASL),
    "sasl.kerberos.service.name": ((), _SASL),
    "sasl.kerberos.ticket.renew.jitter": (("0.05",), _SASL),
    "sasl.kerberos.ticket.renew.window.factor": (("0.8",), _SASL),
    "sasl.login.callback.handler.class": ((), _SASL),
    "sasl.login.class": ((), _SASL),
    "sasl.login.connect.timeout.ms": ((), _SASL),
    "sasl.login.read.timeout.ms": ((), _SASL),
    "sasl.login.refresh.buffer.seconds": (("300",), _SASL),
    "sasl.login.refresh.min.period.seconds": (("60",), _SASL),
    "sasl.login.refresh.window.factor": (("0.8",), _SASL),
    "sasl.login.refresh.window.jitter": (("0.05",), _SASL),
    "sasl.login.retry.backoff.max.ms": (("10000",), _SASL),
    "sasl.login.retry.backoff.ms": (("100",), _SASL),
    "sasl.mechanism.controller.protocol": (("GSSAPI",), _SASL),
    "sasl.mechanism.inter.broker.protocol": (("GSSAPI",), _SASL),
    "sasl.oauthbearer.assertion.algorithm": (("RS256",), _SASL),
    "sasl.oauthbearer.assertion.claim.aud": ((), _SASL),
    "sasl.oauthbearer.assertion.claim.exp.seconds": (("300",), _SASL),
    "sasl.oauthbearer.assertion.claim.iss": ((), _SASL),
    "sasl.oauthbearer.assertion.claim.jti.include": (("false",), _SASL),
    "sasl.oauthbearer.assertion.claim.nbf.seconds": (("60",), _SASL),
    "sasl.oauthbearer.assertion.claim.sub": ((), _SASL),
    "sasl.oauthbearer.assertion.file": ((), _SASL),
    "sasl.oauthbearer.assertion.private.key.file": ((), _SASL),
    "sasl.oauthbearer.assertion.private.key.passphrase": ((), _SASL),
    "sasl.oauthbearer.assertion.template.file": ((), _SASL),
    "sasl.oauthbearer.client.credentials.client.id": ((), _SASL),
    "sasl.oauthbearer.client.credentials.client.secret": ((), _SASL),
    "sasl.oauthbearer.clock.skew.seconds": (("30",), _SASL),
    "sasl.oauthbearer.expected.audience": ((), _SASL),
    "sasl.oauthbearer.expected.issuer": ((), _SASL),
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": (("3600000",), _SASL),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": (("10000",), _SASL),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": (("100",), _SASL),
    "sasl.oauthbearer.jwks.endpoint.url": ((), _SASL),
    "sasl.oauthbearer.jwt.retriever.class": (
        ("org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",),
        _SASL,
    ),
    "sasl.oauthbearer.jwt.validator.class": (
        ("org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",),
        _SASL,
    ),
    "sasl.oauthbearer.scope": ((), _SASL),
    "sasl.oauthbearer.scope.claim.name": (("scope",), _SASL),
    "sasl.oauthbearer.sub.claim.name": (("sub",), _SASL),
    "sasl.oauthbearer.token.endpoint.url": ((), _SASL),
    "sasl.server.callback.handler.class": ((), _SASL),
    "sasl.server.max.receive.size": (("524288",), _SASL),
    "security.inter.broker.protocol": (("PLAINTEXT",), _BETWEEN),
    "security.providers": ((), "plug-ins of the JVM are not loaded, and TLS is not served"),
    "ssl.allow.dn.changes": (("false",), _TLS),
    "ssl.allow.san.changes": (("false",), _TLS),
    "ssl.cipher.suites": ((), _TLS),
    "ssl.client.auth": (("none",), _TLS),
    "ssl.enabled.protocols": (("TLSv1.2,TLSv1.3",), _TLS),
    "ssl.endpoint.identification.algorithm": (("https",), _TLS),
    "ssl.engine.factory.class": ((), _TLS),
    "ssl.key.password": ((), _TLS),
    "ssl.keymanager.algorithm": (("SunX509",), _TLS),
    "ssl.keystore.certificate.chain": ((), _TLS),
    "ssl.keystore.key": ((), _TLS),
    "ssl.keystore.location": ((), _TLS),
    "ssl.keystore.password": ((), _TLS),
    "ssl.keystore.type": (("JKS",), _TLS),
    "ssl.principal.mapping.rules": (("DEFAULT",), _TLS),
    "ssl.protocol": (("TLSv1.3",), _TLS),
    "ssl.provider": ((), _TLS),
    "ssl.secure.random.implementation": ((), _TLS),
    "ssl.trustmanager.algorithm": (("PKIX",), _TLS),
    "ssl.truststore.certificates": ((), _TLS),
    "ssl.truststore.location": ((), _TLS),
    "ssl.truststore.password": ((), _TLS),
    "ssl.truststore.type": (("JKS",), _TLS),
    "super.users": ((), _AUTHORIZER),
}

# Of one listener, these are limits too, which are kept over all of them only.
LISTENER_LIMITS = ("max.connections", "max.connections.per.ip")
_LISTENER = re.compile(r"listener\.name\.(?P<listener>[^.]+)\.(?P<name>.+)")
# Of a mechanism that somebody else has made, only names that are a mechanism's.
_MECHANISM = re.compile(
    r"(?:(?:plain|gssapi|oauthbearer|scram-sha-(?:256|512))\.|[^.]+\.(?=sasl\.|connections\.max\.))"
    r"(?P<name>.+)"
)
# What may be printed of the value of any other is nothing: it may be somebody's password.
_SHOWN = frozenset(
    name
    for name in _OPEN_VALUES
    if not re.search(r"\b(?:password|key|jaas|secret|passphrase|chain|certificates)\b", name)
)
HIDDEN = "[hidden]"

SECURITY_NAMES = tuple(_OPEN_VALUES)


def open_value(name: str) -> str:
    """The value of a security setting that closes nothing; empty where that is to leave it out."""
    return "".join(_OPEN_VALUES[name][0])


def reason_of(name: str) -> str:
    """Why any other value of a security setting is refused."""
    return _OPEN_VALUES[name][1]


def security_refusal(
    name: str, value: str, *, unserved_listeners: frozenset[str] = frozenset()
) -> ConfigError | None:
    """Why ``value`` is refused, or None where it closes nothing or ``name`` is no such setting.

    Of ``unserved_listeners``, in capitals, nothing is refused: nobody can connect to them.
    """
    base = split_door(name)[1]
    if found := _LISTENER.fullmatch(name):
        if found["listener"].upper() in unserved_listeners:
            return None
        if base in LISTENER_LIMITS and value.strip():
            rule = f"a limit of one listener is not kept here; {base} is"
            return ConfigError(name, value, rule)
    if base.startswith("config.providers."):
        base = "config.providers"
    if base not in _OPEN_VALUES:
        return None
    accepted, reason = _OPEN_VALUES[base]
    text = re.sub(r"\s*,\s*", ",", value.strip())
    if not text or text.lower() in (each.lower() for each in accepted):
        return None
    instead = f", or set it to {accepted[0]}" if accepted else ""
    rule = f"{reason}; leave the setting out{instead}"
    return ConfigError(name, value if base in _SHOWN else HIDDEN, rule)


def is_security_name(name: str) -> bool:
    """Whether Kafka 4.3.1 has a security setting of this name, of all listeners or of one."""
    base = split_door(name)[1]
    return base in _OPEN_VALUES or base.startswith("config.providers.")


def split_door(name: str) -> tuple[str, str]:
    """What says of which listener and mechanism ``name`` is, which may be empty, and the rest."""
    base = name
    for pattern in (_LISTENER, _MECHANISM):
        if found := pattern.fullmatch(base):
            base = found["name"]
    return name.removesuffix(base), base


def security_refusals(
    properties: Mapping[str, str], *, unserved_listeners: frozenset[str] = frozenset()
) -> list[ConfigError]:
    """Each of ``properties`` that would close a door here if it were honoured."""
    refusals = (
        security_refusal(name, value, unserved_listeners=unserved_listeners)
        for name, value in properties.items()
    )
    return [refusal for refusal in refusals if refusal is not None]
