/** One row of the drill's table. */
export type Outcome = {
  mode: string
  acknowledged: number
  lost: number
  doubled: number
  outageS: number
}

export function writeTable(outcomes: readonly Outcome[]): string {
  const rows = outcomes.map(({ mode, acknowledged, lost, doubled, outageS }) => [
    ...[mode, acknowledged, lost, doubled].map(String),
    outageS.toFixed(1),
  ])
  const all = [['mode', 'acknowledged', 'lost', 'doubled', 'seconds without service'], ...rows]
  const widths = [0, 1, 2, 3, 4].map((n) => Math.max(...all.map((row) => row[n]?.length ?? 0)))
  return all.map((row) => row.map((cell, n) => cell.padEnd(widths[n] ?? 0)).join('  ')).join('\n')
}
