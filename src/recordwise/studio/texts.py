"""Every text that the page shows in a state, by its key.

The page computes the same texts in JavaScript and puts each into an element whose ``data-key`` is the key; tests compare all of
them. So that both find the same digits, numbers are added one after the other in the order of the file, and nothing else is done
with them than is written here.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import accumulate
from operator import add

from recordwise.errors import own_argument_errors
from recordwise.exact.text import screen_error, screen_number, screen_share, screen_whole
from recordwise.studio.state import StudioState
from recordwise.studio.trade import Point, PointLosses, Trade

TYPICAL, HIGH = 0.5, 0.9
"""The quantiles of the losses in a class of records."""
HIGHEST = 0.99
NEARLY = 1 + 1e-9
MOST_YEARS = 1000


@own_argument_errors
def view(trade: Trade, state: StudioState) -> dict[str, str]:
    """Return every text of the page.

    Args:
        trade: The trade file.
        state: The state.

    Returns:
        The texts by key: ``goal``, ``loss/CLASS/typical``, ``error/STATISTIC/CLASS`` and so on, with places counted from 0.
    """
    now = state.now
    chosen = points(trade, now.position, now.mechanisms)
    losses = total_losses(trade, chosen)
    found = {"label": trade.label, "goal": trade.positions[now.position].goal}
    found["within"] = screen_number(trade.positions[now.position].within)
    found["draw"] = f"{now.draw + 1} of {trade.draws}"
    found.update(_losses(trade, losses))
    for number, point in enumerate(chosen):
        found[f"goal/{number}"] = trade.statistics[number].goals[now.position]
        found.update(_cells(trade, number, point))
    found.update(_places(trade, chosen, now.draw))
    found.update(_side("now", trade, now.position, now.mechanisms))
    for number, kept in enumerate(now.kept):
        found.update(_side(str(number), trade, kept.position, kept.mechanisms))
        found[f"side/{number}/name"] = kept.name
    found.update(_baselines(trade))
    return found


@own_argument_errors
def differences(trade: Trade, state: StudioState, shown: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """Return where a page shows other texts than Python.

    Args:
        trade: The trade file.
        state: The state of the page.
        shown: The texts of the page by key.

    Returns:
        For each key that differs, is missing or is unknown here, the text of the page and that of Python.
    """
    wanted = view(trade, state)
    keys = sorted(key for key in {*wanted, *shown} if wanted.get(key) != shown.get(key))
    return {key: (shown.get(key), wanted.get(key)) for key in keys}


def points(trade: Trade, position: int, mechanisms: dict[str, str]) -> tuple[Point, ...]:
    """Return the chosen point of each statistic."""
    return tuple(
        next(own for own in each.candidates if own.name == mechanisms[each.key]).points[position]
        for each in trade.statistics
    )


def total_losses(trade: Trade, chosen: Sequence[Point]) -> PointLosses:
    """Return the cost of all statistics, the others first."""
    every = [trade.others, *(each.losses for each in chosen)]
    return PointLosses(
        records=_added([each.records for each in every]),
        examples=_added([each.examples for each in every]),
        firms=_added([each.firms for each in every]),
        extremes=_added([each.extremes for each in every]),
    )


def quantile(losses: Sequence[float], weights: Sequence[float], share: float) -> float:
    """Return the smallest loss that at least a share of the weight does not exceed; equal losses in their order."""
    if not losses:
        return 0.0
    order = sorted(range(len(losses)), key=losses.__getitem__)
    risen = list(accumulate((weights[place] for place in order), add))
    reached = next(at for at, each in enumerate(risen) if each >= share * risen[-1])
    return losses[order[reached]]


def chance(trade: Trade, loss: float) -> str:
    """Return how often the best test finds a record that is in the table, at 5% false alarms."""
    reached = len([each for each in trade.chances if each <= loss])
    return "> 99%" if reached == len(trade.chances) else f"{reached + 5}%"


def years(trade: Trade, losses: PointLosses) -> str:
    """Return how often the budget allows this release: at most so often, since not every possible record is tried."""
    if trade.budget is None:
        return "no budget"
    pairs = [
        *zip([each.budget for each in trade.records], losses.records),
        *zip([each.budget for each in trade.examples], losses.examples),
        *zip(trade.budget.extremes, losses.extremes),
    ]
    ratios = [left / loss for left, loss in pairs if left is not None and loss > 0]
    times = int(min([*ratios, MOST_YEARS + 1.0]) * NEARLY)
    return f"more than {screen_whole(MOST_YEARS)}" if times > MOST_YEARS else screen_whole(times)


def _added(lists: Sequence[Sequence[float]]) -> tuple[float, ...]:
    # Not sum(), which compensates rounding since Python 3.12; JavaScript does not.
    return tuple(reduce(add, column) for column in zip(*lists))


def _losses(trade: Trade, losses: PointLosses) -> Iterator[tuple[str, str]]:
    for number, each in enumerate(trade.record_classes):
        rows = [at for at, record in enumerate(trade.records) if record.size_class == number]
        own, weights = [losses.records[at] for at in rows], [trade.records[at].weight for at in rows]
        typical = quantile(own, weights, TYPICAL)
        yield f"loss/{number}/share", screen_share(each.share)
        yield f"loss/{number}/typical", screen_number(typical)
        yield f"loss/{number}/high", screen_number(quantile(own, weights, HIGH))
        yield f"loss/{number}/chance", chance(trade, typical)
    for kind, found in (("example", losses.examples), ("firm", losses.firms)):
        for number, loss in enumerate(found):
            yield f"{kind}/{number}/loss", screen_number(loss)
            yield f"{kind}/{number}/chance", chance(trade, loss)
    yield "years", years(trade, losses)


def _cells(trade: Trade, number: int, point: Point) -> Iterator[tuple[str, str]]:
    yield f"mechanism/{number}", point.mechanism
    for at, error in enumerate(point.errors):
        yield f"error/{number}/{at}", screen_error(error)
    for name, shares in (("status", point.statuses), ("table", point.by_table)):
        for at, own in enumerate(shares):
            for status, share in enumerate(own):
                yield f"{name}/{number}/{at}/{status}", screen_share(share)
    for status, share in enumerate(point.all_cells):
        yield f"all/{number}/{status}", screen_share(share)
    for at, share in enumerate(point.by_state):
        yield f"state/{number}/{at}", screen_share(share)
    for rank, at in enumerate(ranked(point.by_state)):
        yield f"rank/{number}/{rank}", trade.statistics[number].states[at].name


def ranked(shares: Sequence[float]) -> list[int]:
    """Return the places of states, the best first, ties in order."""
    return sorted(range(len(shares)), key=lambda at: -shares[at])


def _places(trade: Trade, chosen: Sequence[Point], draw: int) -> Iterator[tuple[str, str]]:
    for number, place in enumerate(trade.places):
        for at, cell in enumerate(place.cells):
            yield f"place/{number}/{at}/exact", screen_whole(cell.total)
            yield f"place/{number}/{at}/drawn", screen_whole(chosen[cell.statistic].drawn[draw][number][at])


def _side(name: str, trade: Trade, position: int, mechanisms: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield one column of the settings side by side."""
    chosen = points(trade, position, mechanisms)
    losses = total_losses(trade, chosen)
    weights = [each.weight for each in trade.records]
    yield f"side/{name}/goal", trade.positions[position].goal
    for rank, share in (("typical", TYPICAL), ("highest", HIGHEST)):
        loss = quantile(losses.records, weights, share)
        yield f"side/{name}/{rank}", screen_number(loss)
        yield f"side/{name}/{rank}/chance", chance(trade, loss)
    for number, loss in enumerate(losses.examples):
        yield f"side/{name}/example/{number}", screen_number(loss)
    for number, point in enumerate(chosen):
        yield f"side/{name}/mechanism/{number}", mechanisms[trade.statistics[number].key]
        yield f"side/{name}/all/{number}", screen_share(point.all_cells[0])
    yield f"side/{name}/years", years(trade, losses)


def _baselines(trade: Trade) -> Iterator[tuple[str, str]]:
    for number, each in enumerate(trade.baselines):
        yield f"baseline/{number}/withheld", screen_share(each.withheld_of_all)
        for at, (withheld, error) in enumerate(zip(each.withheld, each.errors)):
            yield f"baseline/{number}/{at}/withheld", screen_share(withheld)
            yield f"baseline/{number}/{at}/error", "none" if error is None else screen_error(error)
