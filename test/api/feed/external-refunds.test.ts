import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ExternalRefund } from '../../../src/refunds/external-view.ts'
import { deriveRefundId } from '../../../src/refunds/idempotency.ts'
import { emptyTables } from '../../support/database.ts'
import { readRecorded } from '../../support/feed.ts'
import { ageOmission, makeEntry, startListingGateway } from '../../support/listing-gateway.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { MERCHANT, postIpn, signIpn } from '../../support/service.ts'
import { notifyOf } from '../../support/sync.ts'
import { useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab()
afterEach(() => emptyTables(lab.database))

/** The id of the refund that is requested with this key. */
const deriveId = (key: string) => deriveRefundId(MERCHANT.merchantCode, key)

const Page = z.object({ data: z.array(ExternalRefund) })

async function list({ id }: LabPayment) {
  const response = await lab.api(`/v1/payments/${id}/external-refunds`)
  return Page.parse(await response.json()).data
}

async function readEventsOf({ id }: LabPayment, ...transactionIds: readonly string[]) {
  const recorded = await readRecorded(lab, ...transactionIds)
  return recorded.filter(
    ({ type, data }) => type.startsWith('external_refund.') && data.paymentId === id,
  )
}

/**
 * Checks that the last event of each external refund of a payment shows what its route shows, to the letter.
 * @returns the states that the feed has shown of each, by its request id, oldest first
 */
async function readStates(
  payment: LabPayment,
  transactionIds: readonly string[] = [payment.transactionId],
): Promise<Record<string, string[]>> {
  const events = await readEventsOf(payment, ...transactionIds)
  const last = new Map(events.map(({ data }) => [data.id, data]))
  const stored = await list(payment)
  expect(stored.map(({ id }) => last.get(id))).toEqual(stored)
  const states: Record<string, string[]> = {}
  for (const { data } of events) {
    const { requestId, state } = ExternalRefund.parse(data)
    const name = requestId ?? 'entered'
    states[name] = [...(states[name] ?? []), state]
  }
  return states
}

async function post(path: string, body: object): Promise<void> {
  const { status } = await lab.post(path, { reason: 'ticket 4711', ...body })
  expect({ path, status }).toEqual({ path, status: 200 })
}

async function decide(payment: LabPayment, requestId: string, outcome: string): Promise<void> {
  const one = (await list(payment)).find((found) => found.requestId === requestId)
  await post(`/external-refunds/${one?.id}/resolution`, { outcome })
}

async function makeReserved(amount = '30'): Promise<LabPayment> {
  const payment = await lab.open()
  await lab.notify(payment, 'portal-1', amount)
  await lab.pass(payment)
  return payment
}

/** The payment has grown by 30, which a person has entered as a refund made elsewhere. */
async function makeEntered(): Promise<LabPayment> {
  const payment = await lab.open()
  await lab.show(payment, '30')
  await lab.pass(payment)
  const [row] = await lab.database.sql`
    select id from discrepancies where kind = 'unexplained_growth' and payment_id = ${payment.id}`
  await post(`/discrepancies/${row?.id}/resolution`, {})
  return payment
}

/** A refund of ours was sent and notified; its row is lost, and it is requested again. */
async function repeatLost(key: string, grown: boolean): Promise<LabPayment> {
  const payment = await lab.open()
  const { id } = (await lab.refund(payment.id, { amount: '30' }, key)).body
  await lab.pass(payment)
  await lab.database.sql`truncate refunds, refund_attempts`
  if (grown) await lab.settle(id)
  await lab.notify(payment, id, '30')
  await lab.pass(payment)
  expect((await lab.refund(payment.id, { amount: '30' }, key)).body.status).toBe('succeeded')
  return payment
}

/** One signed text that is read as two refunds of the payment; growth shows the first. */
async function playTwoReadings(): Promise<LabPayment> {
  const payment = await lab.open()
  const other = await lab.open({ paymentId: `${payment.id}2` })
  const genuine = signIpn(
    {
      svc_Command: 'REFUND',
      svc_Amount: '30',
      svc_PaymentID: payment.id,
      svc_RequestID: '2portal',
      svc_ResponseCode: '0',
      svc_ResponseMsg: 'Success',
    },
    { exclude: [] },
  )
  const cut = { ...genuine, svc_PaymentID: other.id, svc_RequestID: 'portal' }
  for (const one of [genuine, cut]) expect((await postIpn(lab.service.url, one)).status).toBe(200)
  await lab.pass(payment)
  await lab.pass(other)
  await lab.show(payment, '30')
  await lab.pass(payment)
  await lab.pass(other)
  return other
}

/** What happens, and the states that the feed shows of each external refund by its request id. */
type Play = { what: string; play: () => Promise<LabPayment>; states: Record<string, string[]> }

/** The plays of every statement that writes external refunds, each by its file and its first line. */
const PLAYS: Record<string, readonly Play[]> = {
  'refunds/save.ts: .insert(externalRefunds)': [
    { what: 'a success is notified', play: makeReserved, states: { 'portal-1': ['reserved'] } },
    {
      what: 'a success is notified again after a person decided that it never happened',
      async play() {
        const payment = await makeReserved()
        await decide(payment, 'portal-1', 'never_happened')
        await lab.notify(payment, 'portal-1', '30', { message: 'again' })
        await lab.pass(payment)
        return payment
      },
      states: { 'portal-1': ['reserved', 'never_happened'] },
    },
    { what: 'a person enters it', play: makeEntered, states: { entered: ['matched'] } },
  ],
  'refunds/save.ts: .update(externalRefunds)': [
    {
      what: 'a failure is notified',
      async play() {
        const payment = await makeReserved()
        await lab.notify(payment, 'portal-1', '30', { code: 5 })
        await lab.pass(payment)
        return payment
      },
      states: { 'portal-1': ['reserved'] },
    },
    {
      what: 'growth shows it',
      async play() {
        const payment = await makeReserved()
        await lab.show(payment, '30')
        await lab.pass(payment)
        return payment
      },
      states: { 'portal-1': ['reserved', 'matched'] },
    },
    {
      what: 'first sight shows it',
      async play() {
        const payment = await lab.open()
        await lab.database.sql`truncate transactions, payments cascade`
        await lab.show(payment, '30')
        await lab.notify(payment, 'portal-1', '30')
        await lab.database.sql`
          insert into transactions (merchant_code, transaction_id)
          values (${MERCHANT.merchantCode}, ${payment.transactionId})`
        await lab.pass(payment)
        await lab.pass(payment)
        return payment
      },
      states: { 'portal-1': ['part_of_first_sight'] },
    },
    {
      what: 'growth shows another reading of its notification',
      play: playTwoReadings,
      states: { portal: ['reserved', 'released'] },
    },
    {
      what: 'a person decides that it never happened',
      async play() {
        const payment = await makeReserved()
        await decide(payment, 'portal-1', 'never_happened')
        return payment
      },
      states: { 'portal-1': ['reserved', 'never_happened'] },
    },
    ...[
      { amount: '10', what: 'a smaller one takes a part of what a person entered' },
      { amount: '30', what: 'another one takes all of what a person entered' },
    ].map(({ amount, what }) => ({
      what,
      async play() {
        const payment = await makeEntered()
        await lab.notify(payment, 'portal-1', amount)
        await lab.pass(payment)
        await decide(payment, 'portal-1', 'matched')
        return payment
      },
      states: {
        entered: ['matched', amount === '30' ? 'released' : 'matched'],
        'portal-1': ['reserved', 'matched'],
      },
    })),
  ],
  'refunds/store-refund.ts: .update(externalRefunds)': [
    {
      what: 'it is ours, from a lost row, and growth shows it',
      play: () => repeatLost('lost-1', true),
      states: { [deriveId('lost-1')]: ['matched', 'own'] },
    },
    {
      what: 'it is ours, from a lost row, and nothing shows it yet',
      play: () => repeatLost('lost-2', false),
      states: { [deriveId('lost-2')]: ['reserved', 'own'] },
    },
  ],
}

const WRITES =
  /(?:insert into|update|delete from) external_refunds.*|\.(?:insert|update|delete)\(externalRefunds\)/g

/** Every statement of the source that writes external refunds. */
function listWrites(): string[] {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' })
  return files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => {
      const text = readFileSync(join('src', file), 'utf8')
      return (text.match(WRITES) ?? []).map((line) => `${file}: ${line}`)
    })
}

