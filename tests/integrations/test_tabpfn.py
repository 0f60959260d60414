"""The real TabPFN, with a small network of random weights: what comes out is a belief, whatever it says."""

import pytest

pytest.importorskip("tabpfn", reason="TabPFN's tests are run by make integrations")
torch = pytest.importorskip("torch")

from tests.integrations.in_context import check_both_ways  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = {"max_num_classes": 10, "num_buckets": 10, "emsize": 16, "nlayers": 1, "nhead": 2}


def test_a_belief_by_hypothetical_labels_and_by_draws(tmp_path):
    from tabpfn import TabPFNClassifier
    from tabpfn.architectures import ARCHITECTURES

    torch.manual_seed(0)
    architecture = ARCHITECTURES["tabpfn_v2"]
    network = architecture.get_architecture(architecture.parse_config(SMALL)[0])
    for each in network.parameters():
        torch.nn.init.normal_(each, std=0.15)  # the package starts some layers at 0, and labels would tell nothing
    kept = {"config": SMALL, "architecture_name": "tabpfn_v2", "state_dict": network.state_dict()}
    torch.save(kept, tmp_path / "tabpfn-v2-classifier.ckpt")
    check_both_ways(TabPFNClassifier(n_estimators=1, model_path=tmp_path / "tabpfn-v2-classifier.ckpt", device="cpu"))
