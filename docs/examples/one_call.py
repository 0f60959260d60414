from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from stakes import CostMatrix, rank

# Forty tumours have a diagnosis, the others could get one. To call a malignant tumour (class 0) benign costs 20.
X, y = load_breast_cancer(return_X_y=True)
model = RandomForestClassifier(200, random_state=0).fit(X[:40], y[:40])
costs = CostMatrix([[0.0, 20.0], [1.0, 0.0]])

ranking = rank(model, costs, pool=X[40:], n=3)
for row, gain in zip(ranking.indices, ranking.scores, strict=True):
    print(f"diagnose row {row} of the pool: adds {gain:.4f} a decision")
print(ranking.reasons[0])
