"""Documents and the topics that they mix: sums over words, not over documents."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.math.softmax import entropies
from mixfold.report.rows.piece import Piece

# a document is about a topic from this share of its words on
ABOUT = 0.1


class TopicSums:
    """Of each topic (K,) its words and documents; of documents their lengths."""

    def __init__(self, size: int) -> None:
        # words of each topic; documents in which it is the largest, and that are about it
        self.words, self.largest, self.about = np.zeros(size), np.zeros(size), np.zeros(size)
        self.top = self.topics = 0.0
        self.weight = self.n_words = 0.0
        self.empty = 0
        self.shortest, self.longest = np.inf, 0.0

    def add(self, piece: Piece, shares: Array) -> None:
        """One more piece, and the shares of topics in its documents (n, K)."""
        length = np.nan_to_num(np.asarray(piece.X.sum(axis=1), float)).ravel()
        there = length > 0
        self.empty += int((~there).sum())
        if not there.any():
            return
        weight, shares, length = piece.weight[there], shares[there], length[there]
        self.words += (weight * length) @ shares
        self.largest += np.bincount(shares.argmax(axis=1), weight, len(self.words))
        self.about += weight @ (shares >= ABOUT)
        self.top += float(weight @ shares.max(axis=1))
        self.topics += float(weight @ np.exp(entropies(shares)))
        self.weight += float(weight.sum())
        self.n_words += float(weight @ length)
        self.shortest = min(self.shortest, float(length.min()))
        self.longest = max(self.longest, float(length.max()))
