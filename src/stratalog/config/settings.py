"""What a setting is: its kind, its default, the rule its values obey, and how text becomes one.

A level of configuration is a frozen dataclass whose fields are made by ``setting(...)``. The name
of a setting is the field's name with dots for underscores, which is Kafka's own spelling. Text is
read as Kafka reads it: blanks around a value do not count, numbers are Java's, lists are parted by
commas. A value outside its rule is refused with its name, the value and the rule, never repaired.
"""

import enum
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from stratalog.errors import ConfigError, ConfigErrors

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEXADECIMAL = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
# What Java's String.trim() takes off: everything up to and including the space.
_BLANKS = "".join(map(chr, range(0x21)))


class Kind(enum.Enum):
    """The types of Kafka's configuration that have a meaning here."""

    BOOLEAN = "boolean"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    LIST = "list"


_BITS = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}
LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of one level. Immutable, and made only by ``setting`` and ``settings_of``."""

    name: str
    kind: Kind
    default: Any
    at_least: float | None
    at_most: float | None
    or_equal: int | None  # one value that is allowed outside the bounds
    one_of: tuple[str, ...]  # of a list: what each element may be
    matches: str | None  # of a list: the pattern of its text
    may_be_empty: bool
    keeps_duplicates: bool
    internal: bool
    ours: bool
    synonyms: tuple[str, ...]
    doc: str

    def parse(self, text: str) -> Any:
        """The value that ``text`` stands for, checked; a refusal shows the text as it was."""
        trimmed = text.strip(_BLANKS)
        value = self._value(trimmed)
        try:
            # None is how a value says "not set", which no text says.
            return self.check("" if value is None else value)
        except ConfigError:
            raise self._refusal(trimmed) from None

    def _value(self, text: str) -> Any:
        """``text`` as its kind, or None if it is not of that kind."""
        if self.kind is Kind.STRING:
            return text
        if self.kind is Kind.LIST:
            return tuple(part.strip(_BLANKS) for part in text.split(",")) if text else ()
        if self.kind is Kind.BOOLEAN:
            return {"true": True, "false": False}.get(text.lower())
        return _double(text) if self.kind is Kind.DOUBLE else _whole_number(text)

    def check(self, value: Any) -> Any:
        """``value`` as it is kept, or ConfigError. None stands for "not set" where that exists."""
        if value is None and self.default is None:
            return None
        if self.kind is Kind.LIST:
            return self._check_list(value)
        if self.kind is Kind.STRING:
            allowed = isinstance(value, str) and (not self.one_of or value in self.one_of)
        elif self.kind is Kind.BOOLEAN:
            allowed = isinstance(value, bool)
        else:
            allowed = self._is_number_allowed(value)
        if not allowed:
            raise self._refusal(value)
        return float(value) if self.kind is Kind.DOUBLE else value

    def _is_number_allowed(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        if self.kind is Kind.DOUBLE:
            if math.isnan(value):
                return False
        elif (
            not isinstance(value, int) or not -(limit := 1 << _BITS[self.kind] - 1) <= value < limit
        ):
            return False
        if self.or_equal is not None and value == self.or_equal:
            return True
        if self.at_least is not None and value < self.at_least:
            return False
        return self.at_most is None or value <= self.at_most

    def _check_list(self, value: Any) -> tuple[str, ...]:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise self._refusal(value)
        elements = tuple(value)
        if not all(isinstance(element, str) and element for element in elements):
            raise self._refusal(",".join(map(str, elements)))
        if not self.keeps_duplicates:
            elements = tuple(dict.fromkeys(elements))
        text = ",".join(elements)
        if not elements and not self.may_be_empty:
            raise self._refusal(text)
        if self.one_of and not all(element in self.one_of for element in elements):
            raise self._refusal(text)
        if self.matches is not None and not re.fullmatch(self.matches, text):
            raise self._refusal(text)
        return elements

    def text(self, value: Any) -> str:
        """``value`` spelt as Kafka prints it; ``parse`` reads it back."""
        if value is None:
            return ""
        if self.kind is Kind.BOOLEAN:
            return "true" if value else "false"
        if self.kind is Kind.LIST:
            return ",".join(value)
        return _java_double(value) if self.kind is Kind.DOUBLE else str(value)

    @property
    def rule(self) -> str:
        """What a value must be, as the end of a sentence that starts with "must be"."""
        if self.kind is Kind.BOOLEAN:
            return "true or false"
        if self.kind is Kind.STRING:
            return f"one of {', '.join(self.one_of)}" if self.one_of else "text"
        if self.kind is Kind.LIST:
            return self._list_rule()
        return self._number_rule()

    def _list_rule(self) -> str:
        if self.matches is not None:
            return "* or pairs partition:broker parted by commas"
        what = f"of {', '.join(self.one_of)}" if self.one_of else "of names"
        return f"a {'' if self.may_be_empty else 'non-empty '}list {what}, parted by commas"

    def _number_rule(self) -> str:
        low, high = self.at_least, self.at_most
        if self.kind is Kind.DOUBLE:
            noun = "a number"
        else:
            noun = "a whole number"
            limit = 1 << _BITS[self.kind] - 1
            high = limit - 1 if high is None else high
            low = -limit if low is None else low
        if low is not None and high is not None:
            noun += f" from {low} to {high}"
        elif low is not None:
            noun += f" of at least {low}"
        return noun if self.or_equal is None else f"{noun}, or {self.or_equal}"

    def _refusal(self, value: object) -> ConfigError:
        return ConfigError(self.name, value, f"must be {self.rule}")


def setting(
    default: Any,
    *,
    doc: str,
    kind: Kind | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    or_equal: int | None = None,
    one_of: tuple[str, ...] = (),
    matches: str | None = None,
    may_be_empty: bool = False,
    keeps_duplicates: bool = False,
    internal: bool = False,
    ours: bool = False,
    synonyms: tuple[str, ...] = (),
) -> Any:
    """A field of a level. ``kind`` follows from the default, but for long, short and None.

    ``synonyms`` are the broker settings that give a topic its default, the first that is set wins.
    """
    rest = {name: value for name, value in locals().items() if name not in ("default", "kind")}
    settled = _kind_of(default) if kind is None else kind
    return field(default=default, metadata={"setting": {"kind": settled, **rest}})


def _kind_of(default: object) -> Kind:
    kinds = {bool: Kind.BOOLEAN, int: Kind.INT, float: Kind.DOUBLE, str: Kind.STRING}
    return Kind.LIST if isinstance(default, tuple) else kinds[type(default)]


_levels: dict[type, dict[str, Setting]] = {}


def settings_of(level: type) -> Mapping[str, Setting]:
    """The settings of a level by their dotted names, in the order of their fields."""
    if level in _levels:
        return _levels[level]
    found = {}
    for each in fields(level):
        if facts := each.metadata.get("setting"):
            name = each.name.replace("_", ".")
            found[name] = Setting(name=name, default=each.default, **facts)
    return _levels.setdefault(level, found)


def check_settings(config: object) -> None:
    """Refuse what is outside its rule and keep lists as tuples; for ``__post_init__``."""
    for name, each in settings_of(type(config)).items():
        attribute = name.replace(".", "_")
        given = getattr(config, attribute)
        kept = each.check(given)
        if kept is not given:
            object.__setattr__(config, attribute, kept)


def parse_settings(level: type, properties: Mapping[str, str]) -> dict[str, Any]:
    """Keyword arguments for ``level`` from dotted names and text; each name must be a setting."""
    known = settings_of(level)
    values, errors = {}, []
    for name, text in properties.items():
        try:
            values[name.replace(".", "_")] = known[name].parse(text)
        except ConfigError as error:
            errors.append(error)
    raise_together(errors)
    return values


def raise_together(errors: Sequence[ConfigError]) -> None:
    """Raise all of ``errors`` as one; nothing if there are none."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ConfigErrors(*errors)


