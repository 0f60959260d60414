"""The public names, pinned: adding or removing one is a decision, not an accident."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stakes

ROOT = Path(__file__).parents[1]

NAMES = {
    "stakes": """
        AbsoluteError AccuracyWarning BayesianProcess Bootstrap BoxCox BoxCoxWarp BregmanLoss BrierLoss CRPS
        Campaign CategoricalEnsemble CostMatrix CountProcess DrawsBelief
        ExponentialLinearWeight ExponentialWeight FiniteActions
        GaussianBelief GaussianMixtureBelief GaussianProcess InterpolatedWeight ItakuraSaito Linex LogLoss LogScore
        LogWarp Mahalanobis NormalEnsemble PerContext
        Pinball PoissonDeviance ScoringRule Selection SoftplusWarp SphericalLoss
        SquaredError Stream ThresholdDecision VectorGaussianBelief VectorNormalEnsemble VoteEnsemble
        WarpedGaussianBelief Weight ZeroOne audit cold_start default effective_context_weights elicit
        expected_posterior_uncertainty expected_reduction expected_regret find_form
        honest_reduction honest_scores integration_error outlook rank register
        sampling_error score select simulate uncertainty
    """,
    "stakes.losses": """
        AbsoluteError AnyLoss BoxCox BregmanLoss BrierLoss CRPS Chart ClassWeights Classes ConvexFunction CostMatrix
        DistributionLoss Domain Elicited ElicitedLoss
        Exponential ExponentialLinearWeight ExponentialWeight FiniteActions FiniteChoice
        Function Identity Indicator InterpolatedWeight Interval ItakuraSaito Linex LogLoss LogScore Loss Mahalanobis
        NONNEGATIVE NegativeEntropy NegativeLog Norm POSITIVE PerContext
        Pinball PoissonDeviance Potential Power Quadratic REAL
        ScoringRule SphericalLoss Square SquaredError ThresholdDecision Transform VectorIdentity Vectors Weight
        MultiLabelScore Question WeightFunction WeightedBregman ZeroOne align_classes elicit label_set_names label_sets
        multi_label ordinal_costs
    """,
    "stakes.beliefs": """
        Automatic BatchBelief Belief BoxCoxWarp CategoricalEnsemble Distribution GaussianBelief DistributionBelief
        DrawsBelief GaussianMixtureBelief
        Integrand LogMomentBelief LogWarp MemberNodes MemberPanels MixtureGrid MonotoneWarp NormalEnsemble OutcomeRule
        Reference SoftplusWarp SymmetricNodes
        VectorGaussianBelief VectorNormalEnsemble VoteEnsemble Warp WarpedGaussianBelief noisy_labels reference_at
    """,
    "stakes.acquisition": """
        ANY AccuracyWarning Best Form HonestReduction Reduction Selection Total best best_streamed
        effective_context_weights expected_posterior_uncertainty expected_reduction expected_regret
        fallback_scores find_form fused_form
        honest_reduction honest_scores integration_error register sampling_error score select
        uncertainty
    """,
    "stakes.baselines": """
        BASELINES bald expected_future_error least_confident margin predictive_entropy predictive_variance
        query_by_committee random_scores
    """,
    "stakes.campaign": "Campaign Event Journal Opinion Recorded RowState Status Undone",
    "experiments.datasets": "Dataset DatasetError Synthetic load synthetic",
    "stakes.evaluation": """
        Agreement Annotators Audit AuditDraw AuditedLoss BiasVariance Calibration ClassAnnotator ClassCalibration
        Decomposition NumberAnnotator RealisedLoss agreement audit bayes_prediction bias_variance calibration decompose
        estimate_annotators realised_loss
    """,
    "stakes.exchange": """
        Exported FORMATS Task TaskList argilla_records argilla_settings doccano_labels doccano_lines export_tasks
        import_answers label_studio_config label_studio_tasks open_tasks
    """,
    "stakes.files": """
        Fingerprint Frame Source changes escape fingerprint open_pool read_table row_ids unescape write_csv
    """,
    "stakes.integrations.arviz": "categorical_ensemble joint_draws merged normal_ensemble",
    "stakes.integrations.botorch": "LossDrivenReduction",
    "stakes.integrations.datasets": "DatasetRows as_table ranked_rows with_labels",
    "stakes.integrations.foundation_models": "ConditionedBelief InContext",
    "stakes.integrations.mlflow": "log_campaign log_progress log_simulation",
    "stakes.integrations.notebook": "LabelCard label",
    "stakes.integrations.skactiveml": "LossDriven",
    "stakes.integrations.wandb": "log_campaign log_progress log_simulation",
    "stakes.models": """
        Adapter BayesianProcess Bootstrap CountProcess DefaultModel EnsembleOf FollowedProcess GaussianProcess
        Hyperparameters LabelDraws OnDevice OrderedProbit TableEncoder belief_of default follow
        out_of_bag_noise prepare_belief register_model
    """,
    "stakes.models.networks": """
        DatasetPool Dropout LastLayer NetworkEnsemble NetworkMembers StackedNetworks last_layer_laplace
    """,
    "stakes.ranking": """
        Amount HelpedContext Note Offer OpinionFit OpinionOffer Outlook Pool PromisedRound Ranking Reason
        TrainedWeightWarning cold_start fit_to_opinions outlook rank rank_opinions
    """,
    "stakes.report": "write_report",
    "stakes.simulation": """
        Comparison Estimate MetricLike PromiseRecord Reached Simulation StrategyLike Trial simulate simulate_trials
    """,
    "stakes.stream": "Decision Stream",
    "stakes.tabular": """
        Brief LOSSES LossEntry LossSpec MODELS ModelEntry ModelSpec Option Worksheet build_loss build_model
        build_problem decisions_of parse_class_weights parse_options parse_weight read_cost_matrix read_worksheet
        suggest
    """,
    "stakes.testing": "check_belief check_loss",
}


NEEDS = {
    "stakes.integrations.botorch": "botorch",
    "stakes.integrations.datasets": "datasets",
    "stakes.integrations.mlflow": "mlflow",
    "stakes.integrations.notebook": "anywidget",
    "stakes.integrations.skactiveml": "skactiveml",
    "stakes.integrations.wandb": "wandb",
    "stakes.models.networks": "torch",
}


@pytest.fixture
def installed(module):
    if module in NEEDS:
        pytest.importorskip(NEEDS[module], reason=f"{module} needs {NEEDS[module]}")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("module", NAMES)
def test_public_names(module):
    assert sorted(importlib.import_module(module).__all__) == sorted(NAMES[module].split())


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("module", NAMES)
def test_every_public_name_is_there_and_documented(module):
    package = importlib.import_module(module)
    for name in package.__all__:
        value = getattr(package, name)
        assert isinstance(value, dict) or value.__doc__, name  # a table is documented beside it


def test_completion_offers_the_public_names_only():
    assert dir(stakes) == sorted([*stakes.__all__, "__version__"])


def test_versions_agree():
    version = stakes.__version__  # the one place; pyproject.toml reads it
    assert 'path = "src/stakes/__init__.py"' in (ROOT / "pyproject.toml").read_text()
    assert not re.search(r"^version = ", (ROOT / "pyproject.toml").read_text(), re.M)
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert (
        f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()
        or "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()
    )


def test_importing_loads_no_optional_library():
    libraries = ("torch", "matplotlib", "pandas", "polars", "pyarrow", "jax", "sklearn")
    code = f"import sys, stakes; print([m for m in {libraries} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


PROCESS = """
import sys
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
before = set(sys.modules)
import stakes
X = np.linspace(0.0, 1.0, 30)[:, None]
model = GaussianProcessRegressor().fit(X[:5], X[:5, 0])
assert len(stakes.rank(model, stakes.SquaredError(), X[5:], n=3)) == 3
print(*{".".join(name.split(".")[:2]) for name in set(sys.modules) - before})
"""


def test_ranking_with_a_process_loads_nothing_that_it_does_not_use():
    done = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "stakes.ranking" in loaded
    unused = ("ensemble", "tree", "linear_model", "compose", "neighbors", "svm", "decomposition")
    libraries = ("numba", "torch", "matplotlib", "pyarrow", "polars", "jax", "dask", "openpyxl")
    assert not loaded & {f"sklearn.{name}" for name in unused}
    assert not {name.partition(".")[0] for name in loaded} & set(libraries)


def test_a_campaign_is_at_hand_without_scikit_learn():
    code = "import sys; from stakes import Campaign; print(Campaign.__name__, 'sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Campaign", "False"]


def test_a_name_of_the_worksheets_is_no_module():
    for _ in range(2):  # the first look imports a module, which must not take the place of the function
        from stakes.tabular import suggest

        assert callable(suggest)
