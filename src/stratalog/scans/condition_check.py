"""Whether a condition can be one at all, before it is asked what it says.

A condition that prunes nothing may still be right, and is left to a filter of rows. One that no
filter could understand either is refused here, with the word that is wrong: without that, a scan
of a mistyped column would be planned as one of everything. Where Spark reads the condition too,
Spark refuses, since it knows its session's variables and functions.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

from stratalog.scans.columns import SCAN_COLUMNS
from stratalog.scans.errors import ScanOptionError

_ARITHMETIC = (
    *("Add", "Sub", "Mul", "Div", "IntDiv", "Mod", "DPipe", "Neg"),
    *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"),
    *("BitwiseLeftShift", "BitwiseRightShift"),
)
_BOOLEAN_COLUMNS = frozenset(("istransactional",))
_SHOWN_CHARACTERS = 60


def check_condition(sql: str, columns: Sequence[str] = SCAN_COLUMNS) -> None:
    """Refuse what is no condition in SQL, or speaks of a column that rows do not have."""
    if "\\" in sql or "${" in sql:
        return  # how these are read is a setting of Spark's session
    try:
        root = _parsed(sql)
        if root is None:
            raise _refused(sql, "there is no condition in it")
        _check_columns(sql, root, columns)
        for each in _sides(root):
            _check_is_condition(sql, each)
    except RecursionError:
        return


def _parsed(sql: str) -> Any:
    import sqlglot
    from sqlglot.errors import ParseError, SqlglotError

    try:
        statements = [each for each in sqlglot.parse(sql, dialect="spark") if each is not None]
    except ParseError as error:
        raise _refused(sql, f"it is no condition in SQL: {_where_it_ends(error)}") from None
    except SqlglotError:
        raise _refused(sql, "it is no condition in SQL: a quote in it is not closed") from None
    if len(statements) > 1:
        raise _refused(sql, f"it is {len(statements)} statements, and not one condition")
    return statements[0] if statements else None


def _where_it_ends(error: Any) -> str:
    """Which word the parser could not go on from."""
    found = error.errors[0] if error.errors else {}
    word, place = found.get("highlight") or "", f"column {found.get('col', 1)}"
    said = found.get("description", "")
    missing = re.fullmatch(r"Expecting (\S+)", said)
    if missing:
        return f"{missing[1]!r} is missing after {word!r} ({place})"
    if said.startswith("Required keyword"):
        return f"something is missing after {word!r} ({place})"
    return f"{word!r} is not expected there ({place})"


def _check_columns(sql: str, root: Any, columns: Sequence[str]) -> None:
    from sqlglot import expressions as exp

    by_lower = {name.lower(): name for name in columns}
    for column in root.find_all(exp.Column):
        name = str(column.parts[0].name)
        if name.lower() in by_lower or column.find_ancestor(exp.Query) is not None:
            continue
        close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
        hint = f"did you mean {by_lower[close[0]]!r}?" if close else f"there are {_list(columns)}"
        raise _refused(sql, f"{name!r} is no column; {hint}")


def _list(columns: Sequence[str]) -> str:
    return f"{', '.join(columns[:-1])} and {columns[-1]}"


def _sides(root: Any) -> list[Any]:
    """What AND, OR and NOT put together."""
    from sqlglot import expressions as exp

    found, waiting = [], [root]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (exp.Paren, exp.Not)):
            waiting.append(each.this)
        elif isinstance(each, (exp.And, exp.Or)):
            waiting += [each.expression, each.this]
        else:
            found.append(each)
    return found


def _check_is_condition(sql: str, node: Any) -> None:
    from sqlglot import expressions as exp

    if isinstance(node, exp.Alias):
        raise _refused(sql, f"it is no condition in SQL: {node.alias!r} is not expected there")
    is_column = isinstance(node, exp.Column)
    is_true_or_false = is_column and (
        len(node.parts) > 1 or str(node.name).lower() in _BOOLEAN_COLUMNS
    )
    is_value = isinstance(node, (exp.Column, exp.Literal)) or type(node).__name__ in _ARITHMETIC
    if not isinstance(node, exp.Condition) or (is_value and not is_true_or_false):
        shown = node.sql()[:_SHOWN_CHARACTERS]
        raise _refused(sql, f"{shown!r} is no condition: nothing in it is true or false")


def _refused(sql: str, reason: str) -> ScanOptionError:
    return ScanOptionError("where", sql, reason)
