"""The texts whose tables are run again: one record each, by the key of ``docs/bibliography.md``.

``Experiment.source`` holds such a key; ``Report`` and the files of a report print the record.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A published text.

    Attributes
    ----------
    cited : str
        Author and year as they stand in a sentence, for example ``"Yu (2006)"``.
    authors : str
        In full.
    year : int
    title : str
    published : str
        Kind of text, and where it appeared.
    """

    cited: str
    authors: str
    year: int
    title: str
    published: str

    @property
    def reference(self) -> str:
        """Authors, title, place and year, on a line."""
        return f'{self.authors}, "{self.title}", {self.published}, {self.year}'


SOURCES = {
    "Arngren 2007": Source(
        "Arngren (2007)",
        "Morten Arngren",
        2007,
        "Modelling Cognitive Representations",
        "master's thesis, Technical University of Denmark",
    ),
    "Piccardi 2011": Source(
        "Piccardi et al. (2011)",
        "Massimo Piccardi, Hatice Gunes, Ahmed Fawzi Otoom and Oscar Perez Concha",
        2011,
        "MLiT: Mixtures of Gaussians under Linear Transformations",
        "Pattern Analysis and Applications",
    ),
    "Tabaghi 2016": Source(
        "Tabaghi (2016)",
        "Puoya Tabaghi",
        2016,
        "Mixture of Factor Models for Joint Dimensionality Reduction and Classification",
        "master's thesis, Colorado State University",
    ),
    "Yu 2006": Source(
        "Yu (2006)",
        "Shipeng Yu",
        2006,
        "Advanced Probabilistic Models for Clustering and Projection",
        "dissertation, Ludwig-Maximilians-Universität München",
    ),
    "Zhang 2017": Source(
        "Zhang (2017)",
        "Shun Zhang",
        2017,
        "SLML Project 4: PCA & GMM",
        "course report",
    ),
}


def find_source(key: str) -> Source:
    """Get the record of a key; called when an ``Experiment`` is declared.

    Raises
    ------
    ValueError
        If there is none; the message lists the keys.

    Examples
    --------
    >>> find_source("Yu 2006").cited
    'Yu (2006)'
    """
    if key not in SOURCES:
        raise ValueError(
            f"{key!r} is no source of the bibliography. Choose one of: {', '.join(SOURCES)}; or "
            "add it to papers/frame/bibliography.py and docs/bibliography.md."
        )
    return SOURCES[key]
