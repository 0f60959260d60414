"""The one exception that says: this input cannot be used."""


class StakesError(ValueError):
    """An input that is refused. The message says what was wanted, what came and what to do; nothing was changed.

    Arguments of a wrong type raise `TypeError`, and results beyond the range of numbers `FloatingPointError`, as
    elsewhere in Python. Any other exception is a bug in stakes, or comes from your own model, loss or belief.

    Examples:
        >>> from stakes import SquaredError, StakesError
        >>> try:
        ...     SquaredError(weight=[1.0, 2.0])
        ... except (StakesError, TypeError) as error:
        ...     print("refused")
        refused
    """
