"""Find entities with the weights of spaCy's recognizer, all tokens of many texts at once.

spaCy decides token by token, and asks for the interpreter's lock a hundred times for each: that takes half of the time
of recognition, and most of it beside busy threads. A decision outside of an entity depends on its token alone, and one
inside on the token, its predecessor and the first token of the entity. So the former are computed for all tokens in
one product of matrices, the latter for all possible entities side by side. Before it decides, a token gets a vector
that depends on the token alone, which is computed once for each distinct token of the texts.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

SpanOfTokens: TypeAlias = tuple[int, int, str]
"""First token of an entity, the token behind its last one, and its label."""

_Linear: TypeAlias = tuple[NDArray[np.float32], ...]
"""Weights and offsets of a linear layer."""

_FEATURES = 3  # the token, the first token of the open entity, the predecessor

_EMBEDDING = ("extract_features", "list2ragged", "with_array", "with_array", "ragged2list")
"""Names of the layers that give each token a vector of its own."""


class EntityDecoder:
    """The decisions of one recognizer. Texts must be tokenized, without entities and sentences.

    Args:
        component: Component `ner` of a pipeline.

    Raises:
        ValueError: The component decides in another way.
    """

    def __init__(self, component: Any) -> None:
        model: Any = getattr(component, "model", None)
        if getattr(model, "name", None) != "parser_model" or component.cfg.get("beam_width") != 1:
            raise ValueError("not a greedy transition-based recognizer")
        if not hasattr(model.ops, "use_blis"):
            raise ValueError("not a model on the CPU")
        lower = model.get_ref("lower")
        if not model.attrs["has_upper"] or model.attrs["unseen_classes"] or lower.get_dim("nF") != _FEATURES:
            raise ValueError("not the usual layers of a recognizer")
        self._tok2vec, self._lower = _TokenVectors(model.get_ref("tok2vec")), lower
        self._bias = lower.get_param("b")
        upper = model.get_ref("upper")
        self._upper: _Linear = (upper.get_param("W").T, upper.get_param("b"))
        moves = [component.moves.get_class_name(i).partition("-") for i in range(component.moves.n_moves)]
        self._labels = [label for _, _, label in moves]
        self._begins = np.array([move == "B" and label != "" for move, _, label in moves])
        self._outs = np.array([move == "O" for move, _, _ in moves])
        units = np.array([move == "U" and label != "" for move, _, label in moves])
        # The moves of a token outside of an entity; of them, those that are closed to the last token, and to spaces.
        self._outside = np.flatnonzero(self._begins | units | self._outs)
        self._upper_outside: _Linear = tuple(np.ascontiguousarray(each[..., self._outside]) for each in self._upper)
        self._not_last = np.flatnonzero(self._begins[self._outside])
        self._not_space = np.flatnonzero(~self._outs[self._outside])
        number = {(move, label): i for i, (move, _, label) in enumerate(moves)}
        # By the number of the move that begins an entity: those that continue and end it.
        self._continues = np.array([number.get(("I", label), -1) for label in self._labels])
        self._ends = np.array([number.get(("L", label), -1) for label in self._labels])
        if (self._continues[self._begins] < 0).any() or (self._ends[self._begins] < 0).any():
            raise ValueError("labels without moves that continue and end an entity")

    def spans(self, documents: Sequence[Any]) -> list[list[SpanOfTokens]]:
        """Return the entities of each document, in their order."""
        bounds = np.cumsum([0, *map(len, documents)])
        if not bounds[-1]:
            return [[] for _ in documents]
        parts = self._lower.predict(self._tok2vec.predict(documents))
        absent, parts = parts[0], parts[1:]
        is_last = np.zeros(len(parts), bool)
        is_last[bounds[1:][np.diff(bounds) > 0] - 1] = True
        is_space = np.concatenate([document.to_array("IS_SPACE").astype(bool) for document in documents])
        scores = self._scores(self._upper_outside, parts[:, 0], absent[1], absent[2])
        scores[np.ix_(is_last, self._not_last)] = -np.inf
        scores[np.ix_(is_space, self._not_space)] = -np.inf
        moves = self._outside[scores.argmax(axis=1)]
        starts = np.flatnonzero(self._begins[moves])
        end_of = dict(zip(starts.tolist(), self._find_ends(parts, starts, moves[starts], is_last), strict=True))
        spans = []
        behind = 0
        for token in np.flatnonzero(~self._outs[moves]).tolist():
            if token >= behind:  # not inside the entity before
                behind = end_of.get(token, token + 1)
                spans.append((token, behind, self._labels[moves[token]]))
        return _by_document(spans, bounds.tolist())

    def _find_ends(
        self,
        parts: NDArray[np.float32],
        starts: NDArray[np.int64],
        moves: NDArray[np.int64],
        is_last: NDArray[np.bool_],
    ) -> list[int]:
        """Return the token behind the end of each entity that begins at a start, whether or not it is reached."""
        ends = np.zeros_like(starts)
        going_on, continued, ended = np.arange(len(starts)), self._continues[moves], self._ends[moves]
        token = starts + 1
        while going_on.size:
            at, first = token[going_on], starts[going_on]
            scores = self._scores(self._upper, parts[at, 0], parts[first, 1], parts[at - 1, 2])
            each = np.arange(len(going_on))
            to_continue, to_end = scores[each, continued[going_on]], scores[each, ended[going_on]]
            # The first of equal moves is taken.
            continues = (to_continue > to_end) | ((to_continue == to_end) & (continued < ended)[going_on])
            continues &= ~is_last[at]
            ends[going_on[~continues]] = at[~continues] + 1
            token[going_on] += 1
            going_on = going_on[continues]
        found: list[int] = ends.tolist()
        return found

    def _scores(self, upper: _Linear, *features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the scores of moves, given the three features; they are added up in spaCy's order."""
        token, first, before = features
        pieces = np.moveaxis(token + first + before + self._bias, -1, 0)
        weights, offsets = upper
        scores: NDArray[np.float32] = reduce(np.maximum, pieces) @ weights
        scores += offsets
        return scores


