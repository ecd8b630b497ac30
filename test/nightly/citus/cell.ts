import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { inSchema } from '../../../src/platform/postgres/hosts.ts'
import { runCli } from '../../support/cli.ts'
import { findPort } from '../../support/ports.ts'
import type { Ledgers } from '../audit/ledgers.ts'
import { keyOf, storeKeys, writeAccounts } from '../chaos/accounts.ts'
import { followFeeds } from '../chaos/feed.ts'
import { controlGateway } from '../chaos/gateway.ts'
import { DEFAULT_MODE, makeLedgerLag } from '../chaos/gateway-moves.ts'
import { startLoad } from '../chaos/load.ts'
import { prepareMember } from '../chaos/processes.ts'
import { startReceivers } from '../chaos/receiver.ts'
import { awaitRest } from '../chaos/run.ts'
import { type Programs, SETTINGS } from '../chaos/services.ts'

const Listed = z.array(z.object({ schema: z.string(), node: z.string().nullable() }))

/** An installation in a schema of its own, with its gateway and its customers. */
export type Cell = {
  apiUrl: string
  cli(...args: string[]): Promise<string>
  /** Where it lives, as `host:port`. */
  findNode(): Promise<string | null | undefined>
  /** Writes one after the other, from now on. */
  probe: Probe
  /** Ends the load, and gathers the ledgers of all sides once nothing moves any more. */
  rest(log: (line: string) => void): Promise<Ledgers>
  stop(): Promise<void>
}

type Place = { folder: string; programs: Programs; url: string; schema: string; seed: number }

/** Customers per second. */
const PER_S = 2
const PATIENCE_MS = 33_000
/** The leases of webhooks take a minute to end. */
const QUIET_MS = 400_000

export async function startCell({ folder, programs, url, schema, seed }: Place): Promise<Cell> {
  const stops: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const end of stops.splice(0).reverse()) await end()
  }
  async function cli(...args: string[]): Promise<string> {
    const { code, out, err } = await runCli(args, { DATABASE_URL: url, DATABASE_SCHEMA: schema })
    if (code !== 0) throw new Error(`${schema}: ${args.join(' ')}: ${err}`)
    return out
  }
  async function findNode() {
    const listed = Listed.parse(JSON.parse(await cli('cells', 'list', '--json')))
    return listed.find((one) => one.schema === schema)?.node
  }
  async function start(name: string, file: string, env: Record<string, string>) {
    const logFile = join(folder, `${schema}-${name}.log`)
    const member = prepareMember({ name, file, port: await findPort(), logFile, env })
    stops.push(member.stop)
    await member.start()
    return member.url
  }
  try {
    await cli('migrate')
    await cli('cells', 'distribute')
    const databaseUrl = inSchema(url, schema)
    await storeKeys(databaseUrl)
    const accounts = { MERCHANTS_FILE: join(folder, `${schema}.json`) }
    writeFileSync(accounts.MERCHANTS_FILE, writeAccounts())
    const webPort = await findPort()
    const apiUrl = `http://127.0.0.1:${webPort}`
    const gatewayUrl = await start('sandbox', programs.sandbox, {
      ...accounts,
      SANDBOX_IPN_URL: `${apiUrl}/ipn`,
    })
    const gateway = controlGateway(gatewayUrl)
    await gateway.send('POST', '/seed', { seed, transactions: 0 })
    await gateway.send('PUT', '/refund-mode', DEFAULT_MODE)
    const env = {
      ...{ ...SETTINGS, ...accounts, API_KEY: 'citus-key-with-every-scope-0123456789' },
      ...{ DATABASE_URL: url, DATABASE_SCHEMA: schema, GATEWAY_BASE_URL: gatewayUrl },
    }
    const web = prepareMember({
      ...{ name: 'web', file: programs.service, port: webPort },
      ...{ logFile: join(folder, `${schema}-web.log`), env: { ...env, ROLE: 'web' } },
    })
    stops.push(web.stop)
    await web.start()
    await start('worker', programs.service, { ...env, ROLE: 'worker' })
    const followers = followFeeds(apiUrl)
    stops.push(() => followers.stop())
    const receivers = await startReceivers(apiUrl)
    stops.push(() => receivers.stop())
    const load = startLoad({ seed, perS: PER_S, gateway, lag: makeLedgerLag(gateway), apiUrl })
    const probe = startProbe(apiUrl, load.transactions)
    stops.push(() => probe.stop())
    stops.push(() => load.finish(0).catch(() => {}))
    return {
      ...{ apiUrl, cli, findNode, probe, stop },
      async rest(log) {
        await probe.stop()
        const endedAt = performance.now()
        await load.finish(PATIENCE_MS)
        const sides = { load, followers, receivers, gateway, apiUrl, databaseUrl }
        return await awaitRest({ ...sides, failed: [], setBack: undefined }, endedAt, QUIET_MS, log)
      },
    }
  } catch (error) {
    await stop()
    throw error
  }
}

type Write = { fromMs: number; toMs: number; isDone: boolean }
export type Probe = {
  /** The longest time between two writes that were acknowledged, and the 99th percentile of those that were (ms). */
  measure(fromMs: number, toMs: number): { gapMs: number; p99Ms: number; refused: number }
  stop(): Promise<void>
}

const EVERY_MS = 50
const TIMEOUT_MS = 5_000

/** Requests the query of the first customer's transaction again and again, each a commit. */
function startProbe(
  apiUrl: string,
  transactions: readonly { merchantCode: string; id: string }[],
): Probe {
  const writes: Write[] = []
  let isOver = false
  async function write(): Promise<void> {
    const [first] = transactions
    if (!first) return
    const fromMs = performance.now()
    const answer = await fetch(`${apiUrl}/v1/transactions/${first.id}/sync`, {
      method: 'POST',
      headers: { authorization: `Bearer ${keyOf(first.merchantCode)}` },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch(() => undefined)
    await answer?.body?.cancel()
    // Before its first notification has arrived the transaction may be unknown.
    if (answer?.status !== 404)
      writes.push({ fromMs, toMs: performance.now(), isDone: answer?.status === 202 })
  }
  const running = (async () => {
    while (!isOver) {
      await write()
      await pause(EVERY_MS)
    }
  })()
  return {
    measure(fromMs, toMs) {
      const within = writes.filter((one) => one.toMs >= fromMs && one.fromMs <= toMs)
      const done = within.filter(({ isDone }) => isDone)
      const gaps = done.slice(1).map((one, index) => one.toMs - (done[index]?.toMs ?? 0))
      const took = done.map((one) => one.toMs - one.fromMs).toSorted((a, b) => a - b)
      return {
        gapMs: Math.max(0, ...gaps),
        p99Ms: took[Math.floor(took.length * 0.99)] ?? Number.NaN,
        refused: within.length - done.length,
      }
    },
    async stop() {
      isOver = true
      await running
    },
  }
}
