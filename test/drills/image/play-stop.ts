import { performance } from 'node:perf_hooks'
import { z } from 'zod'
import { Transaction } from '../../../src/transactions/view.ts'
import { withKey } from '../../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { pickPort, settingsFor } from '../../support/process.ts'
import { MERCHANT, postIpn, signIpn } from '../../support/service.ts'
import { waitUntil } from '../../support/wait-until.ts'
import type { ImageConfig } from './builder.ts'
import { type Contained, runImage, runToEnd, waitForLine } from './run-image.ts'

const TRANSACTIONS = 40

const Made = z.object({ transactionId: z.string() })
const Calls = z.object({ data: z.array(z.object({ transactionId: z.string().nullish() })) })

export type Played = {
  /** The exit code of the migrations, which run apart from the start. */
  migrate: number | null
  /** Exit codes of the health check while the service runs, and once it has stopped. */
  probe: number | null
  probeAfterStop: number | null
  acknowledged: number
  /** Queries that the gateway had not answered when the stop was requested. */
  inFlight: number
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
    const stopped = await stopUnderLoad(service, url, gateway)
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

/** Sends notifications until the service takes no more; half-way through it gets the signal to stop. */
async function stopUnderLoad(service: Contained, url: string, gateway: string) {
  const ids: string[] = []
  for (let n = 0; n < TRANSACTIONS; n += 1) {
    const payments = [{ amount: '150000', paymentMethod: 'QR', status: 'SUCCESS' }]
    const made = await control(gateway, 'POST', '/transactions', { payments, ipn: false })
    ids.push(Made.parse(made).transactionId)
  }
  await control(gateway, 'POST', '/faults', { command: 'QUERY_PT', kind: 'delay', delayMs: 60_000 })

  const acknowledged: string[] = []
  const send = async (id: string) => {
    const notification = signIpn({ svc_TransactionID: id, svc_OrderID: `O-${id}` })
    const answer = await postIpn(url, notification).catch(() => undefined)
    if (answer?.status === 200) acknowledged.push(id)
  }
  const half = ids.splice(0, TRANSACTIONS / 2)
  await Promise.all(half.map(send))
  const countAsked = async () =>
    Calls.parse(await control(gateway, 'GET', '/calls?command=QUERY_PT')).data.length
  await waitUntil(async () => (await countAsked()) > 0, { what: 'a query in flight' })

  const inFlight = await countAsked()
  const at = performance.now()
  service.signal('SIGTERM')
  for (const id of ids) await send(id)
  const exitCode = await service.ended
  return { acknowledged, inFlight, exitCode, stoppedWithinMs: Math.round(performance.now() - at) }
}

async function findLost({ sql }: TestDatabase, ids: readonly string[]): Promise<string[]> {
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

async function control(
  gateway: string,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  const answer = await fetch(`${gateway}/sandbox${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return text === '' ? undefined : JSON.parse(text)
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
