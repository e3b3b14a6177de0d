"""What can go wrong with a job before Spark has anything to say about it."""

from stratalog.errors import StratalogError


class JobError(StratalogError):
    """A job that cannot be done as it was asked for."""


class JobOptionError(JobError):
    """An argument of a job that nobody can act on."""

    def __init__(self, name: str, value: object, reason: str) -> None:
        super().__init__(name, value, reason)
        self.name = name
        self.value = value
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.name} is {self.value!r}: {self.reason}"


class FormatMissingError(JobError):
    """A table format whose jars the session does not have."""

    def __init__(self, format_name: str) -> None:
        super().__init__(format_name)
        self.format_name = format_name

    def __str__(self) -> str:
        return (
            f"this Spark session cannot write {self.format_name}: its jars are not there. Start "
            f"it with them, by spark.jars.packages or --packages, as the pages of "
            f"{self.format_name} say for your version of Spark"
        )
