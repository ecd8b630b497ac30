import { ask } from '../../support/postgres-server.ts'
import { postIpn, signIpn } from '../../support/service.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { call, requestRefund } from './requests.ts'
import { ACCOUNT, PAID, pay, type Stage } from './stage.ts'

/** The answers to a notification and to a request for a refund. */
export type Answers = { notification: number; refund: number; retryAfter: string | null }

/** Makes a payment that the service knows, and two requests about it that can be repeated. */
export async function preparePayment({ gateway, apiUrl }: Stage, id: string) {
  const paymentId = `P-${id}`
  await pay({ gateway }, id, paymentId)
  const isKnown = async () => (await call(apiUrl, `/v1/payments/${paymentId}`))?.status === 200
  await waitUntil(isKnown, { what: `payment ${paymentId} is known`, everyMs: 50 })
  const request = { key: `K-${id}`, paymentId, amount: PAID }
  const fields = { svc_MerchantCode: ACCOUNT.merchantCode, svc_TransactionID: `N-${id}` }
  const notification = signIpn(fields, { secret: ACCOUNT.secret })
  return async function send(): Promise<Answers> {
    const [sent, asked] = await Promise.all([
      postIpn(apiUrl, notification),
      requestRefund(apiUrl, request),
    ])
    const retryAfter = asked?.headers.get('retry-after') ?? null
    return { notification: sent.status, refund: asked?.status ?? 0, retryAfter }
  }
}

/** Answers while the standby is gone and whoever waits for it is cancelled, as an impatient operator would do. */
export async function cancelWaits(
  { replication }: Stage,
  send: () => Promise<Answers>,
): Promise<Answers> {
  let answers: Answers | undefined
  const sent = send().then((all) => {
    answers = all
  })
  const isAnswered = async () => {
    await ask(
      replication.primary().url,
      `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`,
    )
    return answers !== undefined
  }
  await waitUntil(isAnswered, { what: 'both requests are answered', everyMs: 50 })
  await sent
  if (!answers) throw new Error('nothing was answered')
  return answers
}

/** Makes the primary refuse writes, as whoever sets one aside does, or accept them again. */
export async function setReadOnly({ replication }: Stage, value: 'on' | 'off') {
  const { url } = replication.primary()
  await ask(url, `alter system set default_transaction_read_only = ${value}`)
  await ask(url, 'select pg_reload_conf()')
}

/** The status of `/readyz`. */
export async function readReadiness({ apiUrl }: Stage): Promise<number> {
  return (await call(apiUrl, '/readyz'))?.status ?? 0
}
