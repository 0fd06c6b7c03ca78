"use strict";
// The coarser levels of codes, from public lists. Codes that no list has are in no cell; here they share one, which is no less.
const withLevels = (lists => place => {
  for (const {finest, levels, rows} of lists) {
    const code = (place[finest] ?? "").trim(), row = rows.get(code);
    for (const [level, {values, at}] of levels) place[level] = !code ? "" : row === undefined ? "\u0000" : values[at[row]];
  }
  return place;
})(data.lists.map(({finest, codes, levels}) => ({finest, levels: Object.entries(levels), rows: new Map(codes.map((code, row) => [code, row]))})));
