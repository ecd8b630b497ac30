import { pickPort } from '../../support/ports.ts'
import { rateOf } from '../load-client.ts'
import { STRIPE_SECRET } from '../notifications.ts'
import { startProcess } from '../processes.ts'
import type { Measure } from '../report.ts'
import { alternate, compare } from '../rounds.ts'
import type { Stage } from '../stage.ts'
import { type Installed, installStripe } from './install.ts'

/**
 * Notifications a second beside `stripe-sync-engine` behind Fastify, which verifies a
 * `payment_intent.succeeded` and stores it in its own tables; nothing where npm cannot install it.
 */
export async function measureStripe(stage: Stage, size: number): Promise<Measure[]> {
  const installed = await installStripe()
  if (typeof installed === 'string') {
    console.log(`stripe-sync-engine cannot be installed, and is left out: ${installed}`)
    return []
  }
  const database = await stage.server.create('stripe')
  try {
    return [await measureBeside(stage, size, installed, database.url)]
  } finally {
    await stage.server.drop(database)
    await installed.remove()
  }
}

async function measureBeside(
  { load, web, effort }: Stage,
  size: number,
  { server, version }: Installed,
  databaseUrl: string,
): Promise<Measure> {
  const port = await pickPort()
  const env = { PORT: port, DATABASE_URL: databaseUrl, STRIPE_WEBHOOK_SECRET: STRIPE_SECRET }
  const stripe = await startProcess(server, env)
  const jobs = {
    web: { kind: 'ipn', url: web.url },
    stripe: { kind: 'stripe', url: `http://127.0.0.1:${port}` },
  } as const
  try {
    const of = await alternate(['web', 'stripe'] as const, effort.rounds, async (name) =>
      rateOf(await load.run({ ...jobs[name], connections: 64, forMs: effort.roundMs })),
    )
    return compare({
      name: `intake / stripe-sync-engine ${version}`,
      size,
      unit: '/s',
      service: of('web'),
      baseline: of('stripe'),
      target: { atLeast: 3.2 },
    })
  } finally {
    await stripe.stop()
  }
}
