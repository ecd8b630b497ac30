import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createTokenProvider } from '../../../src/gateway/tokens.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { ask, expectTaken, seedPaid } from '../../support/ask.ts'
import { CARDS } from '../../support/cards.ts'
import { takeFaults } from '../../support/conformance/faults.ts'
import { makeClient } from '../../support/gateway.ts'
import { KEY, MERCHANT } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { type Answer, makeAnswer, RIGHT, readPlainly, startScript, whole } from './answers.ts'
import { fuzz } from './run.ts'
import { expectOwn, expectWell, startStage } from './stage.ts'

const database = useTestDatabase()

const Plain = z.object({ svc_ResponseCode: z.number() })
/** The code as any reader of JSON would take it; `-0` is 0. */
const readCode = (body: Buffer) => {
  const code = Plain.safeParse(readPlainly(body)).data?.svc_ResponseCode
  return code === undefined ? undefined : code + 0
}

const word = z
  .string()
  .min(1)
  .max(128)
  .refine((text) => !/\p{Cc}/u.test(text) && text.isWellFormed())
const amount = z.string().regex(/^\d{1,18}(\.\d{1,4})?$/)
const text128 = z
  .string()
  .max(128)
  .refine((text) => !text.includes('\0') && text.isWellFormed())
const Listed = z.strictObject({
  payments: z.array(
    z.strictObject({
      id: word,
      status: text128,
      amount,
      refundedAmount: amount,
      paymentMethod: text128,
    }),
  ),
  unreadable: z.array(z.object({ id: word.optional(), text: z.string() })),
  rounded: z.array(z.object({ id: word, amount })),
  json: z.string().refine((json) => Array.isArray(JSON.parse(json)) && json.isWellFormed()),
  omittedBytes: z.int().min(0),
})
const text = z.string().optional().catch(undefined)
const Told = z.object({
  access_token: text,
  data: z.object({ access_token: text }).optional().catch(undefined),
})
/** Of a call that reached a gateway. */
const KINDS = ['answered', 'rejected', 'unknown']

