import { join } from 'node:path'
import { bundle, linkPackage } from '../../support/bundle.ts'
import { findPort } from '../../support/ports.ts'
import type { TcpProxy } from '../../support/tcp-proxy.ts'
import type { Layout } from './moves.ts'
import { type Member, prepareMember } from './processes.ts'

/**
 * The service, the gateway and what shifts the clock of a process, each in one file: many of them start while a storm
 * loads the machine.
 */
export type Programs = { service: string; sandbox: string; clock: string }

/** Builds them into the folder. */
export function buildPrograms(folder: string): Programs {
  linkPackage(folder)
  return {
    service: bundle('src/main.ts', folder, 'service'),
    sandbox: bundle('src/sandbox/main.ts', folder, 'sandbox'),
    clock: bundle('test/nightly/chaos/shifted-clock.ts', folder, 'clock'),
  }
}

/** The service as several processes, in one of two layouts. */
export type Services = {
  /** The processes that run now. */
  members(): readonly Member[]
  serving(): readonly Member[]
  working(): readonly Member[]
  /** Stops the processes of one layout in order, and starts those of the other. */
  change(to: Layout): Promise<void>
  stop(): Promise<void>
}

/**
 * Settings with short times, so that a lease (three calls and 15 s) and every backoff end within a run. What waits for a
 * person is queried at the longest pause: after ten minutes these are more than a hundred.
 */
export const SETTINGS = {
  GATEWAY_TIMEOUT_MS: '500',
  SYNC_BACKOFF_MS: '100',
  SYNC_BACKOFF_MAX_MS: '1000',
  SYNC_MAX_ATTEMPTS: '10000',
  SYNC_REPOLL_MS: '200',
  SYNC_REPOLL_MAX_MS: '5000',
  REFUND_BACKOFF_MS: '100',
  REFUND_BACKOFF_MAX_MS: '5000',
  REFUND_RESEND_AFTER_MS: '300',
  REFUND_CONFIRM_FAILED_MS: '8000',
  REFUND_RESOLVE_FOR_MS: '600000',
  WEBHOOK_ALLOW_PRIVATE: 'true',
  DATA_ENCRYPTION_KEY: Buffer.alloc(32, 3).toString('base64'),
  GATEWAY_REFUND_DEDUPES: 'true',
}
/** The clock offset of two of the processes. */
const AHEAD_MS = 3_600_000

/**
 * Starts the first layout: one web process and two workers.
 * @param folder for the output of the processes
 * @param programs what the processes run
 * @param env where the database, the gateway and the accounts are, and the first key
 * @param intake leads to the processes that serve
 */
export async function startServices(
  folder: string,
  programs: Programs,
  env: Record<string, string>,
  intake: TcpProxy,
): Promise<Services> {
  const prepare = async (name: string, role: string, clockShiftMs = 0): Promise<Member> => {
    return prepareMember({
      name,
      file: programs.service,
      port: await findPort(),
      logFile: join(folder, `${name}.log`),
      env: { ...SETTINGS, ...env, ROLE: role },
      ...(clockShiftMs === 0 ? {} : { clock: { program: programs.clock, shiftMs: clockShiftMs } }),
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
  async function begin(): Promise<void> {
    intake.pointTo(...layouts[now].serving.map(({ port }) => port))
    await Promise.all(layouts[now].members.map((member) => member.start()))
  }
  async function stop(): Promise<void> {
    const every = Object.values(layouts).flatMap(({ members }) => members)
    await Promise.all(every.map((member) => member.stop()))
  }
  try {
    await begin()
  } catch (error) {
    await stop()
    throw error
  }
  return {
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
}
