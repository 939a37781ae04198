"""What source 002 prints of non-linear matrix factorisation, and what other code had."""

from __future__ import annotations

# test error [%] and reconstruction error e_r by row; None where the source has no number
FIRST, SECOND, WIDE = (
    "L1 {100, 0, 0, 0.2, 1e-3}",
    "L2 {50, 0.05, 0, 0.3, 1e-4}",
    "L2 {200, 0, 70, 4, 1e-6}",
)
LINEAR, FIRST_DUAL, SECOND_DUAL, WIDE_DUAL = (
    "raw pixels, softmax",
    "L1 50, two sessions",
    "L2 50, two sessions",
    "L2 200, two sessions",
)
ERRORS: dict[str, tuple[float | None, float | None]] = {
    FIRST: (9.2, 2.25),  # table 5.1
    SECOND: (10.4, 7.8),  # table 5.3
    WIDE: (11.0, 3.8),
    LINEAR: (12.0, None),
    FIRST_DUAL: (16.7, None),
    SECOND_DUAL: (19.3, None),
    WIDE_DUAL: (18.95, None),
}
# table 5.2: misclassified of 1000 by digit, for two strengths of the penalty of the codebook
MISSED = {
    0.0: (42, 73, 63, 91, 123, 87, 94, 168, 367, 134),
    70.0: (60, 54, 98, 107, 137, 146, 89, 104, 184, 113),
}
# Other code on these digits: error [%] on the next digits and on the official part; e_r
REFERENCE: dict[str, tuple[float, float, float | None]] = {
    FIRST: (10.0, 9.0, 2.34),
    "L1, s2 = 1e-2": (11.1, 10.1, None),
    "L1, s2 = 1e-1": (13.0, 11.9, None),
    "L1, s2 = 1e-2, re-encoded": (10.2, 9.3, None),
    "L1, s2 = 1e-1, re-encoded": (10.2, 9.3, None),
    "PCA 100, softmax": (10.1, 9.0, None),
    LINEAR: (10.0, 9.3, None),
    SECOND: (11.0, 9.5, 4.75),
    FIRST_DUAL: (10.9, 9.6, None),
    SECOND_DUAL: (11.1, 9.5, None),
    "NMF 50, two sessions": (13.1, 12.1, 6.6),
    "784-100-50-10, joint": (4.8, 4.4, None),
}
# what is known of rows that differ from the published ones
_CONVERGED = (
    "the published classifier had not converged: principal components and a softmax alone, at "
    "their optimum, are as good as ours."
)
# the source's listing accepts steps by a cost with beta, but goes along a gradient with beta / s2
_STRONGER = (
    "the source's program weighs beta 1/s2 times as strongly as its formula says; at s2 = 1e-6 the "
    "penalty of the formula does nothing, and rows with it and without it are the same."
)
WHY = {
    WIDE: _STRONGER,
    SECOND: "the published layer had not converged: it rebuilds digits much worse than ours.",
    LINEAR: "the published value is that of a linear network with a squared error.",
    FIRST_DUAL: _CONVERGED,
    SECOND_DUAL: _CONVERGED,
    WIDE_DUAL: _CONVERGED,
}
NOTES = (
    "Published errors are of 1,000 test digits of each class, which the official test part does "
    "not hold (its smallest class has 892). They stand beside both tests.",
    "Without penalties of the sources and the codebook a layer is linear: sources that are "
    "inferred without a label are x times a fixed matrix, and the classifier is a softmax of "
    "reduced rank. So L1 is no better than principal components with the same softmax, and its "
    "gain over the published linear classifier is not one of the link.",
    "Training sources see their labels, test sources do not: the larger s2, the more the "
    "classifier trusts what is not there later. Re-encoding (reencode=True, the default) infers "
    "the training sources again without labels and fits the classifier to those.",
    "Two sessions (the layers without labels, then the classifier) lose little here. What the "
    "source found far worse was a classifier that had not converged.",
    "e_r is half of the squared error of an image; table 5.3 prints it with a percent sign.",
    "A penalty of the sources alone would be void, as scales go from the sources to the codebook; "
    "where alpha > 0 and beta = 0 the rows of the codebook are bounded.",
)
