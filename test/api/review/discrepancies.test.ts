import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Discrepancy } from '../../../src/discrepancies/routes.ts'
import { expectInvalid, expectProblem, readPage, withKey } from '../../support/api.ts'
import { emptyTables } from '../../support/database.ts'
import { makeEntry, startListingGateway } from '../../support/listing-gateway.ts'
import { atOnce } from '../../support/locks.ts'
import { addKey } from '../../support/service.ts'
import { readItem } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'

const OPERATOR = 'key-of-operations-only-01234567890123456'

const rig = useRig({ settings: { ROLE: 'web' } })
beforeAll(async () => {
  await addKey(rig.database, OPERATOR, ['ops'])
})
afterEach(() => emptyTables(rig.database))

type Step = 'resolution' | 'note' | 'assignee'

function post(id: string, step: Step, body: unknown, key = OPERATOR) {
  return fetch(`${rig.service.url}/v1/discrepancies/${id}/${step}`, {
    method: 'POST',
    ...withKey(key, { 'content-type': 'application/json' }),
    body: JSON.stringify(body),
  })
}

async function decide(id: string, step: Step, body: unknown) {
  const response = await post(id, step, body)
  expect(response.status).toBe(200)
  return Discrepancy.strict().parse(await response.json())
}

async function list(kind?: string) {
  const query = kind === undefined ? '' : `?kind=${kind}`
  const { data } = await readPage(await rig.api(`/v1/discrepancies${query}`))
  return data.map((one) => Discrepancy.strict().parse(one)).reverse()
}

async function findOnly(kind: string) {
  const [only, second] = await list(kind)
  if (!only || second) throw new Error(`not one ${kind}`)
  return only
}

const ODD = makeEntry('odd', { amount: 'ten' })
const ODDER = makeEntry('odd', { amount: 'eleven' })

/** Leaves a transaction with an entry that was never readable, and thus no payment for it. */
async function makeUnreadable() {
  const gateway = await startListingGateway(rig)
  gateway.list(makeEntry('fine'), ODD)
  await gateway.sync('T-1')
  const { id } = await findOnly('payment_unreadable')
  return { gateway, id }
}

describe('the resolution of a discrepancy', () => {
  it('is shown with the key and the reason: in the list, timeline, feed and audit log', async () => {
    const { id } = await makeUnreadable()
    const resolved = await decide(id, 'resolution', { reason: 'a test of theirs' })
    const resolution = { by: 'test', reason: 'a test of theirs' }
    expect(resolved).toMatchObject({ id, resolution })
    expect(resolved.resolvedAt).not.toBeNull()
    expect(await findOnly('payment_unreadable')).toEqual(resolved)
    const { data } = await readPage(await rig.api('/v1/transactions/T-1/timeline'))
    const cause = `discrepancy ${id} (payment_unreadable) resolved with API key test: a test of theirs`
    expect(data.filter(({ field }) => field === 'discrepancy')).toMatchObject([
      { type: 'change', paymentId: 'odd', before: 'open', after: 'resolved', cause },
    ])
    const [event] = await rig.database.sql`
      select data from event_outbox where type = 'discrepancy.updated' and data ->> 'id' = ${id}`
    expect(event?.data).toEqual(resolved)
    const [audited] = await rig.database.sql`
      select operation, actor, outcome from audit_entries where object_id = ${id}`
    expect(audited).toEqual({
      operation: 'POST /v1/discrepancies/{id}/resolution',
      actor: 'test',
      outcome: 'done',
    })
  })

  it('a second time is 409, with what was decided', async () => {
    const { id } = await makeUnreadable()
    await decide(id, 'resolution', { reason: 'a test of theirs' })
    const response = await post(id, 'resolution', { reason: 'x' })
    const { detail } = await expectProblem(response, 409, 'discrepancy_resolved')
    expect(detail).toMatch(/resolved by test at \S+Z: a test of theirs\. You can still add a note/)
  })

  it('after the sides agreed again is 409, and says so', async () => {
    const { gateway, id } = await makeUnreadable()
    gateway.list(makeEntry('fine'))
    await gateway.sync('T-1')
    const response = await post(id, 'resolution', { reason: 'x' })
    const { detail } = await expectProblem(response, 409, 'discrepancy_resolved')
    expect(detail).toContain('have agreed again since')
  })

  it('by two people at once is done once', async () => {
    const { id } = await makeUnreadable()
    const answers = await atOnce(
      rig.database,
      (held) => held`select from discrepancies where id = ${id} for update`,
      ['one', 'two'].map((reason) => () => post(id, 'resolution', { reason })),
    )
    const [lost] = answers.filter(({ status }) => status === 409)
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    const { resolution } = await findOnly('payment_unreadable')
    expect(await lost?.json()).toMatchObject({
      detail: expect.stringContaining(`Z: ${resolution?.reason}. You can`),
    })
  })

  it('without a valid text is 422, as are a note and an assignee', async () => {
    const { id } = await makeUnreadable()
    const wrong: [Step, string, unknown][] = [
      ['resolution', 'reason', {}],
      ['resolution', 'reason', { reason: ' ' }],
      ['resolution', 'reason', { reason: 'a\u0000' }],
      ['note', 'text', {}],
      ['note', 'text', { text: 'x'.repeat(501) }],
      ['assignee', 'name', {}],
      ['assignee', 'name', { name: '' }],
      ['assignee', 'name', { name: 'x'.repeat(101) }],
    ]
    for (const [step, field, body] of wrong) {
      await expectInvalid(await post(id, step, body), field)
    }
  })
})

