"""Bugs of the kind that break guarantees, planted in the real code where such a bug would live, and what catches each."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

import recordwise.engines.compile.records as collapse
import recordwise.engines.duckdb.connection as connection
import recordwise.engines.duckdb.engine as duckdb_engine
import recordwise.engines.engine as passes
import recordwise.engines.registry as registry
import recordwise.engines.sources.declared as declared
import recordwise.engines.sources.files as untyped
import recordwise.plan.cost as analysis
import recordwise.plan.cost as parts
import recordwise.plan.keys.cells as cells_of_keys
import recordwise.plan.schema as column_types
import recordwise.plan.sources as code_files
import recordwise.plan.sources as frames
import recordwise.plan.statistics.plain as plain
import recordwise.release.release as release
import recordwise.session.carried as following
import recordwise.session.owner as looks
import recordwise.session.publisher as publisher
import recordwise.session.stages as stages
from recordwise.audit import checks
from recordwise.audit.audit import CELLS
from recordwise.engines.compile.totals import found_cells_tree, typed_cells
from recordwise.engines.duckdb.engine import DuckDBStore
from recordwise.engines.engine import Engine, Passes
from recordwise.exact.functions import x
from recordwise.ledger.ledger import Ledger
from recordwise.mechanisms import combined, fat_tailed
from recordwise.mechanisms import gaussian as gaussian_noise
from recordwise.mechanisms import transformed as transforming
from recordwise.mechanisms.base import noised
from recordwise.mechanisms.key_selection import SelectionLaw
from recordwise.noise import ConcaveLaw, DiscreteGaussian, LatticeLaw, Secure, sampler
from recordwise.plan.keys.keys import Selection
from recordwise.plan.plan import Sensitive, TableTotals
from recordwise.plan.statistics.totals import SumSteps
from recordwise.policy import Measure, Policy, selection
from recordwise.policy import series as histories
from recordwise.policy.firms import FirmPolicy

Patch = pytest.MonkeyPatch
NARROWER = Fraction(9, 10)
REFUSALS, FORKS, THREADS, SERIES = "refusals", "forked processes", "threads", "two periods"
REENTRY, STAGES = "draws within a draw", "two stages"
CARRIED = "carried noise"


@dataclass(frozen=True)
class Bug:
    """A bug, where it is planted, and what catches it: names of the audit's catalogue, or one of its other checks."""

    name: str
    place: str
    plant: Callable[[Patch], None]
    caught_by: tuple[str, ...]
    sign: str = "lost at least"
    """What the audit says: a bound above the policy, or the words of a problem."""
    cells: int = 5_000
    """With the record, and as many without, in each of two releases; few where a bug is plain. A miss is rarer than 1e-6."""
    refusal: Any = None
    """Which of the refusals catches it: the others take their time and need not be tried."""

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    @contextmanager
    def planted(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            self.plant(patch)
            yield


def narrower(law: LatticeLaw) -> LatticeLaw:
    """The same law with nine tenths of its scale."""
    if isinstance(law, DiscreteGaussian):
        return DiscreteGaussian(law.sigma * NARROWER)
    return ConcaveLaw(law.exponent.after(x / NARROWER))


def narrow_noise(patch: Patch) -> None:
    for module in (gaussian_noise, fat_tailed, transforming):
        patch.setattr(module, "noised", lambda points, law, source: noised(points, narrower(law), source))


def narrow_selection(patch: Patch) -> None:
    exact = SelectionLaw.noise.fget  # type: ignore[attr-defined]
    patch.setattr(SelectionLaw, "noise", property(lambda law: narrower(exact(law))))


def another_column(patch: Patch) -> None:
    patch.setattr(plain, "policy_measure", lambda name, schema: Measure("second" if name == "value" else name))


def float_noise(patch: Patch) -> None:
    def continuous(points: Any, law: LatticeLaw, source: Any) -> Any:
        return points + np.random.default_rng().laplace(scale=np.sqrt(law.variance / 2), size=points.shape)

    patch.setattr(fat_tailed, "noised", continuous)


def reused_seed(patch: Patch) -> None:
    patch.setattr("recordwise.noise.randomness.os.urandom", lambda count: bytes(count))


def generator_of_the_process(patch: Patch) -> None:
    stream = np.random.Philox(int.from_bytes(os.urandom(8), "little"))

    def fill(source: Secure, words: Any) -> None:
        words[...] = stream.random_raw(words.size)

    patch.setattr(Secure, "fill", fill)


def smaller_policy(patch: Patch) -> None:
    exact: Any = vars(publisher)["firm_policy"]

    def four_fifths(plan: Any) -> FirmPolicy:
        return FirmPolicy(parts=tuple(replace(part, policy=part.policy * Fraction(4, 5)) for part in exact(plan).parts))

    patch.setattr(publisher, "firm_policy", four_fifths)


def forgotten_statistic(patch: Patch) -> None:
    exact = analysis.statistic_policy

    def first_is_free(query: Any, statistic: Any, level: Any, schema: Any, *, tight: bool) -> Policy:
        return Policy() if statistic.alias == "n" else exact(query, statistic, level, schema, tight=tight)

    patch.setattr(parts, "statistic_policy", first_is_free)


def policy_of_the_file(patch: Patch) -> None:
    exact = release.write_json

    def a_little_less(content: dict[str, Any], path: Any) -> None:
        if "tight" in content:
            content = content | {"tight": (Policy.from_json(content["tight"]) * Fraction(99, 100)).to_json()}
        exact(content, path)

    patch.setattr(release, "write_json", a_little_less)


def keys_from_data(patch: Patch) -> None:
    def table(held: Passes, plan: Any, base: Any, asked: Any, names: Any, *more: Any) -> TableTotals:
        found = held.store.of_cells(found_cells_tree(base, asked, names, asked.totals[0]))
        return held._totals_at(typed_cells(found, asked, held.schema), base, asked, names, *more)

    patch.setattr(Passes, "_table", table)


def dropped_empty_cells(patch: Patch) -> None:
    exact = Passes._totals_at

    def with_records(held: Passes, *given: Any) -> TableTotals:
        found = exact(held, *given)
        opened = found.exact.reveal()
        kept = np.asarray(next(iter(opened.totals.values()))) != 0
        totals = {total: values[kept] for total, values in opened.totals.items()}
        shorter = replace(opened, cells=int(kept.sum()), totals=totals)
        return replace(found, cells=found.cells.filter(pa.array(kept)), exact=Sensitive(shorter))

    patch.setattr(Passes, "_totals_at", with_records)


def delta_omitted(patch: Patch) -> None:
    def policy(chosen: Selection, schema: Any) -> Policy:
        return selection(chosen.law.sigma, chosen.piece_thresholds(schema), ())

    patch.setattr(Selection, "policy", policy)


def duplicate_keys(patch: Patch) -> None:
    def every_row(columns: Any) -> Any:
        return np.argsort(columns[0].ranks, kind="stable")

    patch.setattr(cells_of_keys, "sorted_distinct", every_row)


def unclamped(patch: Patch) -> None:
    patch.setattr(plain.Sum, "totals", lambda self, schema: (SumSteps(self.measure),))


def unchecked_parts(patch: Patch) -> None:
    patch.setattr(duckdb_engine, "check_parquet", lambda source, schema: None)


def trusted_statistics(patch: Patch) -> None:
    patch.setattr(connection, "TRUSTING", "")


def negligent_mark(patch: Patch) -> None:
    patch.setattr(publisher, "is_private", lambda source: getattr(source, "private", True))


def forgotten_look(patch: Patch) -> None:
    patch.setattr(Ledger, "look", lambda ledger, command, plan=None: None)


def preflight_is_no_look(patch: Patch) -> None:
    entered = looks.Looks.enter

    def without_preflights(self: Any, command: str, queries: Any = (), *, data: str = "confidential") -> None:
        if command != "preflight":
            entered(self, command, queries, data=data)

    patch.setattr(looks.Looks, "enter", without_preflights)


def looks_miscounted(patch: Patch) -> None:
    counted = Ledger.looks

    def one_too_many(ledger: Ledger, *, before: int | None = None) -> dict[str, int]:
        return {command: count + 1 for command, count in counted(ledger, before=before).items()}

    patch.setattr(Ledger, "looks", one_too_many)


def label_of_a_list_ignored(patch: Patch) -> None:
    for module in (frames, code_files):
        patch.setattr(module, "refuse_own_table", lambda table, name: None)


def folder_of_a_list_ignored(patch: Patch) -> None:
    patch.setattr(code_files, "refuse_own_file", lambda path: None)


def sizes_of_any_ledger(patch: Patch) -> None:
    patch.setattr(publisher, "check_release_sizes", lambda plan, ledger: None)


def whole_budget_for_each_level(patch: Patch) -> None:
    exact = analysis.mechanisms_of_cells

    def without_share(statistic: Any, level: Any, *given: Any) -> Any:
        return exact(statistic, replace(level, share=Fraction(1)), *given)

    patch.setattr(parts, "mechanisms_of_cells", without_share)


def lowest_band_for_all(patch: Patch) -> None:
    """Every cell is drawn as if its size were the floor, and charged by its own band."""
    exact = analysis._mechanisms_by_band

    def at_the_floor(statistic: Any, *given: Any) -> Any:
        drawn = statistic.mechanism.at_size(statistic.mechanism.floor)
        return tuple(replace(each, mechanism=drawn) for each in exact(statistic, *given))

    patch.setattr(analysis, "_mechanisms_by_band", at_the_floor)


def band_edge_off_by_one(patch: Patch) -> None:
    """A cell is charged by the policy of the band above its own."""
    exact: Any = vars(analysis)["in_band"]
    patch.setattr(analysis, "in_band", lambda table, bands: exact(table, [band - 1 for band in bands if band]))


def size_from_the_records(patch: Patch) -> None:
    """The noise of a cell follows its exact total instead of its public size."""
    exact: Any = publisher._prepare

    def by_totals(plan: Any, found: Any, confidence: float, stage: Any) -> Any:
        prepared = exact(plan, found, confidence, stage)
        (each,) = prepared.drawn
        sized, totals = each.statistic.mechanism, next(iter(found.exact.reveal().totals.values()))
        band = np.searchsorted([float(edge) for edge in sized.edges(1e6)], np.abs(totals), side="right") - 1
        band = np.maximum(band, 0)
        served = [
            analysis.CellMechanism(sized.at_size(edge), analysis.Run(None, np.flatnonzero(band == number)))
            for number, edge in enumerate(sized.edges(1e6))
            if np.any(band == number)
        ]
        return replace(prepared, drawn=(replace(each, served=tuple(served)),))

    patch.setattr(publisher, "_prepare", by_totals)


def any_type_for_a_group(patch: Patch) -> None:
    patch.setattr(column_types, "is_value", lambda value, kind: True)
    patch.setattr(column_types, "fits", lambda value, kind: True)


def types_from_values(patch: Patch) -> None:
    for module in (registry, declared, untyped):
        patch.setattr(module, "is_untyped", lambda given: False)


def racing_passes(patch: Patch) -> None:
    """Nobody waits for a turn, all use the same names, and threads are switched when it hurts: when each has filled its cells
    and none has read them. One statement at a time, as DuckDB itself sees to."""
    together, statement = threading.Barrier(checks.THREADS), threading.RLock()
    opened, keep, coded = Engine.__init__, DuckDBStore.store_cells, Passes._fetch_cells

    def without_turns(engine: Engine, *given: Any, **more: Any) -> None:
        opened(engine, *given, **more)
        engine._turn = nullcontext()  # type: ignore[assignment]

    def keep_over(store: DuckDBStore, name: str, tree: Any) -> None:
        with statement:
            store.drop(name)
            keep(store, name, tree)
        together.wait(60)

    def read_together(*given: Any) -> Any:
        found = coded(*given)
        together.wait(60)
        return found

    def one_at_a_time(method: Callable[..., Any]) -> Callable[..., Any]:
        def alone(*given: Any) -> Any:
            with statement:
                return method(*given)

        return alone

    for name in ("lend", "drop", "of_cells"):
        patch.setattr(DuckDBStore, name, one_at_a_time(getattr(DuckDBStore, name)))
    patch.setattr(Engine, "__init__", without_turns)
    patch.setattr(passes, "unique_name", lambda stem: stem)
    patch.setattr(DuckDBStore, "store_cells", keep_over)
    patch.setattr(Passes, "_fetch_cells", read_together)


def shared_memory(patch: Patch) -> None:
    """The memory of a draw is lent to whoever asks."""
    one = sampler._Room.of(1 << 15)
    patch.setattr(sampler, "_lent_room", lambda size: one)


def added_instead_of_largest(patch: Patch) -> None:
    patch.setitem(collapse._RULES, "max", exp.Sum)


NARROW_IN = (
    "count",
    "count of firms",
    "gaussian",
    "gaussian on few steps",
    "gaussian in cents",
    "clamped",
    "unit split",
    "unit split of two measures",
    "unit split by group",
    "a mechanism for each group",
    "laplace",
    "square root",
    "fourth root, laplace",
    "logarithm",
    "logarithm, laplace",
    "transform of one's own",
    "generalized gaussian",
    "polylog",
    "pareto",
    "additive",
    "count and two sums",
    "average",
    "two levels",
    "negative values",
    "signed logarithm",
    "derived sum, combination and ratio",
    "collapsed rows",
    "sized",
    "refined",
    "refined on few steps",
    "public tier",
    "public tier on few steps",
)


def charged_to_the_first_record(patch: Patch) -> None:
    patch.setattr(histories, "record_at", lambda history, period, policy: history[min(history)])


def resumed_by_drawing(patch: Patch) -> None:
    def run(self: publisher.Publisher, plan: Any, refining: Any = None) -> Any:
        return self.run(plan, rng=Secure(), confidence=0.95, tell=lambda _: None)

    patch.setattr(publisher.Publisher, "resume", run)


def forgotten_release(patch: Patch) -> None:
    patch.setattr(Ledger, "charge_of", lambda ledger, release: None)


def words_in_the_digest(patch: Patch) -> None:
    whole: Any = vars(publisher)["release_identity"]

    def with_words(plan: Any, described: Any, *more: Any, **named: Any) -> Any:
        found = whole(plan, described, *more, **named)
        return replace(found, digest=f"{found.digest} {[query.title for query in plan.queries]}")

    patch.setattr(publisher, "release_identity", with_words)


def any_spelling_of_a_period(patch: Patch) -> None:
    import recordwise.ledger.entries as periods

    for module in (histories, periods):
        patch.setattr(module, "period_length", lambda text: "year")


def a_series_on_a_spent_ledger(patch: Patch) -> None:
    import recordwise.ledger.ledger as ledgers

    patch.setattr(ledgers, "period_problem", lambda *given, **more: None)


def sigmas_subtracted(patch: Patch) -> None:
    def release(self: Any, totals: Any, *, step: Any = 1, rng: Any = None) -> Any:
        left = gaussian_noise.Gaussian(sigma=self.before.noise_sigma - self.noise_sigma)
        return self.combine(self.earlier, left.release(totals, step=step, rng=rng))

    patch.setattr(combined.Continued, "release", release)


def sigmas_of_a_tier_subtracted(patch: Patch) -> None:
    def release(self: Any, totals: Any, *, step: Any = 1, rng: Any = None) -> Any:
        left = gaussian_noise.Gaussian(sigma=self.noise_sigma - self.before.noise_sigma)
        return left.release(np.rint(self.earlier / float(step)).astype(np.int64), step=step, rng=rng)

    patch.setattr(gaussian_noise.OnTop, "release", release)


def tier_told_as_one_draw(patch: Patch) -> None:
    patch.setattr(gaussian_noise, "loss_factor", lambda *_: Fraction(1))


def wrong_weight(patch: Patch) -> None:
    patch.setattr(combined.Refined, "weight", property(lambda _: Fraction(1, 2)))


def any_records(patch: Patch) -> None:
    for module in (stages, following):
        patch.setattr(module, "check_totals", lambda *_, **more: None)


def carried_on_whole_numbers(patch: Patch) -> None:
    def release(self: Any, totals: Any, *, step: Any = 1, rng: Any = None) -> Any:
        drawn = self.more.release(totals, step=step, rng=rng)
        moved = float(self.carry) * (self.earlier - np.asarray(self.totals, np.float64))
        return replace(drawn, combined=moved + drawn.values())

    patch.setattr(combined.Following, "release", release)


def carried_by_the_rest(patch: Patch) -> None:
    def release(self: Any, totals: Any, *, step: Any = 1, rng: Any = None) -> Any:
        drawn = self.more.release(totals, step=step, rng=rng)
        kept = float(1 - self.carry) if self.carry < 1 else 1.0
        return replace(drawn, combined=kept * (self.earlier - np.asarray(self.totals, np.float64)) + drawn.values())

    patch.setattr(combined.Following, "release", release)


def movers_as_stayers(patch: Patch) -> None:
    patch.setattr(histories, "same_cell", lambda *_: True)


def revised_where_changed(patch: Patch) -> None:
    exact = combined.Following.release

    def release(self: Any, totals: Any, *, step: Any = 1, rng: Any = None) -> Any:
        found = exact(self, totals, step=step, rng=rng)
        same = (np.asarray(totals) == np.asarray(self.totals)) & (self.carry == 1)
        return replace(found, combined=np.where(same, self.earlier, found.combined))

    patch.setattr(combined.Following, "release", release)


def leaving_is_free(patch: Patch) -> None:
    patch.setattr(combined.Carried, "going", property(lambda _: Fraction(1, 10**9)))
    patch.setattr(combined, "_prepaid", lambda before, carry: Fraction(1000))


BUGS = (
    Bug("noise scale off by 10%", "the law handed to `noised`", narrow_noise, NARROW_IN, cells=CELLS),
    Bug(
        "selection noise off by 10%",
        "`SelectionLaw.noise`",
        narrow_selection,
        ("found keys, beside others",),
        cells=CELLS,
    ),
    Bug(
        "sensitivity taken from another column",
        "`plan.statistics.plain.policy_measure`",
        another_column,
        ("gaussian", "logarithm"),
    ),
    Bug(
        "float noise",
        "`mechanisms.fat_tailed.noised`, continuous Laplace noise",
        float_noise,
        ("laplace",),
        cells=20_000,
    ),
    Bug(
        "reused seed",
        "`noise.randomness`",
        reused_seed,
        ("count", "gaussian"),
        sign="noise repeats",
    ),
    Bug(
        "forked generator",
        "`Secure.fill`",
        generator_of_the_process,
        (FORKS,),
        sign="same noise",
    ),
    Bug(
        "policy misreported by a fifth",
        "`session.publisher.firm_policy`",
        smaller_policy,
        ("count", "gaussian"),
        cells=CELLS,
    ),
    Bug(
        "policy of one statistic forgotten",
        "`plan.cost.statistic_policy`",
        forgotten_statistic,
        ("count and two sums",),
    ),
    Bug(
        "policy file unlike the ledger",
        "`Release.save`, by a hundredth",
        policy_of_the_file,
        ("count", "gaussian"),
        sign="ledger",
    ),
    Bug(
        "keys taken from data",
        "`Passes._table`",
        keys_from_data,
        ("count", "gaussian"),
    ),
    Bug("delta omitted", "`Selection.policy`", delta_omitted, ("found keys, alone",), cells=20_000),
    Bug(
        "empty cell dropped",
        "`Passes._totals_at`",
        dropped_empty_cells,
        ("count", "gaussian"),
    ),
    Bug(
        "duplicate keys",
        "`plan.keys`",
        duplicate_keys,
        (REFUSALS,),
        sign="was accepted",
        refusal=checks.audit_inputs,
    ),
    Bug("clamp forgotten", "`plan.statistics.plain.Sum.totals`", unclamped, ("clamped",)),
    Bug(
        "rows of a unit added up",
        "`engines.compile.records`, for a rule of the largest",
        added_instead_of_largest,
        ("collapsed rows",),
    ),
    Bug(
        "whole budget for each level",
        "`release.draw`",
        whole_budget_for_each_level,
        ("two levels",),
        cells=20_000,
    ),
    Bug("lowest band for all cells", "`plan.cost._mechanisms_by_band`", lowest_band_for_all, ("sized",)),
    Bug("band edge off by one", "`plan.cost.in_band`", band_edge_off_by_one, ("sized",)),
    Bug("size read off the records", "`session.publisher._prepare`", size_from_the_records, ("sized",)),
    Bug(
        "negligent privacy label",
        "`session.publisher.is_private`",
        negligent_mark,
        (REFUSALS,),
        sign="calls itself private",
        refusal=checks.audit_marks,
    ),
    Bug(
        "forgotten look",
        "`Ledger.look`",
        forgotten_look,
        (REFUSALS,),
        sign="calls itself untuned",
        refusal=checks.audit_marks,
    ),
    Bug(
        "a preflight that is no look",
        "`session.owner.Looks.enter`",
        preflight_is_no_look,
        (REFUSALS,),
        sign="calls itself untuned",
        refusal=checks.audit_marks,
    ),
    Bug(
        "looks miscounted",
        "`Ledger.looks`",
        looks_miscounted,
        (REFUSALS,),
        sign="another number of looks",
        refusal=checks.audit_marks,
    ),
    Bug(
        "label of a list ignored",
        "`plan.sources.refuse_own_table`, Parquet",
        label_of_a_list_ignored,
        (REFUSALS,),
        sign="taken as a public list",
        refusal=checks.audit_lists,
    ),
    Bug(
        "folder of a list ignored",
        "`plan.sources.refuse_own_file`, CSV",
        folder_of_a_list_ignored,
        (REFUSALS,),
        sign="taken as a public list",
        refusal=checks.audit_lists,
    ),
    Bug(
        "sizes of any ledger",
        "`session.publisher.check_release_sizes`",
        sizes_of_any_ledger,
        (REFUSALS,),
        sign="taken as a public list",
        refusal=checks.audit_lists,
    ),
    Bug(
        "wrong type in a threshold",
        "`plan.schema`",
        any_type_for_a_group,
        (REFUSALS,),
        sign="was accepted",
        refusal=checks.audit_types,
    ),
    Bug(
        "a schema that depends on the records",
        "`engines.sources.files.is_untyped`",
        types_from_values,
        (REFUSALS,),
        sign="depends on the records",
        refusal=checks.audit_types,
    ),
    Bug(
        "racing passes",
        "`Engine`",
        racing_passes,
        (THREADS,),
        sign="answer to another thread's query",
    ),
    Bug(
        "memory shared by draws",
        "`noise.sampler._lent_room`",
        shared_memory,
        (REENTRY,),
        sign="changed its noise",
    ),
    Bug(
        "a period charged to the wrong record",
        "`policy.series.record_at`",
        charged_to_the_first_record,
        (SERIES,),
        sign="lost more than the ledger says",
    ),
    Bug(
        "a resumed release drawn again",
        "`Publisher.resume`",
        resumed_by_drawing,
        (SERIES,),
        sign="drawn again",
    ),
    Bug(
        "a retry that pays twice",
        "`Ledger.charge_of`",
        forgotten_release,
        (SERIES,),
        sign="a retry paid twice",
    ),
    Bug(
        "a title that pays twice",
        "`plan.describe.release_identity`",
        words_in_the_digest,
        (SERIES,),
        sign="a retry paid twice",
    ),
    Bug(
        "a period in another spelling",
        "`policy.series.period_length`",
        any_spelling_of_a_period,
        (SERIES,),
        sign="a second budget",
    ),
    Bug(
        "a series on a spent ledger",
        "`ledger.entries.period_problem`",
        a_series_on_a_spent_ledger,
        (SERIES,),
        sign="a second budget",
    ),
    Bug(
        "sigmas of two stages subtracted",
        "`mechanisms.combined.Continued.release`",
        sigmas_subtracted,
        ("refined", "refined on few steps"),
    ),
    Bug(
        "sigmas of a tier subtracted",
        "`mechanisms.gaussian.OnTop.release`",
        sigmas_of_a_tier_subtracted,
        ("public tier", "public tier on few steps"),
    ),
    Bug(
        "a tier told as one draw",
        "`noise.two_draws.loss_factor`",
        tier_told_as_one_draw,
        ("public tier on few steps",),
    ),
    Bug(
        "wrong weight in the combination",
        "`mechanisms.combined.Refined.weight`",
        wrong_weight,
        (STAGES,),
        sign="errors unlike those of the plan",
    ),
    Bug(
        "last total not the one used",
        "`session.checks.check_totals`",
        any_records,
        (STAGES,),
        sign="about other records",
    ),
    Bug(
        "last total of a carried release not the one used",
        "`session.checks.check_totals`",
        any_records,
        (CARRIED,),
        sign="about other records",
    ),
    Bug(
        "wrong weight of carried noise",
        "`mechanisms.combined.Following.release`",
        carried_by_the_rest,
        (CARRIED,),
        sign="errors unlike those of the plan",
    ),
    Bug(
        "noise on the lattice h",
        "`mechanisms.combined.Following.release`",
        carried_on_whole_numbers,
        (CARRIED,),
        sign="shows in fractions",
    ),
    Bug(
        "mover charged as stayer",
        "`policy.series.same_cell`",
        movers_as_stayers,
        (CARRIED,),
        sign="charged as one that stays",
    ),
    Bug(
        "revision by net change over cells",
        "`policy.series.same_cell`",
        movers_as_stayers,
        (CARRIED,),
        sign="by the net change over cells",
    ),
    Bug(
        "unchanged cells without fresh noise",
        "`mechanisms.combined.Following.release`",
        revised_where_changed,
        (CARRIED,),
        sign="without fresh noise",
    ),
    Bug(
        "leaving is free",
        "`mechanisms.combined.Carried.going`",
        leaving_is_free,
        (CARRIED,),
        sign="lost more than was charged",
    ),
    Bug(
        "parts of different types",
        "`engines.sources.files.check_parquet`",
        unchecked_parts,
        (REFUSALS,),
        sign="was accepted",
        refusal=checks.audit_sources,
    ),
    Bug(
        "statistics taken at their word",
        "`engines.duckdb.connection.TRUSTING`",
        trusted_statistics,
        (REFUSALS,),
        sign="statistics in a file decide",
        refusal=checks.audit_sources,
    ),
)
