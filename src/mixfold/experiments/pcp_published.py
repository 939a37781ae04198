"""What source 004 prints in tables 9.1 and 9.2, and what other code had on the corpora at hand."""

from __future__ import annotations

TOPICS = (5, 10, 20, 30, 40, 50)

# table 9.1: a perplexity for each of TOPICS
PERPLEXITY = {
    "Reuters": {
        "pLSI": (1995, 1422, 1226, 1131, 1128, 1103),
        "LDA": (1143, 892, 678, 599, 562, 533),
        "PCP": (1076, 882, 670, 592, 555, 527),
    },
    "Newsgroup": {
        "pLSI": (2171, 2018, 1943, 1868, 1867, 1924),
        "LDA": (2083, 1933, 1782, 1674, 1550, 1513),
        "PCP": (2039, 1871, 1752, 1643, 1524, 1493),
    },
}
# Other code, one split, at REFERENCE_TOPICS: by the source's protocol and by completion.
REFERENCE_TOPICS = (5, 10, 50)
REFERENCE_PERPLEXITY = {
    "Reuters": {
        "pLSI": (968, 860, 712),
        "LDA": (1010, 912, 762),
        "PCP": (987, 880, 730),
        "pLSI half": (944, 831, 669),
        "LDA half": (966, 856, 689),
        "PCP half": (952, 844, 687),
    },
    "Newsgroup": {
        "pLSI": (1808, 1632, 1356),
        "LDA": (1898, 1753, 1487),
        "PCP": (1844, 1693, 1430),
        "pLSI half": (1783, 1606, 1271),
        "LDA half": (1836, 1680, 1363),
        "PCP half": (1803, 1659, 1373),
    },
}
# Of frequencies of words alone, on that split.
REFERENCE_UNIGRAM = {"Reuters": 1382.0, "Newsgroup": 2563.0}

# table 9.2: NMI, the number of topics tuned
NMI = {
    "Reuters": {"NMF": 0.246, "LDA + k-means": 0.331, "PCP": 0.418},
    "Newsgroup": {"NMF": 0.522, "LDA + k-means": 0.504, "PCP": 0.622},
}
# Other code: means over starts, by the number of topics; TUNED where that is not known.
TUNED = 0
REFERENCE_NMI: dict[str, dict[str, dict[int, float]]] = {
    "Reuters": {
        "NMF": {5: 0.558},
        "LDA + k-means": {TUNED: 0.539},
        "PCP mean field": {TUNED: 0.548},
        "PCP": {10: 0.575, TUNED: 0.562},
        "unigrams": {10: 0.557},
    },
    "Newsgroup": {
        "NMF": {4: 0.614},
        "LDA + k-means": {TUNED: 0.547},
        "PCP mean field": {4: 0.55, 10: 0.60, 20: 0.48, 50: 0.41},
        "PCP": {4: 0.60, 10: 0.75, 20: 0.73, 50: 0.69},
        "unigrams": {10: 0.821},
    },
}
