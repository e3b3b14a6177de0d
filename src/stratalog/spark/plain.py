"""Errors as Spark shows them: our sentence first, and not behind a page of our own calls.

Spark prints the traceback of whatever a data source raises. What we raise on purpose says all there
is to say, so its traceback is cut to the call that Spark made.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from stratalog.errors import StratalogError

P = ParamSpec("P")
R = TypeVar("R")


def plainly(method: Callable[P, R]) -> Callable[P, R]:
    """For methods that Spark calls."""

    @wraps(method)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except StratalogError as error:
            raise error.with_traceback(None) from None

    return told
