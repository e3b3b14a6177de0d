"""``stratalog topic adopt``: say what the configs of a topic are whose logs were found.

A topic of an adopted directory whose configs nobody knew is served, but nothing is removed from
it. Only a person can say what they are; the broker is told over its admin port, by whoever can
read the token in the log directory (``.stratalog-owner``, readable by the broker's user only).
"""

import json
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

import typer

from stratalog.cli.client import ClientError
from stratalog.cli.client_names import NameArgument, OneTopicOption
from stratalog.cli.failures import UsageError
from stratalog.cli.output import OutputFormat, OutputOption, write_json, write_line
from stratalog.cli.values import pairs

_SECONDS = 30
_ANSWER_BYTES_MAX = 1 << 20


def adopt(
    name: NameArgument = None,
    topic: OneTopicOption = None,
    configs: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            metavar="NAME=VALUE",
            help="A config of the topic; may be repeated. Others count as they are known, or by "
            "default.",
        ),
    ] = None,
    log_dir: Annotated[
        str | None,
        typer.Option("--log-dir", metavar="DIR", help="A log directory of the broker to be told."),
    ] = None,
    admin_url: Annotated[
        str | None,
        typer.Option("--admin-url", metavar="URL", help="The broker's admin port instead."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="STRATALOG_TOKEN", help="The token for --admin-url."),
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Give the configs of a topic that is held without them.

    Until they are known, nothing of the topic is deleted or compacted. Those that are known, as
    'stratalog config describe' shows them, stay unless they are given anew.

    \b
    Example:
      stratalog topic adopt orders --log-dir data --config retention.ms=604800000
    """
    if (name is None) == (topic is None):
        raise UsageError("Which topic? Give its name as the argument, or with --topic.")
    name = name or topic or ""
    url, secret = _admin(log_dir, admin_url, token)
    chosen = {each: value.strip() for each, value in pairs(configs, "--config").items()}
    path = f"/v1/topics/{quote(name, safe='')}/adopt"
    answer = _post(url, path, secret, {"configs": chosen}, what=f"Adopting topic {name}")
    if not isinstance(answer, dict) or not isinstance(answer.get("configs"), dict):
        answer = {"topic": name, "configs": chosen}
    if output is OutputFormat.JSON:
        write_json(answer)
        return
    overrides = answer["configs"]
    told = ",".join(f"{each}={value}" for each, value in overrides.items()) or "the defaults"
    write_line(f"Topic {name} is adopted with {told}. Retention and cleaning go on.")


def _admin(log_dir: str | None, admin_url: str | None, token: str | None) -> tuple[str, str]:
    if (log_dir is None) == (admin_url is None):
        raise UsageError(
            "Which broker? Give one of its log directories with --log-dir, or both "
            "--admin-url and --token."
        )
    if admin_url is not None:
        if not token:
            raise UsageError("--admin-url needs --token: the broker refuses changes without it.")
        return admin_url, token
    from stratalog.storage.owner_file import read_owner

    assert log_dir is not None
    owner = read_owner(log_dir)
    return owner.admin, owner.token


def _post(url: str, path: str, token: str, body: dict[str, Any], *, what: str) -> Any:
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{url} is not the address of an admin port.")
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    channel = kind(parts.hostname, parts.port, timeout=_SECONDS)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        channel.request("POST", path, json.dumps(body), headers)
        response = channel.getresponse()
        raw = response.read(_ANSWER_BYTES_MAX)
    except (OSError, HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ClientError(what, "UNREACHABLE", f"no answer from {url}: {reason}") from None
    finally:
        channel.close()
    try:
        answer = json.loads(raw or b"null")
    except ValueError:
        answer = raw.decode("utf-8", "replace")
    if response.status >= 300:
        raise ClientError(what, f"HTTP {response.status}", _reason(answer, response.reason))
    return answer


def _reason(answer: Any, fallback: str) -> str:
    if isinstance(answer, dict):
        for name in ("error", "message", "detail"):
            if isinstance(answer.get(name), str):
                return str(answer[name])
    return answer if isinstance(answer, str) and answer else fallback