describe('notes and the assignee', () => {
  it('are shown with who wrote them, and in the timeline', async () => {
    const { id } = await makeUnreadable()
    await decide(id, 'note', { text: 'asked them' })
    await decide(id, 'assignee', { name: 'Linh' })
    await decide(id, 'resolution', { reason: 'answered' })
    const noted = await decide(id, 'note', { text: 'thanked them' })
    expect(noted).toMatchObject({
      assignee: 'Linh',
      notes: [
        { by: 'test', text: 'asked them' },
        { by: 'test', text: 'thanked them' },
      ],
    })
    const { data } = await readPage(await rig.api('/v1/transactions/T-1/timeline'))
    const steps = data.filter(({ field }) => String(field).startsWith('discrepancy'))
    expect(steps).toMatchObject([
      { field: 'discrepancy_note', after: 'asked them' },
      { field: 'discrepancy_assignee', before: null, after: 'Linh' },
      { field: 'discrepancy' },
      { field: 'discrepancy_note', after: 'thanked them' },
    ])
  })

  it('an assignee can be taken off, and not put on a resolved one', async () => {
    const { id } = await makeUnreadable()
    await decide(id, 'assignee', { name: 'Linh' })
    expect((await decide(id, 'assignee', { name: null })).assignee).toBeNull()
    await decide(id, 'resolution', { reason: 'answered' })
    const response = await post(id, 'assignee', { name: 'Linh' })
    await expectProblem(response, 409, 'discrepancy_resolved')
  })

  it('are at most a hundred notes', async () => {
    const { id } = await makeUnreadable()
    await rig.database.sql`
      update discrepancies set notes = (select jsonb_agg(jsonb_build_object(
        'at', '2026-11-22T09:33:05.120Z', 'by', 'test', 'text', n::text)) from generate_series(1, 100) n)`
    await expectInvalid(await post(id, 'note', { text: 'one more' }), 'text')
  })
})

