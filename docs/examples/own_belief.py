"""A belief of one's own: a table of the joint probabilities of a candidate's label and a context's class."""

from dataclasses import dataclass

import numpy as np

from stakes import LogLoss, score
from stakes.beliefs import Reference
from stakes.losses import Classes
from stakes.testing import check_belief


@dataclass(frozen=True, eq=False)
class JointTable:
    """p(y, z | x_n, c_m) for any finite list of labels y and C classes z."""

    joint: np.ndarray  # [N, M, J, C]
    target: np.ndarray  # [M, C]: p(z | c_m), the sum of `joint` over y for every candidate

    n_candidates = property(lambda self: self.joint.shape[0])
    n_contexts = property(lambda self: self.target.shape[0])
    domain = property(lambda self: Classes(self.target.shape[1]))
    like = property(lambda self: self.target)

    def n_cells(self, integrand):
        """J: one cell for each label."""
        return self.joint.shape[2]

    def reference(self, integrand):
        """No point to measure from, as these are classes, and no scale taken out."""
        return Reference(point=None, log_scale=np.zeros(self.n_contexts))

    def moments(self, integrand, reference):
        """[M, D]: sum_z p(z | c) S(z)."""
        return (self.target[:, None, :] @ self.table(integrand, reference))[:, 0, :]

    def split_moments(self, integrand, reference):
        """[N, M, J, D]: sum_z p(y, z | x, c) S(z); nothing is divided by p(y)."""
        return self.joint @ self.table(integrand, reference)

    def take(self, candidates, contexts):
        """The table of a block."""
        return JointTable(self.joint[candidates, contexts], self.target[contexts])

    def table(self, integrand, reference):
        """[1 or M, C, D]: the statistics of each class, written as its indicator."""
        return integrand.statistics(np.eye(self.target.shape[1])[None, :, :], reference.point)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    likelihood = rng.dirichlet([0.5, 0.5], size=(6, 4))  # [N, K, J]: p(y | x, theta_k), six candidates, four members
    joint = np.swapaxes(likelihood, 1, 2)[:, None, :, :] / 4.0  # [N, 1, J, K]: the target is the member itself
    belief = JointTable(joint, np.full((1, 4), 0.25))
    check_belief(belief)
    print("BALD:", score(LogLoss(), belief).round(4))  # the log loss of naming theta_k
