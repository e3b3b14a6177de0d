"""The text of a decoded message: JSON as Kafka's dump tool prints it."""

import math
import re
from decimal import Decimal
from typing import Any

_ESCAPED = re.compile('[\x00-\x1f"\\\\]')
_SHORT_ESCAPES = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}


def to_json(value: Any) -> str:
    """JSON as Kafka prints it: no blanks, only what must be escaped, Java's numbers."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{to_json(k)}:{to_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(to_json, value)) + "]"
    if isinstance(value, str):
        return '"' + _ESCAPED.sub(_escape, value) + '"'
    if isinstance(value, float):
        return java_double(value) if math.isfinite(value) else f'"{java_double(value)}"'
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escape(found: re.Match[str]) -> str:
    short = _SHORT_ESCAPES.get(found[0])
    return f"\\u{ord(found[0]):04X}" if short is None else f"\\{short}"


def java_double(value: float) -> str:
    """``Double.toString``: the shortest digits, with an exponent below 0.001 and from 10^7 on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "-Infinity" if value < 0 else "Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    number = Decimal(repr(value))
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{number.adjusted()}"
