"""Arguments that all jobs have, checked before Spark is asked for anything."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from stratalog.spark.api import option_text
from stratalog.spark.jobs.errors import JobOptionError


def check_path(name: str, value: object) -> str:
    """A path as text; an empty one would be the working directory."""
    if not isinstance(value, str | os.PathLike):
        raise JobOptionError(name, value, "expected a path")
    path = os.fspath(value)
    if not isinstance(path, str) or not path.strip():
        raise JobOptionError(name, value, "the path is empty" if not path else "expected a path")
    return path


def check_names(name: str, value: object) -> tuple[str, ...]:
    """One name, or several; a text is one and not its letters."""
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Sequence) or isinstance(names, bytes):
        raise JobOptionError(name, value, "expected a name, or a list of names")
    if not names or not all(isinstance(each, str) and each.strip() for each in names):
        raise JobOptionError(name, value, "every name has to be a text, and not an empty one")
    return tuple(names)


def check_options(name: str, value: object, said_otherwise: Mapping[str, str]) -> dict[str, str]:
    """Options of a source or target as texts. ``said_otherwise``: by lower-case name, options that
    are arguments here, and would win over them without a word."""
    if not isinstance(value, Mapping):
        raise JobOptionError(name, value, "expected options by their names")
    for each, text in value.items():
        if not isinstance(each, str):
            raise JobOptionError(name, value, f"the name {each!r} is no text")
        if (instead := said_otherwise.get(each.lower())) is not None:
            raise JobOptionError(f"the option {each}", text, f"give it as {instead}")
    return {each: option_text(found) for each, found in value.items()}


@contextmanager
def understood(name: str, value: object) -> Iterator[None]:
    """Spark's refusal of an expression, as a sentence about the argument it was given as."""
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:  # a syntax error is one too
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise JobOptionError(name, value, said[0].rstrip(";")) from error
