"""Cover long texts by windows, whose token vectors are averaged over the whole text."""

from collections.abc import Sequence


def split_evenly(length: int, limit: int, starts: Sequence[bool] | None = None) -> list[tuple[int, int]]:
    """Split a sequence into windows of at most `limit` items, of about equal size, without overlap.

    Args:
        limit: Maximum number of items in a window, at least 1.
        starts: True for each item at which a window should start, such as the first token of a word; None allows all.

    >>> split_evenly(5, 8), split_evenly(9, 4)
    ([(0, 5)], [(0, 3), (3, 6), (6, 9)])
    >>> split_evenly(6, 4, [True, False, True, False, True, True])
    [(0, 2), (2, 6)]
    """
    windows: list[tuple[int, int]] = []
    start = 0
    while length - start > limit:
        size = -(-(length - start) // -(-(length - start) // limit))
        end = start + size
        if starts is not None:
            # A word cut in two would be two other words.
            end = next((i for i in range(end, start, -1) if starts[i]), end)
        windows.append((start, end))
        start = end
    return [*windows, (start, length)]


def split_bytes(text: str, limit: int) -> list[str]:
    """Split a text into windows of at most `limit` bytes, of about equal size, at white space if possible.

    Args:
        limit: Maximum number of bytes in a window, at least 4.

    >>> split_bytes("one two three", 20), split_bytes("one two three", 8)
    (['one two three'], ['one two', 'three'])
    """
    sizes = [len(character.encode("utf-8", "replace")) for character in text]
    if sum(sizes) <= limit:
        return [text]
    windows: list[str] = []
    start, left = 0, sum(sizes)
    while start < len(text):
        target = -(-left // -(-left // limit))
        end, size = start, 0
        while end < len(text) and size + sizes[end] <= min(max(target, sizes[end]), limit):
            size += sizes[end]
            end += 1
        if end < len(text):
            space = max(text.rfind(" ", start, end + 1), text.rfind("\n", start, end + 1))
            end = space if space > start else end
        left -= sum(sizes[start:end])
        if text[start:end].strip():
            windows.append(text[start:end].strip())
        start = end
    return windows or [text[:1]]