describe('an unreadable entry whose discrepancy is resolved', () => {
  it('is set aside: the transaction becomes final, though the entry never had a payment', async () => {
    const { gateway, id } = await makeUnreadable()
    expect(await rig.transaction('T-1')).toMatchObject({ final: false })
    await rig.database.sql`update transactions set due_at = null`
    await decide(id, 'resolution', { reason: 'a test of theirs' })
    expect((await readItem(rig, 'T-1')).dueInMs).toBeLessThan(60_000)
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({ final: true, payments: [{ id: 'fine' }] })
    expect(await findOnly('payment_unreadable')).toMatchObject({
      resolution: { reason: 'a test of theirs' },
      resolvedAt: expect.any(String),
      times: 2,
    })
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({ final: true })
  })

  it('is not set aside with another text, and not with the first one after that', async () => {
    const { gateway, id } = await makeUnreadable()
    await decide(id, 'resolution', { reason: 'a test of theirs' })
    await gateway.sync('T-1')
    gateway.list(makeEntry('fine'), ODDER)
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({ final: false })
    expect(await list('payment_unreadable')).toMatchObject([
      { id, resolution: { by: 'test' } },
      { resolvedAt: null, theirs: { says: JSON.stringify(ODDER) } },
    ])
    gateway.list(makeEntry('fine'), ODD)
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({ final: false })
    expect(await list('payment_unreadable')).toMatchObject([
      { id, resolvedAt: null, resolution: null },
      { resolution: null },
    ])
  })

  it('sets no other entry aside, nor the same one of another transaction', async () => {
    const { gateway, id } = await makeUnreadable()
    await decide(id, 'resolution', { reason: 'a test of theirs' })
    gateway.list(makeEntry('fine'), ODD, makeEntry('other', { amount: 'ten' }))
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({ final: false })
    gateway.list(makeEntry('fine-2'), ODD)
    await gateway.sync('T-2')
    expect(await rig.transaction('T-2')).toMatchObject({ final: false })
  })

  it('of a known payment keeps it from being refunded', async () => {
    const gateway = await startListingGateway(rig)
    gateway.list(makeEntry('p1'))
    await gateway.sync('T-1')
    gateway.list(makeEntry('p1', { amount: 'ten' }))
    await gateway.sync('T-1')
    const { id } = await findOnly('payment_unreadable')
    await decide(id, 'resolution', { reason: 'a test of theirs' })
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({
      final: true,
      payments: [{ unreadable: true, refundableAmount: '0' }],
    })
    gateway.list(makeEntry('p1'))
    await gateway.sync('T-1')
    gateway.list(makeEntry('p1', { amount: 'ten' }))
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({ final: false })
  })

  it('without an id is set aside, too', async () => {
    const gateway = await startListingGateway(rig)
    gateway.list(makeEntry('fine'), '{"status":"SUCCESS"}')
    await gateway.sync('T-1')
    const { id, paymentId } = await findOnly('payment_unreadable')
    expect(paymentId).toBeNull()
    await decide(id, 'resolution', { reason: 'a test of theirs' })
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({ final: true })
  })
})

it('a discrepancy that a person resolved is open again when the sides agreed in between and differ again', async () => {
  const gateway = await startListingGateway(rig)
  gateway.list(makeEntry('p1'))
  await gateway.sync('T-1')
  gateway.list(makeEntry('p1', { status: 'FAILED' }))
  await gateway.sync('T-1')
  const { id } = await findOnly('answer_went_backwards')
  await decide(id, 'resolution', { reason: 'they corrected it' })
  gateway.list(makeEntry('p1'))
  await gateway.sync('T-1')
  expect(await findOnly('answer_went_backwards')).toMatchObject({ resolution: { by: 'test' } })
  gateway.list(makeEntry('p1', { status: 'FAILED' }))
  await gateway.sync('T-1')
  expect(await findOnly('answer_went_backwards')).toMatchObject({
    id,
    resolvedAt: null,
    resolution: null,
    times: 2,
  })
})

describe('duplicate_payment', () => {
  const pay = (first: object, second: object) => [
    makeEntry('p1', { amount: 10, ...first }),
    makeEntry('p2', { amount: 15, ...second }),
  ]

  it('closes when the surplus is refunded, and opens again when it is not any more', async () => {
    const gateway = await startListingGateway(rig)
    gateway.list(...pay({}, {}))
    await gateway.sync('T-1')
    expect(await findOnly('duplicate_payment')).toMatchObject({ resolvedAt: null })
    gateway.list(...pay({ refundedAmount: 9 }, {}))
    await gateway.sync('T-1')
    expect(await findOnly('duplicate_payment')).toMatchObject({ resolvedAt: null })
    gateway.list(...pay({ refundedAmount: 10 }, {}))
    await gateway.sync('T-1')
    expect((await findOnly('duplicate_payment')).resolvedAt).not.toBeNull()
    expect(await rig.transaction('T-1')).toMatchObject({ duplicatePayment: true })
    gateway.list(...pay({}, {}))
    await gateway.sync('T-1')
    expect(await findOnly('duplicate_payment')).toMatchObject({ resolvedAt: null, times: 2 })
  })

  it('closes when the larger payment is refunded', async () => {
    const gateway = await startListingGateway(rig)
    gateway.list(...pay({}, {}))
    await gateway.sync('T-1')
    gateway.list(...pay({}, { refundedAmount: 15 }))
    await gateway.sync('T-1')
    expect((await findOnly('duplicate_payment')).resolvedAt).not.toBeNull()
  })
})
