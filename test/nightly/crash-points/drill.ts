import { playPoint, type Result, rehearse } from './play-point.ts'
import type { Play } from './plays.ts'
import { type Draw, drawPoints, listPoints } from './points.ts'
import { setUpStage } from './stage.ts'
import type { Accident } from './subjects.ts'

/** The points of one play that one accident happened at. */
export type Drilled = { play: string; accident: string; points: number; results: Result[] }

/** Also the name under which a point of it can be chosen. */
export const nameDrill = ({ name: accident }: Accident, { name: play }: Play) =>
  `${accident}, ${play}`

/** Finds the points of a play by playing it without a fault, then plays those that are drawn. */
export async function drill(
  accident: Accident,
  play: Play,
  draw: Draw,
  workerFile: string,
): Promise<Drilled> {
  const stage = await setUpStage(play.dedupes)
  const subjects = await accident.prepare(stage, workerFile)
  let statements: string[] = []
  for (let times = 0; times < accident.rehearsals; times += 1) {
    statements = await rehearse(stage, play, await subjects.next())
  }
  // How many NOTIFYs share a statement depends on the moment.
  const steady = statements.filter((statement) => !/^select pg_notify \(/.test(statement))
  const points = listPoints(steady, play.sends, accident.name)
  const results: Result[] = []
  for (const point of drawPoints(points, nameDrill(accident, play), draw)) {
    results.push(await playPoint(stage, play, point, await subjects.next()))
  }
  return { play: play.name, accident: accident.name, points: points.length, results }
}
