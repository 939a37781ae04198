"""How much of all documents each topic makes up, as far as a fitted model knows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array


def topic_shares(model: Any) -> Array | None:
    """Shares of the topics in the tokens of the fit, (K,); None if no step of it was made.

    Posteriors of topics are counts of tokens on top of a prior. Topics by maximum likelihood are
    probabilities only: the shares are kept beside them.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import LatentDirichletAllocation
    >>> X = np.array([[4, 4, 0, 0]] * 40 + [[0, 0, 4, 4]] * 10)
    >>> model = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> np.sort(topic_shares(model)).round(1)
    array([0.2, 0.8])
    """
    prior = getattr(model, "topic_word_prior_", None)
    if prior is None:
        return getattr(model, "topic_shares_", None)
    tokens = np.maximum(model.components_ - prior, 0.0).sum(axis=1)
    total = tokens.sum()
    return np.asarray(tokens / total) if total > 0 else np.full(len(tokens), 1.0 / len(tokens))
