from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from stakes import CostMatrix, outlook, rank

# Forty tumours have a diagnosis, the others could get one. To call a malignant tumour (class 0) benign costs 20.
X, y = load_breast_cancer(return_X_y=True)
model = RandomForestClassifier(200, random_state=0).fit(X[:40], y[:40])
costs = CostMatrix([[0.0, 20.0], [1.0, 0.0]])

ranking = rank(model, costs, pool=X[40:], n=3)
print(f"diagnose rows {ranking.indices} of the pool")
print(ranking.reasons[0])
saved = outlook(model, costs, pool=X[40:], n=3).offers[-1]
print(
    f"together they save {saved.worth:.3f} (± {2 * saved.error:.2f}) a decision; {saved.joint:.3f} if a tree is right"
)
