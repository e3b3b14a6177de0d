"""Why the demo did not come to its end."""

from stratalog.errors import StratalogError


class DemoError(StratalogError):
    """Something that it needs is missing, or a part of it did not do what it should."""
