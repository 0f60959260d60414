"""The exception that says: this input cannot be used, and the warning that says: this result is not accurate."""


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


class AccuracyWarning(UserWarning):
    """A result is less accurate than 1e-6; the message says by how much and what to do.

    Args:
        name: Of the loss.
        relative_error: A bound on the relative error of expected reductions and scores.
        advice: What to do.

    Attributes:
        relative_error: The bound.

    Examples:
        A weight that wiggles more finely than a thousandth of a standard deviation:

        >>> import warnings
        >>> import numpy as np
        >>> from stakes import AccuracyWarning, GaussianBelief, SquaredError, score
        >>> belief = GaussianBelief(mean=[0.0], variance=[1.0], candidate_variance=[1.0], covariance=[[0.7]])
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     found = score(SquaredError(lambda z: 1.0 + 0.5 * np.sin(1e6 * z)), belief)
        >>> caught[0].category is AccuracyWarning, caught[0].message.relative_error > 1e-6
        (True, True)
    """

    def __init__(
        self,
        name: str,
        relative_error: float,
        advice: str = "If its weight or its costs jump or kink, declare where: breakpoints=(...). A loss of your own "
        "whose act is one of finitely many actions declares finite_actions = True.",
    ) -> None:
        super().__init__(f"reductions of {name} are accurate to about {relative_error:.0e} only. {advice}")
        self.relative_error = relative_error
