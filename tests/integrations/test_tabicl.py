"""The real TabICL, with small networks of random weights: what comes out is a belief, whatever it says."""

import pytest

pytest.importorskip("tabicl", reason="TabICL's tests are run by make integrations")
torch = pytest.importorskip("torch")

from tests.integrations.in_context import check_classifier, check_regressor  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = {"embed_dim": 16, "col_num_blocks": 1, "col_nhead": 2, "col_num_inds": 4}
SMALL |= {"row_num_blocks": 1, "row_nhead": 2, "row_num_cls": 2, "icl_num_blocks": 1, "icl_nhead": 2}


def _stored(path, **kind):
    """A network with random weights, as the package stores one."""
    from tabicl._model.tabicl import TabICL

    torch.manual_seed(0)
    network = TabICL(**SMALL, **kind)
    for each in network.parameters():
        torch.nn.init.normal_(each, std=0.2)  # the package starts some layers at 0, and labels would tell nothing
    torch.save({"config": SMALL | kind, "state_dict": network.state_dict()}, path)
    return {"n_estimators": 1, "model_path": path, "device": "cpu", "allow_auto_download": False}


def test_a_classifier_by_hypothetical_labels_and_by_draws(tmp_path):
    from tabicl import TabICLClassifier

    check_classifier(TabICLClassifier(**_stored(tmp_path / "small.ckpt", max_classes=4)))


def test_a_regressor_by_hypothetical_labels_and_by_draws(tmp_path):
    from tabicl import TabICLRegressor

    check_regressor(TabICLRegressor(**_stored(tmp_path / "small.ckpt", max_classes=0, num_quantiles=99)))
