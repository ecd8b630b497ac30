import { afterEach, describe, expect, it } from 'vitest'
import { ask, expectRefused, expectTaken, post } from '../../support/ask.ts'
import { emptyTables } from '../../support/database.ts'
import {
  ageOmission,
  makeEntry,
  startListingGateway,
  writeEntry,
} from '../../support/listing-gateway.ts'
import { readItem } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
afterEach(() => emptyTables(rig.database))

const readFound = () => rig.database.sql`
  select kind, payment_id as id, ours, theirs, resolved_at is not null as resolved
  from discrepancies order by id`

describe('an entry that cannot be read', () => {
  it.each([
    [
      'an amount as text',
      '"amount":10',
      '"amount":"10"',
      /a value as its amount that is no amount/,
    ],
    ['no refundedAmount', '"refundedAmount":0,', '', /has no refundedAmount/],
  ])('%s: the others are applied, the transaction stays open', async (_, from, to, reason) => {
    const gateway = await startListingGateway(rig)
    const odd = writeEntry('odd', from, to)
    gateway.list(makeEntry('fine'), odd)
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({
      state: 'paid',
      final: false,
      payments: [{ id: 'fine', refundableAmount: '10', unreadable: false }],
      sync: { status: 'queued', attempts: 0, lastError: null },
    })
    expect(await readItem(rig, 'T-1')).toMatchObject({ attempts: 0, polls: 1, version: 2 })
    expect(await readFound()).toEqual([
      {
        kind: 'payment_unreadable',
        id: 'odd',
        ours: expect.stringMatching(reason),
        theirs: expect.stringContaining('"id":"odd"'),
        resolved: false,
      },
    ])

    gateway.list(makeEntry('fine'), makeEntry('odd'))
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({
      final: true,
      payments: [{ id: 'fine' }, { id: 'odd', amount: '10' }],
    })
    expect(await readFound()).toMatchObject([{ resolved: true }, { kind: 'duplicate_payment' }])
  })

  it('of a known payment: what was read last is kept and flagged, and cannot be refunded', async () => {
    const gateway = await startListingGateway(rig)
    gateway.list(makeEntry('p1'))
    await gateway.sync('T-1')
    gateway.list(writeEntry('p1', '"refundedAmount":0,', '').replace('SUCCESS', 'FAILED'))
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({
      final: false,
      payments: [
        { id: 'p1', status: 'SUCCESS', unreadable: true, missing: false, refundableAmount: '0' },
      ],
    })
    const refund = () => ask({ url: rig.service.url }, 'p1', { amount: '1' })
    const { detail } = await expectRefused(await refund(), 409, 'payment_not_refundable')
    expect(detail).toContain('cannot be read')
    gateway.list(makeEntry('p1'))
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({
      final: true,
      payments: [{ unreadable: false, refundableAmount: '10' }],
    })
    await expectTaken(await refund())
  })

  it('does not send, fail or settle a refund of its payment', async () => {
    const gateway = await startListingGateway(rig, { REFUND_BACKOFF_MS: 1 })
    gateway.list(makeEntry('p1'))
    await gateway.sync('T-1')
    await expectTaken(await ask({ url: rig.service.url }, 'p1', { amount: '10' }))
    gateway.list(writeEntry('p1', '"refundedAmount":0', '"refundedAmount":"10"'))
    await gateway.sync('T-1')
    const read = () => rig.database.sql`select status, attempts from refunds`
    expect(await read()).toEqual([{ status: 'pending', attempts: 0 }])
    gateway.list(makeEntry('p1'))
    await gateway.sync('T-1')
    expect(await read()).toMatchObject([{ attempts: 1 }])
  })

  it('because its id is listed twice: neither is applied', async () => {
    const gateway = await startListingGateway(rig)
    gateway.list(makeEntry('fine'), makeEntry('twice'), makeEntry('twice', { amount: 11 }))
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({
      final: false,
      payments: [{ id: 'fine' }],
    })
    expect(await readFound()).toMatchObject([
      { kind: 'payment_unreadable', id: 'twice', ours: expect.stringContaining('listed twice') },
      { kind: 'payment_unreadable', id: 'twice', theirs: expect.stringContaining('11') },
    ])
  })
})

