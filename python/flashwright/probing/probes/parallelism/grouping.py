"""Groups of places that wait for each other, by the times of all pairs: a stochastic block model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flashwright.target.arrays import Array, Ints

__all__ = ["DRAWN_IN", "LEAST_MEMBERS", "Levels", "groups", "levels", "rounds"]

# Quantiles of the values beyond which they are drawn in. Chosen: a pair that cleaning struck must not make a group.
DRAWN_IN = (0.005, 0.995)


# Places of a group at least. Chosen: fewer are chance, or a unit that holds so little of the drive that others may hold
# none of the places.
LEAST_MEMBERS = 3
# Sweeps in which places change groups. Chosen: they settle after two or three.
_SWEEPS = 6


@dataclass(frozen=True, eq=False)
class Levels:
    """Mean values inside of groups and between them.

    Attributes
    ----------
    mean : array of (groups, groups)
        NaN for a group of one with itself.
    pairs : array of (groups, groups)
        How many pairs each mean is of.
    members : array of int
        Places of each group.
    error : array of (groups, groups)
        Standard errors of the means; pairs inside of groups scatter by themselves, and those between by themselves.
    """

    mean: Array
    pairs: Array
    members: Ints
    error: Array


def rounds(count: int) -> list[tuple[Ints, Ints]]:
    """All pairs of `count` things in rounds, in each of which a thing occurs once at the most.

    Parameters
    ----------
    count : int
        Two or more.

    Returns
    -------
    list of (first, second)
        One a round; arrays of the same length.

    Examples
    --------
    >>> [list(zip(a.tolist(), b.tolist())) for a, b in rounds(3)]
    [[(0, 1)], [(0, 2)], [(1, 2)]]
    """
    even = count + count % 2
    order = np.roll(np.arange(even), 1 if count % 2 else 0)
    plan = []
    for _ in range(even - 1):
        first, second = order[: even // 2], order[::-1][: even // 2]
        real = (first < count) & (second < count)
        low, high = np.minimum(first, second)[real], np.maximum(first, second)[real]
        plan.append((low.astype(np.int64), high.astype(np.int64)))
        order = np.concatenate([order[:1], order[-1:], order[1:-1]])
    return plan


def levels(values: Array, label: Ints) -> Levels:
    """Means inside of groups and between them.

    Parameters
    ----------
    values : array of (places, places)
        Symmetric; the diagonal does not count.
    label : array of int
        The group of each place, 0 to groups - 1.
    """
    member, total, pairs = _sums(values, label, int(label.max()) + 1)
    with np.errstate(invalid="ignore"):
        mean = total / np.where(pairs > 0, pairs, np.nan)
    filled = np.nan_to_num(mean)
    left = values - filled[label][:, label]
    # Each pair stands in both halves.
    halves = pairs - np.diag(np.diag(pairs)) / 2
    off = ~np.eye(label.size, dtype=bool)
    same = (label[:, None] == label[None]) & off
    inside = float(left[same].std()) if same.any() else 0.0
    between = float(left[off & ~same].std()) if (off & ~same).any() else 0.0
    spread = np.where(np.eye(mean.shape[0], dtype=bool), inside, between)
    error = spread / np.sqrt(np.maximum(halves, 1))
    return Levels(mean, halves, member.sum(axis=0).astype(np.int64), error)


def _sums(values: Array, label: Ints, count: int) -> tuple[Array, Array, Array]:
    """Membership, sums of the values between groups, and how many these are."""
    values = values - np.diag(np.diag(values))
    member = np.zeros((label.size, count))
    member[np.arange(label.size), label] = 1
    size = member.sum(axis=0)
    return member, member.T @ values @ member, np.outer(size, size) - np.diag(size)


def _sweep(values: Array, label: Ints, count: int) -> Ints:
    """Each place in the group whose levels its row fits best."""
    for _ in range(_SWEEPS):
        member, total, pairs = _sums(values, label, count)
        mean = total / np.maximum(pairs, 1)
        others = member.sum(axis=0)[None] - member
        row = (values @ member) / np.maximum(others, 1)
        # The sum over groups of others * (row - level)^2 but for what is the same at every level.
        misfit = others @ np.square(mean).T - 2 * (others * row) @ mean.T
        better = misfit.argmin(axis=1)
        if np.array_equal(better, label):
            break
        label = better
    return np.unique(label, return_inverse=True)[1].astype(np.int64)


def _cost(values: Array, label: Ints) -> float:
    """Minus twice the integrated classification likelihood."""
    count = int(label.max()) + 1
    _, total, pairs = _sums(values, label, count)
    number = label.size * (label.size - 1) / 2
    left = (np.square(values).sum() - (np.square(total) / np.maximum(pairs, 1)).sum()) / 2
    # What is exact to a thousandth of the spread of all is exact.
    left = max(float(left), 1e-6 * float(np.square(values).sum()) / 2, 1e-12)
    labels = 2 * label.size * np.log(count)
    return float(number * np.log(left / number) + count * (count + 1) / 2 * np.log(number) + labels)


def groups(values: Array) -> Ints:
    """Which places belong together.

    Parameters
    ----------
    values : array of (places, places)
        Symmetric, such as logarithms of how long two reads took; the diagonal does not count.

    Returns
    -------
    array of int
        The group of each place, 0 to groups - 1; one group where all pairs are alike.

    Examples
    --------
    >>> unit = np.arange(24) % 3
    >>> took = 1.0 + (unit[:, None] == unit) + np.random.default_rng(1).normal(0, 0.1, (24, 24))
    >>> found = groups((took + took.T) / 2)
    >>> len(set(zip(unit.tolist(), found.tolist()))), int(found.max()) + 1
    (3, 3)
    """
    from scipy.cluster.hierarchy import cut_tree, linkage
    from scipy.spatial.distance import squareform

    size = values.shape[0]
    best = np.zeros(size, np.int64)
    if size < 8:
        return best
    off = ~np.eye(size, dtype=bool)
    low, high = np.quantile(values[off], DRAWN_IN)
    values = np.clip(values, low, high) - float(np.median(values[off]))
    values[~off] = 0.0
    if float(np.ptp(values[off])) == 0:
        return best
    # Places whose rows are alike lie together.
    rows = values - values.sum(axis=1, keepdims=True) / (size - 1)
    rows[~off] = 0.0
    norm = np.maximum(np.sqrt(np.square(rows).sum(axis=1)), 1e-12)
    apart = 1 - (rows @ rows.T) / np.outer(norm, norm)
    apart[~off] = 0.0
    tree = linkage(squareform((apart + apart.T) / 2, checks=False), "average")
    least = _cost(values, best)
    for count in range(2, size // 4 + 1):
        label = _sweep(values, cut_tree(tree, count)[:, 0].astype(np.int64), count)
        cost = _cost(values, label)
        if cost < least:
            best, least = label, cost
    return best