def unknown_name(
    name: str, value: object, *, what: str, known: Iterable[str], removed: Mapping[str, str]
) -> ConfigError:
    """Why a name is refused: gone since a release of Kafka, or perhaps only misspelt."""
    if since := removed.get(name):
        return ConfigError(name, value, f"was removed in Kafka {since}")
    import difflib  # slow to import, and only needed here

    rule = f"there is no such {what} setting"
    if close := difflib.get_close_matches(name, list(known), n=1, cutoff=0.7):
        rule += f"; did you mean {close[0]}?"
    return ConfigError(name, value, rule)


def _whole_number(text: str) -> int | None:
    # Python reads no more than 4300 digits, and no kind has more than 19.
    return int(text) if _WHOLE_NUMBER.fullmatch(text) and len(text) < 100 else None


def _double(text: str) -> float | None:
    if (sign := text.lstrip("+-")) in ("NaN", "Infinity") and len(text) - len(sign) <= 1:
        return float(text)
    if found := _DECIMAL.fullmatch(text):
        return float(found[1])
    if found := _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(found[1])
        except OverflowError:
            return math.inf
    return None


def _java_double(value: float) -> str:
    """Double.toString: plain from 1e-3 up to 1e7, else one digit, the rest, and E."""
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # slow to import, and only needed here

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    mantissa = "".join(map(str, digits))
    scale = exponent + len(mantissa) - 1
    return f"{'-' if sign else ''}{mantissa[0]}.{mantissa[1:] or '0'}E{scale}"
