"""The real TabPFN, with small networks of random weights: what comes out is a belief, whatever it says."""

import pytest

pytest.importorskip("tabpfn", reason="TabPFN's tests are run by make integrations")
torch = pytest.importorskip("torch")

from tests.integrations.in_context import check_classifier, check_regressor  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = {"emsize": 16, "nlayers": 1, "nhead": 2}


def _stored(path, **kind):
    """A network with random weights, as the package stores one."""
    from tabpfn.architectures import ARCHITECTURES
    from tabpfn.architectures.shared.bar_distribution import FullSupportBarDistribution

    torch.manual_seed(0)
    architecture = ARCHITECTURES["tabpfn_v2"]
    network = architecture.get_architecture(architecture.parse_config(SMALL | kind)[0])
    for each in network.parameters():
        torch.nn.init.normal_(each, std=0.15)  # the package starts some layers at 0, and labels would tell nothing
    weights = network.state_dict()
    if not kind["max_num_classes"]:
        bars = FullSupportBarDistribution(torch.linspace(-4.0, 4.0, kind["num_buckets"] + 1))
        weights |= {f"criterion.{name}": each for name, each in bars.state_dict().items()}
    torch.save({"config": SMALL | kind, "architecture_name": "tabpfn_v2", "state_dict": weights}, path)
    return {"n_estimators": 1, "model_path": path, "device": "cpu"}


def test_a_classifier_by_hypothetical_labels_and_by_draws(tmp_path):
    from tabpfn import TabPFNClassifier

    how = _stored(tmp_path / "tabpfn-v2-classifier.ckpt", max_num_classes=10, num_buckets=10)
    check_classifier(TabPFNClassifier(**how))


def test_a_regressor_by_hypothetical_labels_and_by_draws(tmp_path):
    from tabpfn import TabPFNRegressor

    how = _stored(tmp_path / "tabpfn-v2-regressor.ckpt", max_num_classes=0, num_buckets=100)
    check_regressor(TabPFNRegressor(**how))
