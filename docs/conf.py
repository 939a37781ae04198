"""How the site is built: `make docs`, or ``sphinx-build docs docs/_build/html``."""

from __future__ import annotations

import os
import re
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

from pictures import moved_pictures  # noqa: E402

project = "mixfold"
author = "The mixfold developers"
try:
    release = version("mixfold")
except PackageNotFoundError:  # a source tree that is not installed
    release = ""
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    # ours, in _ext/
    "breaks",
    "commands",
    "docstrings",
    "formulas",
    "mounts",
    "names",
    "pages",
    "pictures",
]
root_doc = "index"
exclude_patterns = ["_build", "_ext", "developer/skeletons", "**/sg_execution_times.rst"]
# A name in single backticks of a docstring is code; a link is said by its role.
default_role = "code"
highlight_language = "none"  # of indented blocks: models and commands as they stand
nitpicky = True
# Types in words, and names of other libraries: the site is built without a network.
nitpick_ignore_regex = [
    (r"py:.*", r"(sklearn|numpy|np|scipy|pandas|polars|pyarrow|dask|matplotlib|typing)\..*"),
    (r"py:(class|obj|data)", r"(Any|Self|Array|optional)"),
    (r"py:(data|func)", r"(ESTIMATORS|read)"),  # of the store, for whoever reads its code
]

# ------------------------------------------------ Markdown

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 4
# Names of links as code hosts make them: an anchor is the same there and here.
myst_links_external_new_tab = False

# ------------------------------------------------ reference

templates_path = ["_templates"]
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# ------------------------------------------------ gallery

os.environ.setdefault("MPLBACKEND", "agg")
warnings.filterwarnings("ignore", message="IProgress not found")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": re.escape(os.sep),  # every example is run
    "image_scrapers": (moved_pictures,),
    "within_subsection_order": "ExampleTitleSortKey",
    "default_thumb_file": str(HERE / "images" / "printed.png"),
    "download_all_examples": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "show_signature": False,
    "min_reported_time": 60,
    "write_computation_times": False,
    "plot_gallery": True,
}
suppress_warnings = ["config.cache"]  # a function in the settings above is no value to be kept

# ------------------------------------------------ pages

html_theme = "furo"
html_title = "mixfold"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1f5fa8",
        "color-brand-content": "#1f5fa8",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8ab8f0",
        "color-brand-content": "#8ab8f0",
    },
}
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# ------------------------------------------------ links

linkcheck_timeout = 10
linkcheck_workers = 4
