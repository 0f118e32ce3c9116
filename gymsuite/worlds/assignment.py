"""Which of these belongs to which of those, at the least total cost."""

from collections.abc import Sequence


def assign(costs: Sequence[Sequence[int]]) -> list[int]:
    """For each row its column, each column at most once, with the least total cost.

    There are at least as many columns as rows. Shortest augmenting paths with potentials
    (Jonker and Volgenant 1987), O(rows^2 * columns).
    """
    rows = len(costs)
    columns = len(costs[0]) if costs else 0
    row_price = [0] * (rows + 1)
    column_price = [0] * (columns + 1)
    owner = [0] * (columns + 1)  # the row that holds a column; rows and columns count from 1
    for row in range(1, rows + 1):
        came_from = _path(costs, row, row_price, column_price, owner)
        column = came_from.pop()
        while column:
            before = came_from[column]
            owner[column] = owner[before]
            column = before
    result = [-1] * rows
    for column in range(1, columns + 1):
        if owner[column]:
            result[owner[column] - 1] = column - 1
    return result


def _path(
    costs: Sequence[Sequence[int]],
    row: int,
    row_price: list[int],
    column_price: list[int],
    owner: list[int],
) -> list[int]:
    """Where each column was reached from, and last the free column that the path ends in."""
    columns = len(column_price) - 1
    owner[0] = row
    column = 0
    infinite = 1 << 60
    slack = [infinite] * (columns + 1)
    came_from = [0] * (columns + 1)
    seen = [False] * (columns + 1)
    while owner[column]:
        seen[column] = True
        held = owner[column]
        best, following = infinite, 0
        for other in range(1, columns + 1):
            if seen[other]:
                continue
            reduced = costs[held - 1][other - 1] - row_price[held] - column_price[other]
            if reduced < slack[other]:
                slack[other], came_from[other] = reduced, column
            if slack[other] < best:
                best, following = slack[other], other
        for other in range(columns + 1):
            if seen[other]:
                row_price[owner[other]] += best
                column_price[other] -= best
            else:
                slack[other] -= best
        column = following
    return [*came_from, column]
