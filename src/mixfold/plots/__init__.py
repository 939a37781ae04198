"""Pictures of fitted models: ``plot_x(model, X, ..., ax=None)`` draws and returns the axes.

What is drawn comes first, where to draw last and by name; without ``ax`` a figure is made. Plots of
several panels take and return several axes.
"""

from mixfold.plots.chains import plot_chains, plot_similarity
from mixfold.plots.codebooks import plot_codebook
from mixfold.plots.discriminant import plot_discriminant
from mixfold.plots.document_clusters import plot_cluster_topics, plot_document_clusters
from mixfold.plots.ellipses import plot_ellipses
from mixfold.plots.generated import plot_generated
from mixfold.plots.groups import plot_pairs, plot_profiles
from mixfold.plots.images import plot_factors, plot_images, plot_reconstructions
from mixfold.plots.latents import plot_latents
from mixfold.plots.loadings import plot_biplot, plot_loadings, plot_scree
from mixfold.plots.merges import plot_merges
from mixfold.plots.mistakes import plot_misclassified
from mixfold.plots.selection import plot_criterion, plot_search
from mixfold.plots.topics import plot_topics
from mixfold.plots.trace import plot_objective

__all__ = [
    "plot_biplot",
    "plot_chains",
    "plot_cluster_topics",
    "plot_codebook",
    "plot_criterion",
    "plot_discriminant",
    "plot_document_clusters",
    "plot_ellipses",
    "plot_factors",
    "plot_generated",
    "plot_images",
    "plot_latents",
    "plot_loadings",
    "plot_merges",
    "plot_misclassified",
    "plot_objective",
    "plot_pairs",
    "plot_profiles",
    "plot_reconstructions",
    "plot_scree",
    "plot_search",
    "plot_similarity",
    "plot_topics",
]
