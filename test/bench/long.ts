import { rateOf } from './load-client.ts'
import { ACCOUNT } from './notifications.ts'
import { readRssMb, startProcessor } from './processes.ts'
import type { Measure } from './report.ts'
import type { Stage } from './stage.ts'

/** Resident memory of a process that only serves, after 50 and after 500 thousand notifications. */
export async function measureMemory(stage: Stage, size: number): Promise<Measure> {
  const { database, load, slowGatewayUrl } = stage
  const web = await startProcessor(database.url, slowGatewayUrl, ACCOUNT, 'web')
  const send = async (count: number) => {
    await load.run({ url: web.url, kind: 'ipn', connections: 64, count })
    return await readRssMb(web.child)
  }
  const after50 = await send(50_000)
  let after500 = after50
  for (let part = 0; part < 9; part += 1) after500 = await send(50_000)
  await web.stop()
  return {
    name: 'memory after 500 thousand notifications / after 50 thousand',
    size,
    result: after500 / after50,
    value: `${after500.toFixed(0)} MB`,
    baseline: `${after50.toFixed(0)} MB`,
    target: { atMost: 1.2 },
  }
}

/** Notifications a second with 1, 2 and 4 serving processes on one Postgres. */
export async function measureScale(stage: Stage, size: number): Promise<Measure[]> {
  const { database, load, slowGatewayUrl } = stage
  const rates: { processes: number; rate: number }[] = []
  for (const processes of [1, 2, 4]) {
    const webs = await Promise.all(
      Array.from({ length: processes }, () =>
        startProcessor(database.url, slowGatewayUrl, ACCOUNT, 'web'),
      ),
    )
    const urls = webs.map(({ url }) => url)
    const job = { kind: 'ipn' as const, urls, connections: Math.ceil(64 / processes) }
    await load.run({ ...job, forMs: 1500 })
    rates.push({ processes, rate: rateOf(await load.run({ ...job, forMs: 5000 })) })
    await Promise.all(webs.map((one) => one.stop()))
  }
  const [one] = rates
  return rates.slice(1).map(({ processes, rate }) => ({
    name: `intake, ${processes} processes / one`,
    size,
    result: rate / (one?.rate ?? rate),
    value: `${rate.toFixed(0)} /s`,
    baseline: `${one?.rate.toFixed(0)} /s`,
  }))
}
