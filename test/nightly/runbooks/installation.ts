import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject, onTestFinished } from 'vitest'
import { startSandbox } from '../../../src/sandbox/start.ts'
import { findPort } from '../../support/ports.ts'
import { ask } from '../../support/postgres-server.ts'
import { setRefundMode } from '../../support/service.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { audit } from '../audit/audit.ts'
import { controlGateway } from '../chaos/gateway.ts'
import { type Member, prepareMember } from '../chaos/processes.ts'
import { SETTINGS } from '../chaos/services.ts'
import { readDatabase, readPromised } from '../failover/ledgers.ts'
import { type LoadOptions, startLoad } from '../failover/load.ts'
import { countBy, untilAtRest, untilPromised } from '../failover/play.ts'
import { ACCOUNT } from '../failover/stage.ts'
import type { Shell } from './shell.ts'

const ROLES = ['web', 'worker'] as const
type Role = (typeof ROLES)[number]

/**
 * Starts a gateway, a web process and a worker, and gives their settings to the shell. Customers pay and order systems
 * refund from then on.
 */
export async function startInstallation(
  shell: Shell,
  databaseUrl: string,
  options: LoadOptions = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'ipn-runbook-logs-'))
  chmodSync(folder, 0o755)
  const logFile = join(folder, 'log')
  const { merchantCode, secret, apiKey } = ACCOUNT
  const sandbox = await startSandbox({ accounts: [{ merchantCode, secret }], refundMs: 300 })
  onTestFinished(() => sandbox.stop())
  setRefundMode(sandbox, { guardsBalance: false, settleMs: 300 })
  const [webPort, workerPort] = [await findPort(), await findPort()]
  const ports: Record<Role, number> = { web: webPort, worker: workerPort }
  const apiUrl = `http://127.0.0.1:${ports.web}`
  sandbox.setIpnUrl(`${apiUrl}/ipn`)
  shell.env = {
    ...{ ...SETTINGS, GATEWAY_TIMEOUT_MS: '5000', GATEWAY_BASE_URL: sandbox.url, API_KEY: apiKey },
    ...{ GATEWAY_MERCHANT_CODE: merchantCode, GATEWAY_SECRET: secret },
    ...{
      SERVICE_URL: apiUrl,
      WORKER_URL: `http://127.0.0.1:${ports.worker}`,
      LOGS: logFile,
      ...shell.env,
    },
  }
  const members = new Map<Role, Member>()
  /** Starts a process with what the shell has in its environment now, in place of the one before. */
  async function start(role: Role): Promise<void> {
    await members.get(role)?.stop()
    const env = { ...shell.env, ROLE: role, PORT: String(ports[role]) }
    const file = inject('programs').service
    const member = prepareMember({ name: role, file, port: ports[role], logFile, env })
    members.set(role, member)
    await member.start()
  }
  async function restart(): Promise<void> {
    for (const role of ROLES) await start(role)
  }
  onTestFinished(async () => {
    for (const member of members.values()) await member.stop()
    rmSync(folder, { recursive: true })
  })
  await restart()
  const stage = { gateway: controlGateway(sandbox.url), apiUrl }
  const load = startLoad(stage, { perS: 1, ...options })
  onTestFinished(() => load.finish(0))
  return {
    ...{ ...stage, sandbox, restart },
    readReady: async (role: Role) => {
      return await (await fetch(`http://127.0.0.1:${ports[role]}/readyz?verbose`)).text()
    },
    /** Waits until so much more was acknowledged. */
    untilServed: (more = { notifications: 8, refunds: 8 }) => untilPromised(stage, load, more),
    /** Ends the load, waits until everything is at rest, and compares all that was acknowledged, stored and moved. */
    async expectInOrder(url = databaseUrl): Promise<void> {
      const began = performance.now()
      await load.finish(60_000)
      const unended = "select from refunds where status <> 'succeeded'"
      const isEnded = async () => (await ask(url, unended)).length === 0
      await waitUntil(isEnded, { what: 'every refund has succeeded', timeoutMs: 60_000 })
      // After it: a notification ends a refund before the query that shows it in its payment.
      await untilAtRest(url)
      const promised = await readPromised(stage, load.orders, load.taken, false)
      const { stored } = await readDatabase(url, '9999-01-01')
      const found = audit({ phase: 'rest', shown: undefined, fed: undefined, ...promised, stored })
      expect(found).toEqual([])
      const refunds = countBy(stored.refunds.map(({ status }) => status))
      const { notifications } = promised.acknowledged
      console.info(
        `in order: ${notifications.length} notifications and ${load.taken.length} refunds acknowledged, ${promised.moved.movements.length} moved, refunds ${JSON.stringify(refunds)}, ${((performance.now() - began) / 1_000).toFixed(0)} s after the last request`,
      )
    },
  }
}
