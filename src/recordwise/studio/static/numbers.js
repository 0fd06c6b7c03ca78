// Numbers as exact/text.py writes them for a screen. Ties are rounded up in both.
const grouped = text => {
  const [whole, part] = text.split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? "." + part : "");
};
const plain = value => value >= 1e21 ? BigInt(value).toString() : value.toLocaleString("en-US", {useGrouping: false, maximumFractionDigits: 20});
const trimmed = text => text.includes(".") ? text.replace(/\.?0+$/, "") : text;
export const screenNumber = value => {
  if (value < 0) return "-" + screenNumber(-value);
  if (value > 0 && value < 0.001) return "< 0.001";
  return grouped(trimmed(plain(Number(value.toPrecision(3)))));
};
export const screenWhole = value => {
  const text = grouped(Math.abs(value).toFixed(0));
  return value < 0 && text !== "0" ? "-" + text : text;
};
export const screenShare = share => {
  const percent = share * 100;
  if (share === 0 || share === 1) return share === 0 ? "0%" : "100%";
  if (percent < 0.1) return "< 0.1%";
  return percent > 99.9 ? "> 99.9%" : percent.toFixed(1) + "%";
};
export const screenError = share => {
  const percent = share * 100;
  return percent > 1000 ? "> 1000%" : percent.toFixed(percent < 10 ? 1 : 0) + "%";
};