describe('the last event of an external refund shows it as it is stored', () => {
  it('has a play of every statement that writes it', () => {
    expect(Object.keys(PLAYS).toSorted()).toEqual([...new Set(listWrites())].toSorted())
  })

  const plays = Object.entries(PLAYS).flatMap(([statement, some]) =>
    some.map((one) => [one.what, statement, one] as const),
  )
  it.each(plays)('after %s (%s)', async (_what, _statement, { play, states }) => {
    const payment = await play()
    expect(await readStates(payment)).toEqual(states)
    await lab.pass(payment)
    expect(await readStates(payment)).toEqual(states)
  })

  it('after its payment has moved to another transaction', async () => {
    const gateway = await startListingGateway(lab)
    const payment = await lab.open()
    const { id, transactionId: first } = payment
    const second = `${first}-2`
    await notifyOf(lab, second, { svc_OrderID: 'DH2', svc_Currency: 'VND' })
    await lab.notify(payment, 'portal-1', '5')
    gateway.list(makeEntry(id), makeEntry(`${id}-other`))
    await gateway.sync(first)
    gateway.list(makeEntry(`${id}-other`))
    await gateway.sync(first)
    await ageOmission(lab, id)
    await gateway.sync(first)
    expect(await readStates(payment)).toEqual({ 'portal-1': ['reserved'] })
    gateway.list(makeEntry(id))
    await gateway.sync(second)
    const states = await readStates(payment, [first, second])
    expect(states).toEqual({ 'portal-1': ['reserved', 'reserved'] })
    const [last] = (await readEventsOf(payment, second)).slice(-1)
    expect(last).toMatchObject({
      type: 'external_refund.updated',
      data: { transactionId: second, orderId: 'DH2', currency: 'VND' },
    })
  })
})
