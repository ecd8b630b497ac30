import { findBuilt } from './build.ts'
import type { BenchDatabase } from './database.ts'
import { type Load, startLoad } from './load-client.ts'
import { ACCOUNT } from './notifications.ts'
import { findPort, type Started, startProcess, startProcessor } from './processes.ts'

/** A gateway across the town: what its calls take where that matters (ms). */
export const GATEWAY_MS = 20

/** Everything that is measured, or measured against, as processes of their own on one database. */
export type Stage = {
  database: BenchDatabase
  load: Load
  /** Serves only; its gateway answers at once. */
  web: Started
  /** Syncs only, with a gateway that answers at once, and with one that takes `GATEWAY_MS`. */
  worker: Started
  slowWorker: Started
  slowGatewayUrl: string
  /** The same stack as `web` that stores nothing; that makes one insert per request; that answers a constant. */
  storesNothing: Started
  oneInsert: Started
  constant: Started
  stop(): Promise<void>
}

/** @param profiles the folder where processes of the service leave their CPU profiles */
export async function startStage(database: BenchDatabase, profiles?: string): Promise<Stage> {
  const started: { stop(): Promise<void> }[] = []
  const keep = <T extends { stop(): Promise<void> }>(one: T) => {
    started.push(one)
    return one
  }
  try {
    return await open()
  } catch (error) {
    await Promise.all(started.map((one) => one.stop()))
    throw error
  }

  async function open(): Promise<Stage> {
    const gateway = keep(await startGateway(0))
    const slow = keep(await startGateway(GATEWAY_MS))
    const processor = async (gatewayUrl: string, role: 'web' | 'worker') =>
      keep(await startProcessor(database.url, gatewayUrl, ACCOUNT, role, profiles))
    const baseline = async (file: string, env: Record<string, string>) =>
      keep(
        await startBaseline(file, {
          DATABASE_URL: database.url,
          GATEWAY_BASE_URL: gateway.url,
          ...env,
        }),
      )
    const stage = {
      database,
      load: startLoad(),
      web: await processor(gateway.url, 'web'),
      worker: await processor(gateway.url, 'worker'),
      slowWorker: await processor(slow.url, 'worker'),
      slowGatewayUrl: slow.url,
      storesNothing: await baseline('intake.ts', { STORES: 'nothing' }),
      oneInsert: await baseline('intake.ts', {}),
      constant: await baseline('constant.ts', {}),
    }
    // Whoever is measured wakes them: two of them would share the work.
    sleepWorker(stage.worker)
    sleepWorker(stage.slowWorker)
    return {
      ...stage,
      async stop() {
        wakeWorker(stage.worker)
        wakeWorker(stage.slowWorker)
        stage.load.stop()
        await Promise.all(started.map((one) => one.stop()))
      },
    }
  }
}

export function sleepWorker({ child }: Started): void {
  child.kill('SIGSTOP')
}

export function wakeWorker({ child }: Started): void {
  child.kill('SIGCONT')
}

async function startGateway(delayMs: number): Promise<Started> {
  const port = String(await findPort())
  const env = { PORT: port, DELAY_MS: String(delayMs) }
  const started = await startProcess(findBuilt('test/bench/bare-gateway.ts'), env, () => true)
  return { ...started, url: `http://127.0.0.1:${port}` }
}

async function startBaseline(file: string, more: Record<string, string>): Promise<Started> {
  const port = String(await findPort())
  const env = {
    PORT: port,
    GATEWAY_MERCHANT_CODE: ACCOUNT.merchantCode,
    GATEWAY_SECRET: ACCOUNT.secret,
    DATA_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
    GATEWAY_REFUND_DEDUPES: 'true',
    ...more,
  }
  const started = await startProcess(
    findBuilt(`test/bench/baselines/${file}`),
    env,
    (line) => line === 'ready',
  )
  return { ...started, url: `http://127.0.0.1:${port}` }
}