describe('whatever the gateway answers', { timeout: 1_800_000 }, () => {
  it('a query has an outcome, and only code 0 with a whole list is an answer', async () => {
    const { url, script } = await startScript()
    const { ask } = makeClient(url)
    await fuzz({ share: 0.06 }, makeAnswer(RIGHT.query), async ({ bytes, body }) => {
      script.answer = () => bytes
      const { outcome } = await ask()
      expect(KINDS).toContain(outcome.kind)
      if (outcome.kind !== 'answered') return
      Listed.parse(outcome.value)
      if (body) expect(readCode(body)).toBe(0)
    })
  })

  it('a refund has an outcome, and only code 0 accepts it', async () => {
    const { url, script } = await startScript()
    const { client } = makeClient(url)
    const { merchantCode } = MERCHANT
    const order = { merchantCode, refundId: 'R-1', paymentId: 'P-1', amount: '1' }
    await fuzz({ share: 0.04 }, makeAnswer(RIGHT.refund), async ({ bytes, body }) => {
      script.answer = () => bytes
      const { outcome } = await client.prepareRefund(order).send()
      expect(KINDS).toContain(outcome.kind)
      if (!body) return
      if (outcome.kind === 'answered') expect(readCode(body)).toBe(0)
      if (outcome.kind === 'rejected') expect(readCode(body)).toBe(Number(outcome.code))
    })
  })

  it('a token is one that a header can hold, or none', async () => {
    const { url, script } = await startScript()
    const client = {
      kind: 'client',
      clientId: 'shop',
      clientSecret: 's',
      scope: undefined,
    } as const
    await fuzz({ share: 0.06 }, makeAnswer(RIGHT.token), async ({ bytes, body }) => {
      script.answer = () => bytes
      const provider = createTokenProvider(
        { ...client, url: '/token' },
        { baseUrl: url, timeoutMs: 5_000, signal: new AbortController().signal, onFetch() {} },
      )
      const got = await provider.get()
      await provider.close()
      if (got.kind === 'none') return expect(got.timedOut).toBe(false)
      expect(got.token).toMatch(/^[\x21-\x7e]+$/)
      if (!body) return
      const { access_token: told, data } = Told.parse(JSON.parse(body.toString()))
      expect([told, data?.access_token]).toContain(got.token)
    })
  })

  it('cards are read or refused with a code', async () => {
    const { url, script } = await startScript()
    const { service, errors, send } = await startStage(database, url)
    const one = makeAnswer(RIGHT.detail).map((answer) => ({ answer, path: `${CARDS}/VC-1` }))
    const many = makeAnswer(RIGHT.list).map((answer) => ({ answer, path: CARDS }))
    const headers = { authorization: `Bearer ${KEY}` }
    await fuzz({ share: 0.04 }, fc.oneof(one, many), async ({ answer, path }) => {
      errors.splice(0)
      script.answer = () => answer.bytes
      const got = await send({ method: 'GET', path, headers, body: undefined })
      expectOwn(got, 'GET')
      if (got.status === 200) expect(JSON.parse(got.text)).toMatchObject({ code: 1 })
      expect(errors).toEqual([])
      // What the gateway sends beside the code is passed on as it came, also where a member is not of the type that
      // the specification gives it.
      const faults = await takeFaults()
      expect(faults.filter((fault) => !/^200 of GET \S+ data\//.test(fault))).toEqual([])
    })
    await expectWell(service)
  })

  it('a refund is accepted by code 0, in doubt by all else, and never at its end', async () => {
    const { url, script } = await startScript()
    const { service, errors } = await startStage(database, url)
    await fuzz({ share: 0.015 }, makeAnswer(RIGHT.refund), async ({ bytes, body }) => {
      errors.splice(0)
      const { id: paymentId } = await seedAsListed()
      const { id } = await expectTaken(await ask({ url: service.url }, paymentId, { amount: '1' }))
      const truth = adapt(whole(Buffer.from(RIGHT.query[0] ?? '')), paymentId)
      script.answer = (request) => (request.includes('QUERY_PT') ? truth.bytes : bytes)
      expect(await syncDue(service.ctx)).toBe(1)
      const [row] = await database.sql<{ status: string }[]>`
        select status from refunds where refund_id = ${id}`
      await rest()
      expect(['accepted', 'unknown']).toContain(row?.status)
      if (body && row?.status === 'accepted') expect(readCode(body)).toBe(0)
      expect(errors).toEqual([])
    })
    await expectWell(service)
  })

  it('nothing is stored of an answer to a query that cannot be used', async () => {
    const { url, script } = await startScript()
    const { service, errors } = await startStage(database, url)
    let unused = 0
    await fuzz({ share: 0.015 }, makeAnswer(RIGHT.query), async (answer) => {
      const { id, transactionId } = await seedAsListed()
      const { bytes } = adapt(answer, id)
      script.answer = () => bytes
      const before = await readStored(transactionId)
      await database.sql`
        update transactions set due_at = now() - interval '1 s'
        where transaction_id = ${transactionId}`
      expect(await syncDue(service.ctx)).toBe(1)
      await rest()
      const [call] = await database.sql<{ outcome: string }[]>`
        select outcome from gateway_calls where transaction_id = ${transactionId}`
      // A payment that was another transaction's before is refused by name, and the answer with it.
      const refused = errors.splice(0).join()
      expect(refused).toMatch(/^$|PaymentElsewhereError/)
      if (refused === '') expect(KINDS).toContain(call?.outcome)
      if (refused === '' && call?.outcome === 'answered') return
      expect(await readStored(transactionId)).toEqual(before)
      unused += 1
    })
    expect(unused).toBeGreaterThan(0)
    await expectWell(service)
  })
})

/** The answer, about a payment of the input's own: another input's is no news. */
function adapt({ bytes, body }: Answer, paymentId: string): Answer {
  if (!body) return { bytes, body }
  return whole(Buffer.from(body.toString('latin1').replaceAll('P-1', paymentId), 'latin1'))
}

/** A payment as the right answer lists it, in a transaction with the sums of its payments. */
async function seedAsListed(): ReturnType<typeof seedPaid> {
  const amount = '10.5'
  const seeded = await seedPaid(database, { amount })
  await database.sql`
    update transactions set paid_amount = ${amount} where transaction_id = ${seeded.transactionId}`
  return seeded
}

/** What the next input makes due is the only thing that is. */
async function rest(): Promise<void> {
  await database.sql`update transactions set due_at = null where due_at is not null`
}

async function readStored(transactionId: string) {
  return await database.sql`
    select t.state, t.final, t.version, t.as_of::text, to_jsonb(p) as payment
    from transactions t left join payments p using (merchant_code, transaction_id)
    where t.transaction_id = ${transactionId} order by p.payment_id`
}
