import { onTestFinished } from 'vitest'
import { type RefundLab, startRefundLab } from '../../support/refund-lab.ts'
import { controlGateway, type GatewayControl } from '../chaos/gateway.ts'
import { type RequestProxy, startRequestProxy } from './request-proxy.ts'
import { type StatementProxy, startStatementProxy } from './statement-proxy.ts'

/** The connections of one process: to the database, and to the gateway. */
export type Lines = { database: StatementProxy; gateway: RequestProxy; stop(): Promise<void> }

/** A database, a gateway, and a service that nothing happens to: it prepares, heals and reads. */
export type Stage = {
  lab: RefundLab
  gateway: GatewayControl
  /** Whether the gateway refuses a request id that it has seen; the service is configured accordingly. */
  dedupes: boolean
  settings: Record<string, string>
  openLines(): Promise<Lines>
}

/** Sets a stage up, and takes it down after the test. Accepted refunds settle only by a control request. */
export async function setUpStage(dedupes: boolean): Promise<Stage> {
  const settings = { ROLE: 'web', GATEWAY_REFUND_DEDUPES: String(dedupes), ...PATIENT }
  const lab = await startRefundLab({ settings })
  onTestFinished(() => lab.stop())
  await lab.mode({ dedupes })
  return {
    lab,
    gateway: controlGateway(lab.sandbox.url),
    dedupes,
    settings,
    async openLines() {
      const database = await startStatementProxy(lab.database.url)
      const gateway = await startRequestProxy(lab.sandbox.url)
      const stop = async () => {
        await Promise.all([database.stop(), gateway.stop()])
      }
      return { database, gateway, stop }
    },
  }
}

/** No call times out on a busy machine: what is lost here is lost by a fault. */
const PATIENT = { GATEWAY_TIMEOUT_MS: '20000', REFUND_RESEND_AFTER_MS: '30000' }
