import { readRssMb } from './cpu.ts'
import { startService } from './processes.ts'
import { type Measure, writeSize } from './report.ts'
import type { Stage } from './stage.ts'

const PARTS = 10

/** Resident memory of a process that only serves, after some notifications and after ten times as many. */
export async function measureMemory(stage: Stage, size: number): Promise<Measure> {
  const { database, load, gateway, effort } = stage
  const { notified: count } = effort
  const web = await startService(database.url, gateway.url, 'web', undefined)
  const send = async () => {
    await load.run({ url: web.url, kind: 'ipn', connections: 64, count })
    return await readRssMb(web.child)
  }
  try {
    const first = await send()
    let last = first
    for (let part = 1; part < PARTS; part += 1) last = await send()
    return {
      name: `memory after ${writeSize(PARTS * count)} notifications / after ${writeSize(count)}`,
      size,
      result: last / first,
      value: `${last.toFixed(0)} MB`,
      baseline: `${first.toFixed(0)} MB`,
      target: { atMost: 1.2 },
    }
  } finally {
    await web.stop()
  }
}