class _TokenVectors:
    """The layers that give each token a vector that depends on its text.

    The first of them read a token alone, and run once for all tokens that are alike.

    Args:
        model: The layers, from documents to one array.
    """

    def __init__(self, model: Any) -> None:
        self._predict = model.predict
        try:
            in_context, *others = model.layers
            embedding, context = in_context.layers
        except ValueError:
            return
        if tuple(layer.name.partition("(")[0] for layer in embedding.layers) == _EMBEDDING:
            self._features, _, self._lookup, self._mix, _ = embedding.layers
            self._others = [context, *others]
            self._predict = self._predict_distinct

    def predict(self, documents: Sequence[Any]) -> NDArray[np.float32]:
        """Return the vectors of the tokens of all documents."""
        vectors: NDArray[np.float32] = self._predict(documents)
        return vectors

    def _predict_distinct(self, documents: Sequence[Any]) -> Any:
        features = np.concatenate(self._features.predict(documents))
        first, places = _find_distinct(features)
        vectors = self._mix.predict(self._lookup.predict(features[first]))[places]
        found: Any = np.split(vectors, np.cumsum([len(document) for document in documents])[:-1])
        for layer in self._others:
            found = layer.predict(found)
        return found


def _find_distinct(rows: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of rows that differ, and for each row the position of its equal among them.

    >>> _find_distinct(np.array([[7, 1], [5, 1], [7, 1]], np.uint64))
    (array([1, 0]), array([1, 0, 1]))
    """
    # One number per row sorts eight times as fast as rows do; should two rows share one, the rows are sorted.
    factors = 2 * np.arange(rows.shape[1], dtype=np.uint64) + np.uint64(3)
    _, first, places = np.unique(np.cumprod(factors) @ rows.T, return_index=True, return_inverse=True)
    if not np.array_equal(rows[first[places]], rows):
        _, first, places = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, places


def _by_document(spans: Sequence[SpanOfTokens], bounds: Sequence[int]) -> list[list[SpanOfTokens]]:
    """Return the spans of each document, counted from its first token."""
    found: list[list[SpanOfTokens]] = [[] for _ in bounds[1:]]
    number = 0
    for start, end, label in spans:
        while start >= bounds[number + 1]:
            number += 1
        found[number].append((start - bounds[number], end - bounds[number], label))
    return found
