import { readRssMb } from './cpu.ts'
import { startService } from './processes.ts'
import type { Measure } from './report.ts'
import type { Stage } from './stage.ts'

const NOTIFICATIONS = 50_000

/** Resident memory of a process that only serves, after 50 and after 500 thousand notifications. */
export async function measureMemory(stage: Stage, size: number): Promise<Measure> {
  const { database, load, gateway } = stage
  const web = await startService(database.url, gateway.url, 'web', undefined)
  const send = async () => {
    await load.run({ urls: [web.url], kind: 'ipn', connections: 64, count: NOTIFICATIONS })
    return await readRssMb(web.child)
  }
  try {
    const first = await send()
    let last = first
    for (let part = 0; part < 9; part += 1) last = await send()
    return {
      name: 'memory after 500 thousand notifications / after 50 thousand',
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
