import { parse } from 'lossless-json'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findInTables, RECEIVER } from '../support/ask.ts'
import { listen } from '../support/gateway.ts'
import { type ListingGateway, makeEntry, startListingGateway } from '../support/listing-gateway.ts'
import { useFreshLab } from '../support/use-started.ts'

const lab = useFreshLab()

const LIMIT = 65_536
const Stored = z.object({
  members: z.record(z.string(), z.unknown()).optional(),
  text: z.string().optional(),
  omittedBytes: z.coerce.number().optional(),
})

/** What is stored of the newest query. */
async function readStored() {
  const [row] = await lab.database.sql`
    select received, answer::text as answer from gateway_calls order by id desc limit 1`
  return {
    received: row?.received === null ? null : Stored.parse(parse(row?.received, undefined, String)),
    answer: row?.answer,
    bytes: Buffer.byteLength(row?.received ?? '') + Buffer.byteLength(row?.answer ?? ''),
  }
}

/** The newest query in the timeline of a transaction. */
const readQuery = async (transactionId: string) =>
  (await lab.timeline({ transactionId })).findLast(({ type }) => type === 'query')

/** Queries the gateway once, which answers like this, and reads what is stored of it. */
async function queryAnswered(body: string, status?: number) {
  const gateway = await startListingGateway(lab)
  gateway.answer('QUERY_PT', body, status)
  await gateway.sync('T-1')
  return await readStored()
}

const write = (more: object) =>
  JSON.stringify({ svc_ResponseCode: 0, svc_ResponseMsg: 'ok', svc_ResponseData: [], ...more })

describe('the answer to a query', () => {
  it('as specified is stored as its entries, and nothing twice', async () => {
    const gateway = await startListingGateway(lab)
    gateway.list(makeEntry('p1', { bank: 'VCB' }))
    await gateway.sync('T-1')
    const { received, answer } = await readStored()
    expect(received).toBeNull()
    expect(JSON.parse(answer)).toEqual([makeEntry('p1', { bank: 'VCB' })])
  })

  it('is kept with the members beside its entries, tokens and card numbers masked', async () => {
    const card = { number: '4111111111111111', payToken: 'clear-token' }
    const entry = makeEntry('p1', { svc_PayToken: 'clear-token', card })
    const body = write({ svc_ResponseData: [entry], svc_Trace: 'X1', card })
    const { received, answer } = await queryAnswered(body)
    expect(received?.members).toEqual({
      svc_Trace: 'X1',
      card: { number: '411111******1111', payToken: '***' },
    })
    expect(JSON.parse(answer)[0]).toMatchObject({ svc_PayToken: '***', card: { payToken: '***' } })
    expect(answer).not.toContain('clear-token')
    expect((await readQuery('T-1'))?.received).toBe(
      '{"members":{"svc_Trace":"X1","card":{"number":"411111******1111","payToken":"***"}}}',
    )
  })

  it('that refuses is kept with every member', async () => {
    const refusal = { svc_ResponseCode: 1, svc_ResponseMsg: 'no', svc_ResponseData: { why: 'x' } }
    const { received } = await queryAnswered(JSON.stringify(refusal))
    expect(received?.members).toEqual({ ...refusal, svc_ResponseCode: '1' })
  })

  it.each<[string, number, string, object]>([
    [
      'a page',
      200,
      '<p>down, token=abc, card 4111111111111111</p>',
      {
        text: '<p>down, token=***, card 411111******1111</p>',
      },
    ],
    ['half an answer', 200, '{"svc_PayToken":"abc', { text: '{"svc_PayToken":"***' }],
    [
      'an error of a proxy',
      502,
      '{"error":"upstream","access_token":"abc"}',
      {
        members: { error: 'upstream', access_token: '***' },
      },
    ],
    ['a code as text', 200, '{"svc_ResponseCode":"0"}', { members: { svc_ResponseCode: '0' } }],
    ['a list', 200, '[1]', { text: '[1]' }],
  ])('that cannot be read is kept: %s', async (_, status, body, kept) => {
    expect((await queryAnswered(body, status)).received).toEqual(kept)
    expect((await readQuery('T-1'))?.received).toBe(JSON.stringify(kept))
    expect(await lab.transaction('T-1')).toMatchObject({ sync: { attempts: 1 } })
  })

  it('of many entries is kept as far as 64 KiB go, and all of them are applied', async () => {
    const gateway = await startListingGateway(lab)
    const entries = Array.from({ length: 40 }, (_, n) =>
      makeEntry(`p${n}`, { status: n === 0 ? 'SUCCESS' : 'FAILED', note: 'ệ'.repeat(1_000) }),
    )
    gateway.list(...entries)
    await gateway.sync('T-1')
    const { received, answer, bytes } = await readStored()
    expect(bytes).toBeLessThan(LIMIT * 1.01)
    const kept = z.array(z.looseObject({ id: z.string() })).parse(JSON.parse(answer))
    expect(kept.length).toBeLessThan(40)
    // What does not fit whole is shortened to its defined members first.
    expect(kept.at(-1)).toMatchObject({ shortened: true })
    const whole = Buffer.byteLength(JSON.stringify(entries))
    expect(received?.omittedBytes).toBeGreaterThan(whole - LIMIT - entries.length)
    expect(received?.omittedBytes).toBeLessThan(whole)
    expect(await lab.transaction('T-1')).toMatchObject({ state: 'paid', final: true })
  })

  it.each([
    ['a text', 'é'.repeat(100_000), 200_000],
    ['one too long to be read to its end', 'x'.repeat(1_100_000), 1_048_577],
  ])('of %s is kept as far as 64 KiB go, the rest is counted', async (_, body, atLeast) => {
    const { received } = await queryAnswered(body)
    const kept = Buffer.byteLength(received?.text ?? '')
    expect(kept).toBeGreaterThan(LIMIT - 4)
    expect(kept).toBeLessThanOrEqual(LIMIT)
    expect(received?.text?.[0]).toBe(body[0])
    expect(received?.omittedBytes).toBeGreaterThanOrEqual(atLeast - LIMIT)
  })

  it('a card number across the limit is masked', async () => {
    const { received } = await queryAnswered(`${'x'.repeat(LIMIT - 11)} 4111111111111111`)
    expect(received?.text?.slice(-10)).toBe('411111****')
  })

  it('one cut off in the middle is kept up to there', async () => {
    const { createServer } = await import('node:net')
    const port = await listen(
      createServer((socket) => {
        socket.once('data', () => {
          const head =
            'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n'
          socket.write(`${head}{"svc_ResponseCode":0,`, () => socket.end())
        })
      }),
    )
    const gateway = await startListingGateway(lab, {}, `http://127.0.0.1:${port}`)
    await gateway.sync('T-1')
    expect((await readStored()).received).toEqual({ text: '{"svc_ResponseCode":0,' })
  })
})

