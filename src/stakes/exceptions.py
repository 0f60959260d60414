"""The exception that says: this input cannot be used."""


class StakesError(ValueError):
    """An input that is refused; the message says what was wanted, what came and what to do, and nothing was changed.

    Arguments of a wrong type raise `TypeError`, and results beyond the range of numbers `FloatingPointError`, as
    elsewhere in Python. Any other exception is a bug in stakes, or comes from your own model, loss or belief.

    Examples:
        >>> from stakes import Pinball
        >>> from stakes.exceptions import StakesError
        >>> try:
        ...     Pinball(tau=1.5)
        ... except StakesError as error:
        ...     print(error)
        tau must be a number between 0 and 1, the level of the quantile; got 1.5
    """
