"""Which campaigns may import the classes that they name.

A class by "module:Name" is imported, which runs its module, so that a campaign that names one is asked about first. The
answer is kept outside the file, so that nobody can send it along: a small file in the folder of your settings, under a
hash of where the campaign lies and of its loss and model. Delete it to take the answer back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

from stakes.exceptions import StakesError
from stakes.tabular import Brief


def trust_folder() -> Path:
    """Where answers are kept: in $XDG_CONFIG_HOME, %APPDATA% or ~/.config."""
    given = os.environ.get("APPDATA" if os.name == "nt" else "XDG_CONFIG_HOME", "")
    root = Path(given) if os.path.isabs(given) else Path(os.path.expanduser("~")) / ".config"
    return root / "stakes" / "trusted"


def is_trusted(path: Path, brief: Brief) -> bool:
    """Whether a campaign was trusted before with the loss and the model that it names."""
    return _answer(path, brief).is_file()


def refuse_untrusted(path: Path, brief: Brief, *, model: bool = True) -> None:
    """Refuse to import what a campaign names, unless it is trusted; of its loss alone where the model is not needed."""
    imports = brief.imports(model=model)
    if imports and not is_trusted(path, brief):
        raise StakesError(
            f"{path} names {' and '.join(imports)}: importing runs its code, so nothing was imported. If you trust "
            "the code, and whoever made the campaign, say so once: --trust, or Campaign.open(path, trust=True). It is "
            f"remembered for this file, in {trust_folder()}."
        )


def remember_trust(path: Path, brief: Brief) -> None:
    """Keep the answer for a campaign and what it names; where it cannot be kept, the question comes again."""
    answer = _answer(path, brief)
    with contextlib.suppress(OSError):
        answer.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        answer.write_text(json.dumps({"campaign": str(path.absolute()), "imports": brief.imports()}) + "\n", "utf-8")


def _answer(path: Path, brief: Brief) -> Path:
    """The file of an answer: the same class with other parameters, or at another place, is another question."""
    spec = json.dumps([brief.loss.to_dict(), brief.model.to_dict()], sort_keys=True)
    return trust_folder() / f"{hashlib.sha256(os.fsencode(path.resolve()) + spec.encode()).hexdigest()}.json"
