import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findPort } from '../../bench/processes.ts'
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts'
import { type ChaosDatabase, startChaosDatabase } from './database.ts'
import { controlGateway, type GatewayControl } from './gateway.ts'
import type { Layout, Line } from './moves.ts'
import { type Member, prepareMember } from './processes.ts'

export const ACCOUNT = {
  merchantCode: 'CHAOS',
  secret: 'chaos-signing-secret',
  apiKey: 'chaos-key-with-every-scope-0123456789',
}

/** All parts that can fail, each in a process of its own, with a proxy on every connection between them. */
export type Stage = {
  folder: string
  database: ChaosDatabase
  sandbox: Member
  gateway: GatewayControl
  lines: Record<Line, TcpProxy>
  /** The address at which order systems and the gateway reach the service. */
  serviceUrl: string
  /** The processes that run now. */
  members(): readonly Member[]
  serving(): readonly Member[]
  working(): readonly Member[]
  /** Stops the processes of one layout in order, and starts those of the other. */
  change(to: Layout): Promise<void>
  /** Stops everything; keeps the folder with the logs on request. */
  stop(keep: boolean): Promise<void>
}

/** Short times, so that a lease (three calls and 15 s) and every backoff end within a run. */
const SETTINGS = {
  GATEWAY_TIMEOUT_MS: '500',
  SYNC_BACKOFF_MS: '100',
  SYNC_BACKOFF_MAX_MS: '1000',
  SYNC_MAX_ATTEMPTS: '10000',
  SYNC_REPOLL_MS: '200',
  SYNC_REPOLL_MAX_MS: '1000',
  REFUND_BACKOFF_MS: '100',
  REFUND_BACKOFF_MAX_MS: '1000',
  REFUND_RESEND_AFTER_MS: '300',
  REFUND_CONFIRM_FAILED_MS: '8000',
  REFUND_RESOLVE_FOR_MS: '120000',
}
/** The clock offset of two of the workers. */
const AHEAD_MS = 3_600_000

/** Starts database, gateway, proxies and the first layout: one web process and two workers. */
export async function startStage(seed: number): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'ipn-chaos-'))
  chmodSync(folder, 0o755)
  const stops: (() => Promise<unknown>)[] = []
  async function stop(keep: boolean): Promise<void> {
    for (const end of stops.splice(0).reverse()) await end()
    if (!keep) rmSync(folder, { recursive: true, force: true })
  }
  try {
    const database = await startChaosDatabase(folder, await findPort())
    stops.push(database.stop)
    const lines = {
      database: await startTcpProxy(),
      gateway: await startTcpProxy(),
      intake: await startTcpProxy(),
    }
    for (const line of Object.values(lines)) stops.push(line.stop)
    const serviceUrl = `http://127.0.0.1:${lines.intake.port}`
    const account = {
      GATEWAY_MERCHANT_CODE: ACCOUNT.merchantCode,
      GATEWAY_SECRET: ACCOUNT.secret,
    }
    const sandboxPort = await findPort()
    const sandbox = prepareMember({
      name: 'sandbox',
      file: 'src/sandbox/main.ts',
      port: sandboxPort,
      logFile: join(folder, 'sandbox.log'),
      env: {
        ...account,
        SANDBOX_PORT: String(sandboxPort),
        SANDBOX_IPN_URL: `${serviceUrl}/ipn`,
      },
    })
    stops.push(sandbox.stop)
    await sandbox.start()
    const gateway = controlGateway(sandbox.url)
    await gateway.send('POST', '/seed', { seed: seed >>> 0, transactions: 0 })
    lines.database.pointTo(database.port)
    lines.gateway.pointTo(sandbox.port)

    const env = {
      ...account,
      ...SETTINGS,
      API_KEY: ACCOUNT.apiKey,
      WEBHOOK_ALLOW_PRIVATE: 'true',
      DATA_ENCRYPTION_KEY: Buffer.alloc(32, 3).toString('base64'),
      GATEWAY_REFUND_DEDUPES: 'true',
      DATABASE_URL: `postgres://postgres@127.0.0.1:${lines.database.port}/postgres`,
      GATEWAY_BASE_URL: `http://127.0.0.1:${lines.gateway.port}`,
    }
    const prepare = async (name: string, role: string, clockShiftMs = 0): Promise<Member> => {
      const port = await findPort()
      return prepareMember({
        name,
        file: 'src/main.ts',
        port,
        logFile: join(folder, `${name}.log`),
        env: { ...env, ROLE: role, PORT: String(port) },
        clockShiftMs,
      })
    }
    const web = await prepare('web', 'web')
    const workers = [
      await prepare('worker-1', 'worker'),
      await prepare('worker-2', 'worker', AHEAD_MS),
    ]
    const all = [await prepare('all-1', 'all'), await prepare('all-2', 'all', -AHEAD_MS)]
    const layouts: Record<Layout, { serving: Member[]; working: Member[]; members: Member[] }> = {
      split: { serving: [web], working: workers, members: [web, ...workers] },
      all: { serving: all, working: all, members: all },
    }
    let now: Layout = 'split'
    stops.push(() => Promise.all(layouts[now].members.map((member) => member.stop())))
    async function begin(): Promise<void> {
      lines.intake.pointTo(...layouts[now].serving.map(({ port }) => port))
      await Promise.all(layouts[now].members.map((member) => member.start()))
    }
    await begin()
    return {
      folder,
      database,
      sandbox,
      gateway,
      lines,
      serviceUrl,
      members: () => layouts[now].members,
      serving: () => layouts[now].serving,
      working: () => layouts[now].working,
      async change(to) {
        const leaving = layouts[now].members
        now = to
        await Promise.all([begin(), ...leaving.map((member) => member.stop())])
      },
      stop,
    }
  } catch (error) {
    await stop(true)
    throw error
  }
}
