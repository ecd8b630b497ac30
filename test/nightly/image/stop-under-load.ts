import { performance } from 'node:perf_hooks'
import { z } from 'zod'
import { postIpn, signIpn } from '../../support/service.ts'
import { waitUntil } from '../../support/wait-until.ts'
import type { Contained } from './run-image.ts'

const TRANSACTIONS = 40
/** A notification sent so shortly before the end of the drain may arrive after it (ms). */
const MARGIN_MS = 500

const Made = z.object({ transactionId: z.string() })
const Calls = z.object({ data: z.array(z.object({ transactionId: z.string().nullish() })) })

/** What a service did between the signal to stop and the end of `DRAIN_MS`. */
export type Drain = {
  /** Notifications sent in that time, and those of them that were not acknowledged. */
  sent: number
  refused: string[]
  /** The statuses of `/readyz` in that time, each once. */
  readiness: number[]
}

/** Where the service and the gateway answer, and how long the service goes on after the signal. */
type Place = { url: string; gateway: string; drainMs: number }

/** Sends notifications until the service takes no more; half-way through it gets the signal to stop. */
export async function stopUnderLoad(service: Contained, { url, gateway, drainMs }: Place) {
  const ids: string[] = []
  for (let n = 0; n < TRANSACTIONS; n += 1) {
    const payments = [{ amount: '150000', paymentMethod: 'QR', status: 'SUCCESS' }]
    const made = await control(gateway, 'POST', '/transactions', { payments, ipn: false })
    ids.push(Made.parse(made).transactionId)
  }
  await control(gateway, 'POST', '/faults', { command: 'QUERY_PT', kind: 'delay', delayMs: 60_000 })

  const acknowledged = new Set<string>()
  const send = async (id: string) => {
    const notification = signIpn({ svc_TransactionID: id, svc_OrderID: `O-${id}` })
    const answer = await postIpn(url, notification).catch(() => undefined)
    if (answer?.status === 200) acknowledged.add(id)
    return answer?.status === 200
  }
  const half = ids.splice(0, TRANSACTIONS / 2)
  await Promise.all(half.map(send))
  const countAsked = async () =>
    Calls.parse(await control(gateway, 'GET', '/calls?command=QUERY_PT')).data.length
  await waitUntil(async () => (await countAsked()) > 0, { what: 'a query in flight' })

  const inFlight = await countAsked()
  const at = performance.now()
  service.signal('SIGTERM')
  await waitUntil(async () => (await askReadiness(url)) === 503, { what: 'the drain' })
  const drain = await sendDuringDrain({ url, ids, send, until: at + drainMs - MARGIN_MS })
  let isServing = true
  while (isServing) isServing = await send(half[0] ?? '')
  const exitCode = await service.ended
  const stoppedWithinMs = Math.round(performance.now() - at)
  return { acknowledged: [...acknowledged], inFlight, drain, exitCode, stoppedWithinMs }
}

/** The status of `/readyz`; 0 without an answer. */
const askReadiness = async (url: string) =>
  await fetch(`${url}/readyz`).then(
    ({ status }) => status,
    () => 0,
  )

/** Notifies of each transaction in turn, and asks for the readiness in between, until the drain is about to end. */
async function sendDuringDrain(given: {
  url: string
  ids: readonly string[]
  send: (id: string) => Promise<boolean>
  until: number
}): Promise<Drain> {
  const refused: string[] = []
  const readiness = new Set<number>()
  let sent = 0
  for (; performance.now() < given.until && refused.length === 0; sent += 1) {
    const id = given.ids[sent % given.ids.length] ?? ''
    if (!(await given.send(id))) refused.push(id)
    if (performance.now() < given.until) readiness.add(await askReadiness(given.url))
  }
  return { sent, refused, readiness: [...readiness] }
}

/** Asks the sandbox gateway for something that no merchant can.
 * @throws Error if it refuses */
export async function control(
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
