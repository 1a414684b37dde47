"""Format whether a figure meets its target, in the same words in all benchmarks."""


def at_most(what: str, value: float, target: float) -> str:
    """Return a line about a figure that is better the smaller it is.

    Example:
        >>> at_most("seconds", 1.9, 2.5)
        'met     seconds: 1.9, target at most 2.5'
    """
    return check(f"{what}: {value:.4g}, target at most {target:.4g}", is_met=value <= target)


def at_least(what: str, value: float, target: float) -> str:
    """Return a line about a figure that is better the larger it is.

    Example:
        >>> at_least("samples per second", 4.53, 5.1)
        'MISSED  samples per second: 4.53, target at least 5.1'
    """
    return check(f"{what}: {value:.4g}, target at least {target:.4g}", is_met=value >= target)


def check(what: str, *, is_met: bool) -> str:
    """Return a line about a target that holds or not.

    Example:
        >>> check("equal scores", is_met=True)
        'met     equal scores'
    """
    return f"{'met   ' if is_met else 'MISSED'}  {what}"
