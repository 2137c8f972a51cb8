// Pareto front of points (x, y): the rows that no other row beats in both. more* says which direction is better.
export function paretoFront(xs: (number | null)[], ys: (number | null)[], rows: number[], moreX: boolean, moreY: boolean): number[] {
  const sx = moreX ? 1 : -1, sy = moreY ? 1 : -1;
  const usable = rows.filter((r) => xs[r] !== null && ys[r] !== null && xs[r] !== undefined && ys[r] !== undefined);
  usable.sort((a, b) => sx * (xs[b]! - xs[a]!) || sy * (ys[b]! - ys[a]!) || a - b);
  const front: number[] = [];
  let best = -Infinity;
  for (const row of usable) {
    if (sy * ys[row]! > best) { front.push(row); best = sy * ys[row]!; }
  }
  return front.sort((a, b) => xs[a]! - xs[b]!);
}
