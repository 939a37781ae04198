"""Which published tables can be run again. A new one is one more line in ``EXPERIMENTS``."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from papers.frame.experiment import Experiment

# The environment variable that names the data folder if the command does not.
DATA_VARIABLE = "MIXFOLD_DATA"


@dataclass(frozen=True, slots=True)
class Entry:
    """The file of a table, and one line about it: what, and of which source."""

    module: str
    summary: str

    def load(self) -> Experiment:
        """The declaration. Imported on use, so that the list appears at once."""
        experiment: Experiment = import_module(f"papers.{self.module}").EXPERIMENT
        return experiment


EXPERIMENTS = {
    "mfm-ppca-faces": Entry(
        "mfm_ppca_faces",
        "PPCA and its mixtures on the faces of two people (Tabaghi 2016, table 5.5)",
    ),
    "mfm-faces": Entry(
        "mfm_faces", "Factors, clusters and classes of two people's faces (Tabaghi 2016, table 5.4)"
    ),
    "mfm-sonar": Entry(
        "mfm_sonar", "Factors and classes of drawn sonar images (Tabaghi 2016, tables 5.2 and 5.3)"
    ),
    "mlit-table": Entry(
        "mlit_table", "Classifiers of mixtures under transformations (Piccardi 2011, table 4)"
    ),
    "digit-parts": Entry(
        "digit_parts", "Twos by parts, mixtures of pixels and of sources (Arngren 2007, chapter 3)"
    ),
    "nlmf": Entry("nlmf", "Digits by one factor layer and by two (Arngren 2007, tables 5.1-5.3)"),
    "nlmf-sweeps": Entry(
        "nlmf_sweeps", "What each parameter of a factor layer does (Arngren 2007, figures 5.4-5.44)"
    ),
    "nlmf-generation": Entry(
        "nlmf_generation", "Digits that such layers make (Arngren 2007, section 5.3.1)"
    ),
    "dbn": Entry("dbn", "Digits by a deep belief net (Arngren 2007, section 4.1)"),
    "freyface": Entry(
        "freyface", "Principal components of a film of a face (Zhang 2017, figures 1-9)"
    ),
    "digits-mixtures": Entry(
        "digits_mixtures", "Gaussian mixtures on twos and threes (Zhang 2017, figures 10-15)"
    ),
    "dp-table": Entry("dp_table", "Components that VBDMA and VBTDP learn (Yu 2006, table 3.1)"),
    "dp-figures": Entry(
        "dp_figures", "Draws of Dirichlet processes, lost components (Yu 2006, figures 3.2-3.6)"
    ),
    "old-faithful": Entry(
        "old_faithful", "Components of the geyser data by alpha (Yu 2006, section 3.4.1)"
    ),
    "vb-toy": Entry(
        "vb_toy", "The bound before and after learning the prior (Yu 2006, section 2.2.4)"
    ),
    "sppca-multiclass": Entry(
        "sppca_multiclass", "Supervised PPCA of faces and texts (Yu 2006, table 7.3)"
    ),
    "sppca-multilabel": Entry(
        "sppca_multilabel", "Supervised PPCA of genes with several labels (Yu 2006, table 7.4)"
    ),
    "sppca-half-labelled": Entry(
        "sppca_half_labelled",
        "When labels move the axes (Yu 2006, chapter 7, a setting of our own)",
    ),
    "sppca-output-weight": Entry(
        "sppca_output_weight",
        "Few labels that count for more (Yu 2006, chapter 7, a setting of our own)",
    ),
    "morp": Entry(
        "morp",
        "Projections by many labels, used for these and for new ones (Yu 2006, figures 6.3-6.5)",
    ),
    "morp-preferences": Entry(
        "morp_preferences",
        "What users like, and curves of beta (Yu 2006, figures 6.1 and 6.6)",
    ),
    "em-kpca": Entry(
        "em_kpca", "Time and error of kernel PCA by EM and by others (Yu 2006, figure 5.3)"
    ),
    "kernel-toys": Entry(
        "kernel_toys", "Kernel models of points (Yu 2006, figures 4.2, 5.2, 5.4, 7.2-7.4)"
    ),
    "pcp-perplexity": Entry(
        "pcp_perplexity", "Unseen documents under pLSI, LDA and PCP (Yu 2006, table 9.1)"
    ),
    "pcp-features": Entry(
        "pcp_features", "Topics as features of a classifier (Yu 2006, figure 9.4)"
    ),
    "pcp-clustering": Entry(
        "pcp_clustering", "Documents clustered by topics (Yu 2006, table 9.2 and figure 9.3)"
    ),
}


def find_entry(name: str) -> Entry:
    """The entry called ``name``.

    Raises
    ------
    ValueError
        If there is none; the message lists those that there are.
    """
    if name not in EXPERIMENTS:
        close = get_close_matches(name, EXPERIMENTS, n=1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"there is no table {name!r}.{guess} Choose one of: {', '.join(EXPERIMENTS)}."
        )
    return EXPERIMENTS[name]
