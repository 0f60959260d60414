"""The site: `make docs` builds it into build/site. Nothing is fetched while it is built or read."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent), str(DOCS.parent / "src")]

import stakes  # noqa: E402

project = "stakes"
author = "The Stakes developers"
copyright = "2026, The Stakes developers"
version = release = stakes.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "notebooks",
]
exclude_patterns = ["_ext", "_static", "examples", "gallery", "**/.ipynb_checkpoints", "auto_gallery/*.[!r]*"]
nitpicky = False  # a name of another library is no link unless its inventory is given

# ---- pages
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["myst.header", "config.cache"]
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# ---- the reference: pages are written by _ext/api_pages.py
autodoc_typehints = "none"  # signatures have the names, Args has the meaning
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
autodoc_mock_imports = [  # adapters to packages that are too large for make docs have a page all the same
    name for name in ("datasets", "mlflow", "wandb") if importlib.util.find_spec(name) is None
]
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
default_role = "py:obj"
add_module_names = False
python_use_unqualified_type_names = True

# ---- links to other libraries. STAKES_INVENTORIES names a folder with files numpy.inv, scipy.inv and so on; without it
# there are no such links, and nothing is fetched.
_SITES = {
    "python": "https://docs.python.org/3",
    "numpy": "https://numpy.org/doc/stable",
    "scipy": "https://docs.scipy.org/doc/scipy",
    "sklearn": "https://scikit-learn.org/stable",
    "torch": "https://docs.pytorch.org/docs/stable",
}
_inventories = Path(os.environ.get("STAKES_INVENTORIES", DOCS / "_inventories"))
intersphinx_mapping = {
    name: (site, str(_inventories / f"{name}.inv"))
    for name, site in _SITES.items()
    if (_inventories / f"{name}.inv").is_file()
}

# ---- the gallery
sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["auto_gallery"],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,  # no seconds on a page: they are those of the machine that built it
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "plot_gallery": "True",
    "image_scrapers": ("matplotlib",),
    "thumbnail_size": (480, 320),
}

# ---- how it looks
html_theme = "furo"
html_title = f"stakes {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_search_summary = False  # a page that is read from a file cannot fetch others
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#30638e", "color-brand-content": "#30638e"},
    "dark_css_variables": {"color-brand-primary": "#8fbbdc", "color-brand-content": "#8fbbdc"},
}

# ---- formulas: MathJax comes from a package and is copied beside the pages
mathjax_path = "mathjax.js"
mathjax3_config = {"svg": {"fontCache": "local"}, "options": {"enableMenu": False}}


def copy_mathjax(app: Any, error: Exception | None) -> None:
    """Put MathJax beside the pages."""
    if error is not None or app.builder.format != "html":
        return
    found = importlib.util.find_spec("sphinx-mathjax-offline")
    if found is None or found.origin is None:
        raise RuntimeError("formulas need the package sphinx-mathjax-offline: pip install --group docs")
    target = Path(app.outdir) / "_static"
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(Path(found.origin).parent / "static" / "mathjax" / "tex-svg.js", target / mathjax_path)


def plain_text(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: bars, stars and underscores outside of code mean themselves; pages become links."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(`+[^`]*`+)", line)
            parts[::2] = [re.sub(r"[|]|\*(?!\w+:)|_(?=\W|$)", r"\\\g<0>", part) for part in parts[::2]]
            lines[i] = re.sub(r"\bdocs/([\w/]+)\.md\b", r":doc:`/\1`", "".join(parts))


def links_to_the_repository(app: Any, name: str, content: list[str]) -> None:
    """A relative link to a file beside docs becomes a download, one to a folder plain text."""
    folder = (DOCS / name).parent

    def rewritten(found: re.Match[str]) -> str:
        text, target = found["text"], found["target"]
        path = (folder / target.partition("#")[0]).resolve()
        if path.is_relative_to(DOCS) and not path.is_dir():
            return found[0]
        return f"[{text}](path:{target.partition('#')[0]})" if path.is_file() else text

    link = r"(?<!!)\[(?P<text>[^\[\]]*)\]\((?P<target>(?!\w+:)[^()#\s][^()\s]*)\)"
    parts = re.split(r"(^```.*?^```$)", content[0], flags=re.S | re.M)
    parts[::2] = [re.sub(link, rewritten, part) for part in parts[::2]]
    content[0] = "".join(parts)


def whole_options(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """An option in a command, such as --label-cost, stays on one line: browsers would break it at its hyphens."""

    def marked(block: re.Match[str]) -> str:
        return re.sub(r"(?<![\w-])(--?[a-z][a-z-]*)", r'<span class="flag">\1</span>', block[0])

    blocks = r'(?<=<div class="highlight-)(?:bash|sh|console) .*?</pre>'
    if "body" in context:
        context["body"] = re.sub(blocks, marked, context["body"], flags=re.S)


def setup(app: Any) -> None:
    """Register what is particular to this site."""
    app.connect("source-read", links_to_the_repository)
    app.connect("html-page-context", whole_options)
    app.connect("autodoc-process-docstring", plain_text, priority=400)
    empty = lambda record: getattr(record, "subtype", None) != "empty_glob"  # noqa: E731
    logging.getLogger("sphinx.sphinx.directives.other").addFilter(empty)  # folders that fill later
    app.connect("build-finished", copy_mathjax)
