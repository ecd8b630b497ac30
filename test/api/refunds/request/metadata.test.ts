import { beforeAll, describe, expect, it } from 'vitest'
import { publishEvents } from '../../../../src/feed/publish-events.ts'
import { expectInvalid, readPage } from '../../../support/api.ts'
import { ask, expectRefused, expectTaken, RECEIVER, seedPaid } from '../../../support/ask.ts'
import { readAllEvents } from '../../../support/feed.ts'
import { useRig } from '../../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
let url = ''
beforeAll(() => {
  url = rig.service.url
})

const METADATA = { returnId: 'R-17', 'Ghi chú': 'đổi hàng, "gấp"\nline 2', empty: '' }

it('the pairs of a request are kept, and shown wherever the refund is', async () => {
  const { id } = await seedPaid(rig.database)
  const refund = await expectTaken(await ask({ url }, id, { amount: '10', metadata: METADATA }))
  expect(refund.metadata).toEqual(METADATA)
  const read = JSON.parse(await (await rig.api(`/v1/refunds/${refund.id}`)).text())
  expect(read.metadata).toEqual(METADATA)
  const { data } = await readPage(await rig.api(`/v1/refunds?paymentId=${id}`))
  expect(data[0]?.metadata).toEqual(METADATA)
  await publishEvents(rig.database.sql)
  const events = (await readAllEvents(rig)).filter(({ type }) => type === 'refund.created')
  const made = expect.objectContaining({ id: refund.id, metadata: METADATA })
  expect(events.map(({ data }) => data)).toContainEqual(made)
})

it('the names of members of events are names like others, in the feed too, with and without a receiver', async () => {
  const metadata = { bag: 'no', sealed: 'yes' }
  for (const [paymentMethod, receiver] of [['CC'], ['QR', RECEIVER]] as const) {
    const { id } = await seedPaid(rig.database, { paymentMethod })
    const refund = await expectTaken(await ask({ url }, id, { receiver, metadata }))
    await publishEvents(rig.database.sql)
    expect((await readAllEvents(rig)).at(-1)?.data).toEqual(refund)
  }
})

it('a refund without any shows none', async () => {
  const { id } = await seedPaid(rig.database)
  expect((await expectTaken(await ask({ url }, id))).metadata).toEqual({})
})

describe('under the same key', () => {
  it('the same pairs in another order replay the refund', async () => {
    const { id } = await seedPaid(rig.database)
    const asked = { url, idempotencyKey: 'metadata-order' }
    const first = await expectTaken(await ask(asked, id, { metadata: { a: '1', b: '2' } }))
    const again = await ask(asked, id, { metadata: { b: '2', a: '1' } })
    expect((await expectTaken(again, true)).id).toBe(first.id)
  })

  it('the replay is the first answer to the letter, in whatever order the pairs were sent', async () => {
    const { id } = await seedPaid(rig.database)
    const body = { metadata: { long: '1', é: '2', b: '3', a: '4', '10': '5', '9': '6' } }
    const request = {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'metadata-letter' },
      body: JSON.stringify(body),
    }
    const send = async () => await (await rig.api(`/v1/payments/${id}/refunds`, request)).text()
    const first = await send()
    expect(await send()).toBe(first)
    expect(first).toContain('"metadata":{"9":"6","10":"5","a":"4","b":"3","é":"2","long":"1"}')
  })

  it('other pairs are another request', async () => {
    const { id } = await seedPaid(rig.database)
    const asked = { url, idempotencyKey: 'metadata-other' }
    await expectTaken(await ask(asked, id, { metadata: { a: '1' } }))
    for (const metadata of [{ a: '2' }, { b: '1' }, { a: '1', b: '' }, {}]) {
      await expectRefused(await ask(asked, id, { metadata }), 422, 'idempotency_key_reused')
    }
  })
})

const pairs = (n: number, text = 'x') =>
  Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, text]))

describe('at its limits', () => {
  it.each([
    ['20 pairs', pairs(20)],
    ['2,048 bytes', { k: 'x'.repeat(2_048 - '{"k":""}'.length) }],
  ])('%s are taken', async (_, metadata) => {
    const { id } = await seedPaid(rig.database)
    expect((await expectTaken(await ask({ url }, id, { metadata }))).metadata).toEqual(metadata)
  })

  it.each([
    ['21 pairs', pairs(21), 'metadata'],
    ['2,049 bytes', { k: 'x'.repeat(2_049 - '{"k":""}'.length) }, 'metadata'],
    ['2,049 bytes in fewer characters', { k: 'đ'.repeat(1_021) }, 'metadata'],
    ['a number', { count: 1 }, 'metadata.count'],
    ['a nested object', { a: { b: 'c' } }, 'metadata.a'],
    ['null', { a: null }, 'metadata.a'],
    ['a list', ['a'], 'metadata'],
    ['a text', 'a=b', 'metadata'],
    ['an empty name', { '': 'a' }, 'metadata.'],
    ['the name __proto__', JSON.parse('{"__proto__":"x"}'), 'metadata.__proto__'],
    ['a control character', { a: 'b\u0000' }, 'metadata.a'],
  ])('%s is refused, with the name of the field', async (_, metadata, field) => {
    const { id } = await seedPaid(rig.database)
    await expectInvalid(await ask({ url }, id, { metadata }), field)
  })

  it('a list is told that it is no object', async () => {
    const { id } = await seedPaid(rig.database)
    const problem = await expectInvalid(await ask({ url }, id, { metadata: [] }), 'metadata')
    expect(problem.detail).toBe('metadata: must be of type object')
  })
})
