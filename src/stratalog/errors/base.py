"""What every error of stratalog is, and the one that every layer may raise: a wrong setting."""


class StratalogError(Exception):
    """Anything stratalog reports to a person or a client."""


class ConfigError(StratalogError):
    """A setting that does not exist, or a value outside what it allows."""

    def __init__(self, name: str, value: object, rule: str) -> None:
        super().__init__(name, value, rule)
        self.name = name
        self.value = value
        self.rule = rule

    def __str__(self) -> str:
        return f"{self.name}={self.value}: {self.rule}"


class ConfigErrors(ConfigError):
    """Several settings refused together. ``name``, ``value`` and ``rule`` are the first one's."""

    def __init__(self, *errors: ConfigError) -> None:
        first = errors[0]
        super().__init__(first.name, first.value, first.rule)
        self.args = errors
        self.errors = errors

    def __str__(self) -> str:
        lines = "".join(f"\n  {error}." for error in self.errors)
        return f"{len(self.errors)} settings are refused:{lines}"
