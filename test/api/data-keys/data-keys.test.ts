import { describe, expect, it, onTestFinished } from 'vitest'
import { ConfigError } from '../../../src/config/environment.ts'
import { openDataKeys } from '../../../src/db/data-keys.ts'
import { Refund } from '../../../src/refunds/view.ts'
import { withKey } from '../../support/api.ts'
import { ask, expectRefused, expectTaken, MASKED, RECEIVER, seedPaid } from '../../support/ask.ts'
import { borrowForTest, type TestDatabase } from '../../support/database.ts'
import { startTestService } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const makeKey = (byte: number) => Buffer.alloc(32, byte).toString('base64')
const [K1, K2] = [makeKey(1), makeKey(2)]

/** Starts a web process with a key for one test. */
async function start(database: TestDatabase, key: string, previous = '') {
  const service = await startTestService(database, 'http://127.0.0.1:9', {
    settings: { ROLE: 'web', DATA_ENCRYPTION_KEY: key, DATA_ENCRYPTION_KEY_PREVIOUS: previous },
  })
  onTestFinished(() => service.stop())
  return service
}

const readReceiver = async (url: string, refundId: string) =>
  Refund.parse(await (await fetch(`${url}/v1/refunds/${refundId}`, withKey())).json()).receiver

const readKeys = ({ sql }: TestDatabase) =>
  sql`select purpose, id, encode(wrapped, 'hex') as wrapped from data_keys order by purpose, id`

describe('another DATA_ENCRYPTION_KEY', () => {
  it('than the database was written with stops the start, with one line', async () => {
    const database = await borrowForTest()
    const first = await start(database, K1)
    await first.stop()
    const refused = start(database, K2)
    await expect(refused).rejects.toBeInstanceOf(ConfigError)
    await expect(refused).rejects.toMatchObject({
      lines: [expect.stringMatching(/^DATA_ENCRYPTION_KEY is not the key .*_PREVIOUS/)],
    })
    await start(database, K1)
  })

  it('beside the previous one changes no answer: the same request is the same refund', async () => {
    const database = await borrowForTest()
    const { id } = await seedPaid(database, { paymentMethod: 'QR' })
    const first = await start(database, K1)
    const body = { amount: '30', receiver: RECEIVER }
    const asked = { url: first.url, idempotencyKey: 'kept' }
    const refund = await expectTaken(await ask(asked, id, body))
    await first.stop()
    const before = await readKeys(database)

    const second = await start(database, K2, K1)
    const again = { url: second.url, idempotencyKey: 'kept' }
    expect((await expectTaken(await ask(again, id, body), true)).id).toBe(refund.id)
    await expectRefused(
      await ask(again, id, { ...body, amount: '31' }),
      422,
      'idempotency_key_reused',
    )
    expect(await readReceiver(second.url, refund.id)).toEqual(MASKED)
    await second.stop()
    const after = await readKeys(database)
    // The same keys, encrypted again.
    const names = (keys: typeof before) => keys.map(({ purpose, id }) => `${purpose} ${id}`)
    expect(names(after)).toEqual(names(before))
    for (const [n, { wrapped }] of after.entries()) expect(wrapped).not.toBe(before[n]?.wrapped)

    const third = await start(database, K2)
    expect(await readReceiver(third.url, refund.id)).toEqual(MASKED)
    const later = { url: third.url, idempotencyKey: 'kept' }
    expect((await expectTaken(await ask(later, id, body), true)).id).toBe(refund.id)
    await third.stop()
    await expect(start(database, K1)).rejects.toBeInstanceOf(ConfigError)
  })

  it('in processes that start together is stored once', async () => {
    const database = await borrowForTest()
    await Promise.all([K1, K1, K1].map((current) => openDataKeys(database.sql, { current })))
    const keys = await readKeys(database)
    expect(keys.map(({ purpose }) => purpose)).toEqual(['fingerprint', 'seal'])
    expect(JSON.stringify(keys)).not.toContain(Buffer.from(K1, 'base64').toString('hex'))
  })
})

describe('a reused idempotency key', () => {
  const rig = useRig({ settings: { ROLE: 'web' } })

  it('names the refund that it belongs to, and advises no new key', async () => {
    const { id } = await seedPaid(rig.database)
    const asked = { url: rig.service.url, idempotencyKey: 'taken' }
    const refund = await expectTaken(await ask(asked, id, { amount: '1' }))
    const response = await ask(asked, id, { amount: '2' })
    const problem = await expectRefused(response, 422, 'idempotency_key_reused')
    expect(problem).toMatchObject({ refundId: refund.id })
    expect(problem.detail).toContain(refund.id)
    expect(problem.detail).not.toMatch(/new (key|one)|another key/)
  })

  it('whose fingerprint cannot be checked is 503, never 422, and nothing is stored', async () => {
    const { sql } = rig.database
    const { id } = await seedPaid(rig.database)
    const asked = { url: rig.service.url, idempotencyKey: 'lost' }
    const refund = await expectTaken(await ask(asked, id, { amount: '30' }))
    await sql`update refunds set fingerprint_key_id = 'ffffffffffffffff'`
    for (const amount of ['30', '31']) {
      const response = await ask(asked, id, { amount })
      expect(response.headers.get('retry-after')).not.toBeNull()
      const problem = await expectRefused(response, 503, 'unavailable')
      expect(problem.detail).toContain(refund.id)
    }
    expect(await sql`select from refunds where payment_id = ${id}`).toHaveLength(1)
  })
})
