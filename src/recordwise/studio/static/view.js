import {screenError, screenNumber, screenShare, screenWhole} from "./numbers.js";

// Every text of the page in a state: the same as recordwise.studio.texts, number by number in the same order.
const TYPICAL = 0.5, HIGH = 0.9, HIGHEST = 0.99, NEARLY = 1 + 1e-9, MOST_YEARS = 1000;

export const points = (trade, position, mechanisms) => trade.statistics.map(each => each.candidates.find(own => own.name === mechanisms[each.key]).points[position]);
const added = lists => lists[0].map((_, at) => { let sum = lists[0][at]; for (let each = 1; each < lists.length; each++) sum += lists[each][at]; return sum; });
export const totalLosses = (trade, chosen) => {
  const every = [trade.others, ...chosen.map(each => each.losses)];
  return Object.fromEntries(["records", "examples", "firms", "extremes"].map(name => [name, added(every.map(each => each[name]))]));
};
export const quantile = (losses, weights, share) => {
  if (!losses.length) return 0;
  const order = losses.map((_, at) => at).sort((one, other) => losses[one] - losses[other]);
  const risen = [];
  let sum = 0;
  order.forEach((place, at) => { sum = at ? sum + weights[place] : weights[place]; risen.push(sum); });
  const wanted = share * sum;
  return losses[order[risen.findIndex(each => each >= wanted)]];
};
export const chance = (trade, loss) => {
  const reached = trade.chances.filter(each => each <= loss).length;
  return reached === trade.chances.length ? "> 99%" : (reached + 5) + "%";
};
export const years = (trade, losses) => {
  if (!trade.budget) return "no budget";
  const lefts = [...trade.records.map(each => each.budget), ...trade.examples.map(each => each.budget), ...trade.budget.extremes];
  const costs = [...losses.records, ...losses.examples, ...losses.extremes];
  let least = MOST_YEARS + 1;
  costs.forEach((loss, at) => { if (lefts[at] != null && loss > 0) least = Math.min(least, lefts[at] / loss); });
  const times = Math.trunc(least * NEARLY);
  return times > MOST_YEARS ? "more than " + screenWhole(MOST_YEARS) : screenWhole(times);
};
export const ranked = shares => shares.map((_, at) => at).sort((one, other) => shares[other] - shares[one]);

const classRows = new WeakMap();
const rowsOf = trade => {
  if (!classRows.has(trade)) classRows.set(trade, trade.record_classes.map((_, number) => trade.records.flatMap((record, at) => record.size_class === number ? [at] : [])));
  return classRows.get(trade);
};
const ofRecords = (trade, losses) => rowsOf(trade).map(rows => {
  const own = rows.map(at => losses.records[at]), weights = rows.map(at => trade.records[at].weight);
  return {typical: quantile(own, weights, TYPICAL), high: quantile(own, weights, HIGH)};
});
export const overall = (trade, losses) => {
  const weights = trade.records.map(each => each.weight);
  return {typical: quantile(losses.records, weights, TYPICAL), highest: quantile(losses.records, weights, HIGHEST)};
};

const side = (texts, name, trade, position, mechanisms) => {
  const chosen = points(trade, position, mechanisms), losses = totalLosses(trade, chosen), found = overall(trade, losses), start = "side/" + name + "/";
  texts[start + "goal"] = trade.positions[position].goal;
  for (const rank of ["typical", "highest"]) {
    texts[start + rank] = screenNumber(found[rank]);
    texts[start + rank + "/chance"] = chance(trade, found[rank]);
  }
  losses.examples.forEach((loss, number) => { texts[start + "example/" + number] = screenNumber(loss); });
  chosen.forEach((point, number) => {
    texts[start + "mechanism/" + number] = mechanisms[trade.statistics[number].key];
    texts[start + "all/" + number] = screenShare(point.all_cells[0]);
  });
  texts[start + "years"] = years(trade, losses);
};

const cells = (texts, trade, number, point) => {
  texts["mechanism/" + number] = point.mechanism;
  point.errors.forEach((error, at) => { texts[`error/${number}/${at}`] = screenError(error); });
  for (const [name, shares] of [["status", point.statuses], ["table", point.by_table]])
    shares.forEach((own, at) => own.forEach((share, status) => { texts[`${name}/${number}/${at}/${status}`] = screenShare(share); }));
  point.all_cells.forEach((share, status) => { texts[`all/${number}/${status}`] = screenShare(share); });
  point.by_state.forEach((share, at) => { texts[`state/${number}/${at}`] = screenShare(share); });
  ranked(point.by_state).forEach((at, rank) => { texts[`rank/${number}/${rank}`] = trade.statistics[number].states[at].name; });
};

const baselines = (texts, trade) => trade.baselines.forEach((each, number) => {
  texts[`baseline/${number}/withheld`] = screenShare(each.withheld_of_all);
  each.withheld.forEach((share, at) => {
    texts[`baseline/${number}/${at}/withheld`] = screenShare(share);
    texts[`baseline/${number}/${at}/error`] = each.errors[at] === null ? "none" : screenError(each.errors[at]);
  });
});

// The texts by key, and the numbers that are drawn.
export const view = (trade, now) => {
  const chosen = points(trade, now.position, now.mechanisms), losses = totalLosses(trade, chosen), classes = ofRecords(trade, losses);
  const texts = {label: trade.label, goal: trade.positions[now.position].goal, within: screenNumber(trade.positions[now.position].within), draw: `${now.draw + 1} of ${trade.draws}`};
  classes.forEach(({typical, high}, number) => {
    texts[`loss/${number}/share`] = screenShare(trade.record_classes[number].share);
    texts[`loss/${number}/typical`] = screenNumber(typical);
    texts[`loss/${number}/high`] = screenNumber(high);
    texts[`loss/${number}/chance`] = chance(trade, typical);
  });
  for (const [kind, found] of [["example", losses.examples], ["firm", losses.firms]]) found.forEach((loss, number) => {
    texts[`${kind}/${number}/loss`] = screenNumber(loss);
    texts[`${kind}/${number}/chance`] = chance(trade, loss);
  });
  texts.years = years(trade, losses);
  chosen.forEach((point, number) => {
    texts["goal/" + number] = trade.statistics[number].goals[now.position];
    cells(texts, trade, number, point);
  });
  trade.places.forEach((place, number) => place.cells.forEach((cell, at) => {
    texts[`place/${number}/${at}/exact`] = screenWhole(cell.total);
    texts[`place/${number}/${at}/drawn`] = screenWhole(chosen[cell.statistic].drawn[now.draw][number][at]);
  }));
  side(texts, "now", trade, now.position, now.mechanisms);
  now.kept.forEach((kept, number) => {
    side(texts, number, trade, kept.position, kept.mechanisms);
    texts[`side/${number}/name`] = kept.name;
  });
  baselines(texts, trade);
  return {texts, chosen, losses, classes};
};
