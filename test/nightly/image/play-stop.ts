import { Transaction } from '../../../src/transactions/view.ts'
import { withKey } from '../../support/api.ts'
import { createTestDatabase, type OwnDatabase } from '../../support/database.ts'
import { pickPort } from '../../support/ports.ts'
import { settingsFor } from '../../support/process.ts'
import { MERCHANT } from '../../support/service.ts'
import type { ImageConfig } from './builder.ts'
import { type Contained, runImage, runToEnd, waitForLine } from './run-image.ts'
import { control, type Drain, stopUnderLoad } from './stop-under-load.ts'

export type Played = {
  /** The exit code of the migrations, which run apart from the start. */
  migrate: number | null
  /** Exit codes of the health check while the service runs, and once it has stopped. */
  probe: number | null
  probeAfterStop: number | null
  acknowledged: number
  /** Queries that the gateway had not answered when the stop was requested. */
  inFlight: number
  /** What the service did for `DRAIN_MS` after the signal. */
  drain: Drain
  exitCode: number | null
  stoppedWithinMs: number
  /** Acknowledged notifications that the database does not have. */
  lost: string[]
  /** Those whose payment the next start did not bring. */
  unpaid: string[]
}

/**
 * Starts the sandbox and the service from the image, stops the service while the gateway owes it answers and notifications
 * arrive, and starts it again.
 */
export async function playStop(folder: string, config: ImageConfig): Promise<Played> {
  const database = await createTestDatabase({ empty: true })
  const started: Contained[] = []
  const start = (...given: [Record<string, string>, (readonly string[])?]) => {
    const run = runImage(folder, config, ...given)
    started.push(run)
    return run
  }
  try {
    const { code: migrate } = await runToEnd(folder, config, { DATABASE_URL: database.url }, [
      'node',
      'dist/cli/main.js',
      'migrate',
    ])
    const sandbox = start(
      {
        ...{ SANDBOX_PORT: '0', GATEWAY_MERCHANT_CODE: MERCHANT.merchantCode },
        GATEWAY_SECRET: MERCHANT.secret,
      },
      ['node', 'dist/sandbox/main.js'],
    )
    const gateway = await waitForLine(sandbox, /^Address +(\S+)/m)
    const PORT = await pickPort()
    const METRICS_PORT = await pickPort()
    const env = {
      ...{
        ...settingsFor(database.url, gateway),
        HOST: '127.0.0.1',
        PORT,
        METRICS_PORT,
        MIGRATE: 'off',
      },
      // What was in flight is asked again at once by the next start.
      ...{ SYNC_BACKOFF_MS: '10', SYNC_BACKOFF_MAX_MS: '50' },
    }
    const probe = async () =>
      (await runToEnd(folder, config, env, ['node', 'dist/health/probe.js'])).code
    const service = start(env)
    const url = await waitForLine(service, /"url":"([^"]+)".*"ready"/)
    const whileRunning = await probe()
    const drainMs = readDrainMs(config)
    const stopped = await stopUnderLoad(service, { url, gateway, drainMs })
    const probeAfterStop = await probe()
    await control(gateway, 'DELETE', '/faults')

    const lost = await findLost(database, stopped.acknowledged)
    const next = start(env)
    await waitForLine(next, /"url":"([^"]+)".*"ready"/)
    const unpaid = await findUnpaid(url, stopped.acknowledged)
    next.signal('SIGTERM')
    await next.ended
    const { acknowledged, ...measured } = stopped
    return {
      ...{ migrate, probe: whileRunning, probeAfterStop, lost, unpaid },
      ...{ ...measured, acknowledged: acknowledged.length },
    }
  } finally {
    await endAll(started)
    await database.drop()
  }
}

/** How long the image goes on serving after SIGTERM (ms). */
export function readDrainMs({ Env }: ImageConfig): number {
  return Number(Env.find((line) => line.startsWith('DRAIN_MS='))?.slice('DRAIN_MS='.length))
}

async function findLost({ sql }: OwnDatabase, ids: readonly string[]): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`select transaction_id as id from transactions`
  const stored = new Set(rows.map(({ id }) => id))
  return ids.filter((id) => !stored.has(id))
}

async function findUnpaid(url: string, ids: readonly string[]): Promise<string[]> {
  const states = ids.map(async (id) => {
    const answer = await fetch(`${url}/v1/transactions/${id}?wait=30`, withKey())
    const state = answer.ok ? Transaction.parse(await answer.json()).state : answer.status
    return [id, state] as const
  })
  return (await Promise.all(states)).flatMap(([id, state]) => (state === 'paid' ? [] : [id]))
}

async function endAll(started: readonly Contained[]): Promise<void> {
  for (const run of started) {
    try {
      run.signal('SIGKILL')
    } catch {
      // It has ended by itself.
    }
    await run.ended
  }
}
