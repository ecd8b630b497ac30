import { join } from 'node:path'
import { findPort } from '../../support/ports.ts'
import { controlGateway, type GatewayControl } from '../chaos/gateway.ts'
import { prepareMember } from '../chaos/processes.ts'
import { SETTINGS } from '../chaos/services.ts'
import { type Replication, type ReplicationMode, startReplication } from '../replication.ts'
import { type Drill, type Stops, startDrill } from '../start-drill.ts'

export const PAID = '1000'
export const ACCOUNT = {
  merchantCode: 'FAILOVER',
  secret: 'failover-signing-secret',
  apiKey: 'failover-key-with-every-scope-0123456789',
}

/** A primary with its standby, the gateway, and a web process and a worker that know both servers. */
type Parts = {
  replication: Replication
  gateway: GatewayControl
  /** The address of the web process. */
  apiUrl: string
}
export type Stage = Drill<Parts>

/** Refunds are executed a moment after they were accepted, whatever is left of the payment. */
const REFUND_MODE = { guardsBalance: false, settleMs: 300 }
/** What has no evidence goes to a person within a drill. */
const RESOLVE_FOR = { REFUND_RESOLVE_FOR_MS: '20000' }

export const startStage = (bin: string, mode: ReplicationMode): Promise<Stage> =>
  startDrill('failover', (folder, stops) => startParts(bin, mode, folder, stops))

async function startParts(
  bin: string,
  mode: ReplicationMode,
  folder: string,
  stops: Stops,
): Promise<Parts> {
  async function start(name: string, file: string, port: number, env: Record<string, string>) {
    const account = {
      GATEWAY_MERCHANT_CODE: ACCOUNT.merchantCode,
      GATEWAY_SECRET: ACCOUNT.secret,
    }
    const logFile = join(folder, `${name}.log`)
    const member = prepareMember({ name, file, port, logFile, env: { ...account, ...env } })
    stops.push(member.stop)
    await member.start()
    return member.url
  }
  const replication = await startReplication(
    bin,
    folder,
    [await findPort(), await findPort()],
    mode,
  )
  stops.push(replication.stop)
  const [webPort, workerPort, gatewayPort] = [await findPort(), await findPort(), await findPort()]
  const apiUrl = `http://127.0.0.1:${webPort}`
  const gatewayUrl = await start('sandbox', 'src/sandbox/main.ts', gatewayPort, {
    SANDBOX_PORT: String(gatewayPort),
    SANDBOX_IPN_URL: `${apiUrl}/ipn`,
  })
  const env = {
    ...SETTINGS,
    ...RESOLVE_FOR,
    API_KEY: ACCOUNT.apiKey,
    DATABASE_URL: replication.url,
    GATEWAY_BASE_URL: gatewayUrl,
  }
  await Promise.all(
    [
      { role: 'web', port: webPort },
      { role: 'worker', port: workerPort },
    ].map(({ role, port }) =>
      start(role, 'src/main.ts', port, { ...env, ROLE: role, PORT: String(port) }),
    ),
  )
  const gateway = controlGateway(gatewayUrl)
  await gateway.send('PUT', '/refund-mode', REFUND_MODE)
  return { replication, gateway, apiUrl }
}

/** Makes a paid transaction at the gateway, which sends its notification. */
export async function pay(
  { gateway }: Pick<Stage, 'gateway'>,
  transactionId: string,
  paymentId: string,
) {
  const payments = [{ id: paymentId, amount: PAID, paymentMethod: 'CC', status: 'SUCCESS' }]
  await gateway.send('POST', '/transactions', { transactionId, payments, ipn: { copies: 1 } })
}
