"""The sections, in the order of the page. A new one is a file in ``sections/`` and a line here."""

from __future__ import annotations

from mixfold.report.section import Maker
from mixfold.report.sections.axes import axes
from mixfold.report.sections.calibration import calibration
from mixfold.report.sections.categories import categories
from mixfold.report.sections.clusters import clusters
from mixfold.report.sections.columns import columns
from mixfold.report.sections.components import components
from mixfold.report.sections.convergence import convergence
from mixfold.report.sections.factors import factors
from mixfold.report.sections.labels import labels
from mixfold.report.sections.left_out import left_out
from mixfold.report.sections.map import latent_map
from mixfold.report.sections.missing import missing
from mixfold.report.sections.novelty import novelty
from mixfold.report.sections.pictures import pictures
from mixfold.report.sections.portraits import portraits
from mixfold.report.sections.predictions import predictions
from mixfold.report.sections.profiles import profiles
from mixfold.report.sections.residuals import residuals
from mixfold.report.sections.search import search
from mixfold.report.sections.settings import settings
from mixfold.report.sections.topics import topics

SECTIONS: tuple[Maker, ...] = (
    portraits,
    search,
    clusters,
    topics,
    components,
    pictures,
    profiles,
    categories,
    factors,
    axes,
    latent_map,
    labels,
    calibration,
    predictions,
    novelty,
    residuals,
    missing,
    columns,
    convergence,
    settings,
    left_out,
)
