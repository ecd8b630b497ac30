import type { Drilled } from './drill.ts'

/** What was played, a row for each drill; for `console.table`. */
export const countResults = ({ accident, play, points, results }: Drilled) => {
  const sound = results.filter(({ findings }) => findings.length === 0)
  return {
    ...{ accident, play, points, played: results.length },
    movedOnce: sound.filter(({ moved }) => moved === 1).length,
    leftToPerson: sound.filter(({ moved }) => moved === 0).length,
    damaged: results.length - sound.length,
  }
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
