"""A belief of one's own that labels can be chosen from together: tests whose outcomes tell which hypothesis is true."""

from dataclasses import dataclass, replace

import numpy as np

from stakes import CostMatrix, select
from stakes.beliefs import Reference
from stakes.losses import Classes
from stakes.testing import check_belief


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """K hypotheses: under each, tests have J outcomes and contexts C classes, independent of one another."""

    prior: np.ndarray  # [K]
    outcomes: np.ndarray  # [N, J, K]: p(y | x_n, k), of any number of outcomes
    classes: np.ndarray  # [M, K, C]: p(z | c_m, k)

    n_candidates = property(lambda self: self.outcomes.shape[0])
    n_contexts = property(lambda self: self.classes.shape[0])
    domain = property(lambda self: Classes(self.classes.shape[2]))
    like = property(lambda self: self.classes)

    def n_cells(self, integrand):
        """J: one cell for each outcome."""
        return self.outcomes.shape[1]

    def reference(self, integrand):
        """No point to measure from, as these are classes, and no scale taken out."""
        return Reference(point=None, log_scale=np.zeros(self.n_contexts))

    def moments(self, integrand, reference):
        """[M, D]: sum_k p(k) E[S(z) | c, k]."""
        return self.prior @ self.expected(integrand)

    def split_moments(self, integrand, reference):
        """[N, M, J, D]: sum_k p(k) p(y | x, k) E[S(z) | c, k]."""
        return (self.prior * self.outcomes)[:, None, :, :] @ self.expected(integrand)

    def take(self, candidates, contexts):
        """A block of tests and contexts."""
        return replace(self, outcomes=self.outcomes[candidates], classes=self.classes[contexts])

    def start_batch(self, candidates):
        """The same hypotheses, where each test comes together with those of the batch: J^(t + 1) outcomes."""
        together = np.ones((1, len(self.prior)))  # [Q, K]: of all outcomes of the batch
        for n in candidates:
            together = (together[:, None, :] * self.outcomes[n]).reshape(-1, len(self.prior))
        joint = together[None, :, None, :] * self.outcomes[:, None, :, :]  # [N, Q, J, K]
        return replace(self, outcomes=joint.reshape(self.n_candidates, -1, len(self.prior)))

    def expected(self, integrand):
        """[M, K, D]: E[S(z) | c, k], from the statistics of each class."""
        return self.classes @ integrand.statistics(np.eye(self.classes.shape[2])[None, :, :], None)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    outcomes = np.swapaxes(rng.dirichlet([0.3, 0.3, 0.3], size=(8, 5)), 1, 2)  # eight tests with three outcomes
    belief = Hypotheses(np.full(5, 0.2), outcomes, rng.dirichlet([0.3, 0.3], size=(20, 5)))
    check_belief(belief)
    batch = select(CostMatrix([[0, 1], [5, 0]]), belief, n=3)
    print("tests to run together:", batch.indices, "worth", batch.joint_reduction.round(4))