describe('an entry without an id', () => {
  it.each(['null', '{"id":7}'])(
    '%s: the others are applied, no payment is taken for gone, and the transaction stays open',
    async (entry) => {
      const gateway = await startListingGateway(rig)
      gateway.list(makeEntry('p1'), makeEntry('p2', { status: 'FAILED' }))
      await gateway.sync('T-1')
      expect(await rig.transaction('T-1')).toMatchObject({ final: true })
      gateway.list(makeEntry('p1'), entry)
      await gateway.sync('T-1')
      const rows = await rig.database.sql`
        select payment_id as id, missing, unlisted_since from payments order by 1`
      expect(rows).toEqual([
        { id: 'p1', missing: false, unlisted_since: null },
        { id: 'p2', missing: false, unlisted_since: null },
      ])
      expect(await rig.transaction('T-1')).toMatchObject({ state: 'paid', final: false })
      expect(await readFound()).toMatchObject([{ kind: 'payment_unreadable', id: null }])
    },
  )

  it('that a person has set aside keeps no payment from being believed gone, and from moving', async () => {
    const gateway = await startListingGateway(rig)
    gateway.list(makeEntry('p1'), '{"id":7}')
    await gateway.sync('T-OLD')
    const [row] = await rig.database.sql`select id from discrepancies`
    const path = `/v1/discrepancies/${row?.id}/resolution`
    const resolved = await post({ url: rig.service.url }, path, { reason: 'ticket 4711' })
    expect(resolved.status).toBe(200)
    gateway.list('{"id":7}')
    await gateway.sync('T-OLD')
    await ageOmission(rig, 'p1')
    await gateway.sync('T-OLD')
    gateway.list(makeEntry('p1'))
    await gateway.sync('T-NEW')
    expect(await rig.transaction('T-NEW')).toMatchObject({ payments: [{ id: 'p1' }] })
  })
})

describe('a status or a method that is no documented text', () => {
  it.each([
    ['null', ''],
    ['"LATER"', 'LATER'],
    ['"SUCCESS\\u0000"', JSON.stringify('SUCCESS\ufffd')],
  ])('%s is unrecognised, and a success beside it is seen', async (value, shown) => {
    const gateway = await startListingGateway(rig)
    const method = writeEntry('p1', '"CC"', value).replace('"SUCCESS"', '"PROCESSING"')
    gateway.list(method, writeEntry('p2', '"SUCCESS"', value), makeEntry('p3'))
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({
      state: 'paid',
      final: false,
      payments: [
        { id: 'p1', status: 'PROCESSING', paymentMethod: shown, unrecognised: true },
        { id: 'p2', status: shown, unrecognised: true, refundableAmount: '0' },
        { id: 'p3', status: 'SUCCESS', unrecognised: false },
      ],
      sync: { attempts: 0 },
    })
    expect(await readFound()).toEqual([])
  })
})

describe('an amount that binary floating point has shifted', () => {
  it.each([
    ['0.30000000000000004', '0.3'],
    ['-1.1102230246251565e-16', '0'],
  ])('%s is %s, and the difference is shown', async (written, amount) => {
    const gateway = await startListingGateway(rig)
    gateway.list(writeEntry('p1', '"refundedAmount":0', `"refundedAmount":${written}`))
    await gateway.sync('T-1')
    expect(await rig.transaction('T-1')).toMatchObject({
      payments: [{ refundedAmount: amount, unreadable: false }],
    })
    expect(await readFound()).toMatchObject([
      {
        kind: 'amount_rounded',
        id: 'p1',
        ours: `refundedAmount ${amount}`,
        theirs: `refundedAmount ${written}`,
      },
    ])
  })
})

describe('the answer', () => {
  const readAnswer = async () => {
    const [row] = await rig.database.sql`select answer from gateway_calls order by id desc limit 1`
    return row?.answer
  }

  it('is stored with every member it had, card numbers masked', async () => {
    const gateway = await startListingGateway(rig)
    const more = { extra: { cardNumber: '4111111111111111', note: 'a\0b' }, bank: 'VCB' }
    gateway.list(makeEntry('p1', more), '{"id":"p2","amount":"x","huge":1e9999999}')
    await gateway.sync('T-1')
    expect(await readAnswer()).toEqual([
      {
        ...makeEntry('p1'),
        extra: { cardNumber: '411111******1111', note: 'a\ufffdb' },
        bank: 'VCB',
      },
      { id: 'p2', amount: 'x', huge: '1e9999999' },
    ])
  })

  it('is bounded: a very long entry keeps the members that the specification defines', async () => {
    const gateway = await startListingGateway(rig)
    gateway.list(
      makeEntry('p1', { blob: 'x'.repeat(100_000) }),
      makeEntry('p2', { status: 'FAILED' }),
    )
    await gateway.sync('T-1')
    const answer = JSON.stringify(await readAnswer())
    expect(answer.length).toBeLessThan(1_000)
    expect(answer).toContain('"shortened":true')
    expect(answer).toContain('p1')
    expect(await rig.transaction('T-1')).toMatchObject({ state: 'paid', final: true })
  })
})
