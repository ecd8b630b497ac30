import type { Damage } from '../audit/rules.ts'
import type { Drilled } from './drill.ts'

const HEAD = [
  'accident',
  'path',
  'points',
  'played',
  'moved once',
  'left to a person',
  'LOST',
  'DOUBLED',
  'DISORDERED',
  'STUCK',
]

/** Formats what was played as a table, with the sums in its last row. */
export function writeReport(drilled: readonly Drilled[]): string {
  const counts = drilled.map(countResults)
  const sums = (counts[0] ?? []).map((_, at) =>
    counts.reduce((sum, row) => sum + (row[at] ?? 0), 0),
  )
  const rows = [
    HEAD,
    ...drilled.map(({ accident, play }, at) => [accident, play, ...(counts[at] ?? []).map(String)]),
    ['all', '', ...sums.map(String)],
  ]
  const widths = HEAD.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  return rows
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function countResults({ points, results }: Drilled): number[] {
  const sound = results.filter(({ findings }) => findings.length === 0)
  const damaged = (damage: Damage) =>
    results.filter(({ findings }) => findings.some((one) => one.damage === damage)).length
  return [
    points,
    results.length,
    sound.filter(({ moved }) => moved === 1).length,
    sound.filter(({ moved }) => moved === 0).length,
    damaged('lost'),
    damaged('doubled'),
    damaged('disordered'),
    damaged('stuck'),
  ]
}

/** Lists what is wrong, each with the command that plays the point again. */
export function listFindings({ accident, play, results }: Drilled): string[] {
  return results.flatMap(({ point, findings }) =>
    findings.map(
      ({ damage, rule, what }) =>
        `${damage.toUpperCase()}, against "${rule}": ${what}\n  CRASH_POINTS='${accident}, ${play}: ${point}' npm run test:nightly -- crash`,
    ),
  )
}
