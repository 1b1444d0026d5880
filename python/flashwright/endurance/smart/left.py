"""How much life is used, by the normalised and the raw value of one attribute."""

from __future__ import annotations

__all__ = ["left_by", "used_by"]


def left_by(
    value: float | None,
    raw: float | None,
    *,
    of_used: bool = False,
    still: bool = False,
    rated: float | None = None,
) -> tuple[float | None, str]:
    """Share of the life that is used by an attribute whose name says that it is the life left.

    Normalised values count down from 100 on most drives. On others they stay at 100, or at 0, and the raw value has the
    percentage: left, or on some drives used.

    Parameters
    ----------
    value : float or None
        Normalised.
    raw : float or None
        Raw, if it is one number.
    of_used : bool, optional
        Whether the raw value is known to be the percentage used.
    still : bool, optional
        Whether no normalised value of the drive has moved.
    rated : float, optional
        Mean over rated erases, as a witness.

    Returns
    -------
    tuple of float or None, and str
        The share, and by which rule; or None and why not, which is empty where the drive just does not say.

    Examples
    --------
    >>> left_by(100, 71)[0], left_by(88, 88)[0], left_by(83, 17)[0]
    (0.29, 0.12, 0.17)
    """
    percent = raw if raw is not None and raw <= 100 else None
    if of_used:
        if value is not None and 1 <= value <= 99:
            return (100 - value) / 100, "normalised value, % left"
        if raw is not None and raw <= 255:
            return raw / 100, "raw value, % used"
    if value is not None and 1 <= value <= 99:
        if percent is not None and 1 <= percent <= 99 and _apart(value, percent):
            return (
                (100 - value) / 100,
                f"normalised value, % left; the raw value {percent:.0f} says something else",
            )
        return (100 - value) / 100, "normalised value, % left"
    stands = "" if value is None else f": its normalised value stands at {value:.0f}"
    if percent is not None and 1 <= percent <= 99:
        if value == 100 and percent <= 1 and rated is None:
            return None, f"raw value {percent:.0f}, normalised value 100: 1 % left or 1 % used"
        if value == 100 and percent <= 1 and rated is not None and rated < 0.5:
            return percent / 100, "raw value, % used, as the mean erases confirm"
        return (100 - percent) / 100, f"raw value, % left{stands}"
    if percent == 100 and (value != 0 or still):
        return 0.0, f"raw value, % left{stands}"
    if value == 100 and not (percent == 0 and still):
        return 0.0, "normalised value, % left"
    if value == 0 and percent in (100, None) and not still:
        return 1.0, "normalised value, % left"
    if value == 0 and percent == 0 and not still:
        return 1.0, "normalised and raw value, % left"
    if value is None and percent == 0:
        return 1.0, "raw value, % left"
    if value in (0, 100):
        return None, f"its values stand at {value:.0f} and {raw or 0:.0f}, which says nothing"
    return None, ""


def used_by(value: float | None, raw: float | None) -> tuple[float | None, str]:
    """Share of the life that is used by an attribute whose name says so.

    The raw value has the percentage; the normalised one counts down from 100, or does not move.

    Examples
    --------
    >>> used_by(100, 10)[0], used_by(65, 35)[0], used_by(65, None)[0], used_by(100, 0)[0]
    (0.1, 0.35, 0.35, 0.0)
    """
    moved = value is not None and 1 <= value <= 99
    if raw is not None and 1 <= raw <= 255:
        if moved and value is not None and raw <= 100 and _apart(value, raw):
            return (
                raw / 100,
                f"raw value, % used; the normalised value {value:.0f} says something else",
            )
        return raw / 100, "raw value, % used"
    if moved and value is not None:
        return (100 - value) / 100, "normalised value, % left"
    if raw == 0:
        return 0.0, "raw value, % used"
    if value == 100:
        return 0.0, "normalised value, % left"
    return None, ""


def _apart(value: float, percent: float) -> bool:
    """Whether two percentages of one attribute neither agree nor add up to 100."""
    return abs(value - percent) > 1.5 and abs(100 - percent - value) > 1.5