describe('the answer to a refund', () => {
  async function sendRefund(body: string, httpStatus = 200) {
    const gateway: ListingGateway = await startListingGateway(lab)
    const payment = await lab.open({ paymentMethod: 'QR' })
    gateway.list(makeEntry(payment.id, { amount: 100, paymentMethod: 'QR' }))
    gateway.answer('REFUND', body, httpStatus)
    const asked = await lab.refund(payment.id, { amount: '30', receiver: RECEIVER })
    await gateway.sync(payment.transactionId)
    const { status } = await lab.readRefund(asked.body.id)
    return { status, proof: await lab.proof(asked.body.id) }
  }

  it('is in the proof with every member, tokens and the account number masked', async () => {
    const { status, proof } = await sendRefund(
      JSON.stringify({
        svc_ResponseCode: 0,
        svc_ResponseMsg: 'ok',
        svc_ResponseData: { transId: 'R1', bankRef: 'B7', payToken: 'clear' },
        note: `to ${RECEIVER.accountNumber}`,
        account: Number(RECEIVER.accountNumber),
      }),
    )
    expect(status).toBe('accepted')
    expect(proof.attempts).toMatchObject([
      {
        outcome: 'answered',
        received: {
          members: {
            svc_ResponseCode: '0',
            svc_ResponseMsg: 'ok',
            svc_ResponseData: { transId: 'R1', bankRef: 'B7', payToken: '***' },
            note: 'to •••• 6789',
            account: '•••• 6789',
          },
        },
        snapshotBefore: { payments: [{ refundedAmount: '0' }], received: null },
      },
    ])
  })

  it('is stored without the receiver that it sends back, as it was sent', async () => {
    const svc_Receiver = Buffer.from(JSON.stringify(RECEIVER)).toString('base64')
    const refused = { svc_ResponseCode: 33, svc_ResponseMsg: 'no', svc_ResponseData: {} }
    const { proof } = await sendRefund(JSON.stringify({ ...refused, svc_Receiver }))
    expect(proof.attempts).toMatchObject([{ received: { members: { svc_Receiver: '***' } } }])
    expect(await findInTables(lab.database, svc_Receiver)).toEqual([])
  })

  it('that cannot be read is in the proof as well', async () => {
    const { status, proof } = await sendRefund(`<p>${RECEIVER.accountNumber} busy</p>`, 503)
    expect(status).toBe('unknown')
    expect(proof.attempts).toMatchObject([
      { outcome: 'unknown', httpStatus: 503, received: { text: '<p>•••• 6789 busy</p>' } },
    ])
  })
})

describe('the notification of a failed refund', () => {
  /** To the account, which the notification repeats in these words, in a transaction. */
  async function fail(accountNumber: string, message: string) {
    const payment = await lab.open({ paymentMethod: 'QR' })
    const receiver = { ...RECEIVER, accountNumber }
    const { body } = await lab.refund(payment.id, { amount: '30', receiver })
    await lab.pass(payment)
    await lab.notify(payment, body.id, '30', { code: 33, message })
    await lab.passTwice(payment, body.id)
    const { failure } = await lab.readRefund(body.id)
    return { transactionId: payment.transactionId, failure }
  }

  it.each([
    ['0123 456 789', 'account 0123456789 is closed', 'account ••••  789 is closed'],
    ['0123456789', 'account 0123 456 789 is closed', 'account •••• 6789 is closed'],
    ['012', 'account 012 is closed', 'account 012 is closed'],
  ])('masks the account number %s in %j', async (accountNumber, message, masked) => {
    const { failure } = await fail(accountNumber, message)
    expect(failure).toMatchObject({ code: '33', message: expect.stringContaining(masked) })
  })

  it('leaves the account number in no table and no timeline', async () => {
    const { transactionId } = await fail('70055667788', 'account 70055667788 is closed')
    expect(await findInTables(lab.database, '70055667788')).toEqual([])
    expect(await lab.timeline({ transactionId })).toContainEqual(
      expect.objectContaining({ type: 'ipn', message: 'account •••• 7788 is closed' }),
    )
  })
})
