"""The package of errors: one place to import them from, and one name for each."""

import traceback
from importlib import import_module
from pkgutil import iter_modules

import pytest

from stratalog import errors

MODULES = [f"{errors.__name__}.{each.name}" for each in iter_modules(errors.__path__)]


def public_classes(module: str) -> dict[str, type]:
    found = vars(import_module(module)).items()
    return {name: each for name, each in found if isinstance(each, type) and name[0] != "_"}


@pytest.mark.parametrize("module", MODULES)
def test_whatever_a_module_has_is_imported_from_the_package(module: str) -> None:
    found = public_classes(module)

    assert found
    assert found.items() <= public_classes(errors.__name__).items()


def test_a_traceback_calls_an_error_what_one_imports_it_by() -> None:
    for name, each in public_classes(errors.__name__).items():
        assert f"{each.__module__}.{each.__qualname__}" == f"stratalog.errors.{name}"
    told = traceback.format_exception_only(errors.UnknownTopicError("orders"))
    assert told == ["stratalog.errors.UnknownTopicError: there is no topic 'orders'\n"]
