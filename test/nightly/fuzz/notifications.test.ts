import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createApp } from '../../../src/app.ts'
import { ask, expectTaken, seedPaid } from '../../support/ask.ts'
import { signIpn } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { RIGHT, startScript, whole } from './answers.ts'
import { isSigned, notification } from './notifications.ts'
import { makeBytes, makeRequest } from './requests.ts'
import { fuzz } from './run.ts'
import { sendBytes } from './send.ts'
import { expectOwn, expectWell, startStage } from './stage.ts'

const database = useTestDatabase()

const Acknowledgement = z.strictObject({ respcode: z.int(), respmsg: z.string() })
type Taken = { place: number; verdict: string; body: string; kind: string; due: boolean }

describe('whatever is sent', { timeout: 1_800_000 }, () => {
  it('a notification is stored and due, or refused: never both, never neither', async () => {
    const { service, errors, send } = await startStage(database)
    let stored = 0
    await fuzz({ share: 0.3 }, notification, async (sent) => {
      errors.splice(0)
      const { status, text } = await send(sent)
      const taken = await database.sql<Taken[]>`
        with due as (delete from transactions returning transaction_id, due_at),
          taken as (delete from ipn_events returning *)
        select reading as place, verdict, body, kind,
          due_at is not null as due
        from taken full join due using (transaction_id)`
      const answer = sent.method === 'HEAD' ? undefined : Acknowledgement.parse(JSON.parse(text))
      const isTaken = answer?.respcode === 0
      expect(status === 200).toBe(isTaken)
      expect(status).toBeLessThan(500)
      expect(taken).toHaveLength(isTaken ? 1 : 0)
      for (const { verdict, body, kind, due, place } of taken) {
        expect({ verdict, due }).toEqual({ verdict: 'verified', due: kind === 'payment' })
        // Not where a card number was masked in one of the numbers, or more than 8 KiB was shortened.
        expect(isSigned(body) || /\*{3}|shortened.from/.test(body)).toBe(true)
        // The first one of its text, as nothing else is stored: as documented, or beside the place that is kept for that.
        expect([1, 2]).toContain(place)
        stored += 1
      }
      expect(errors).toEqual([])
    })
    expect(stored).toBeGreaterThan(0)
    await expectWell(service)
  })

  it('a route answers, or refuses with a problem that has a code', async () => {
    const gateway = await startScript()
    gateway.script.answer = (request) => {
      const [detail = '', list = ''] = [...RIGHT.detail, ...RIGHT.list]
      return whole(Buffer.from(/virtual-cards\//.test(request) ? detail : list)).bytes
    }
    const { service, errors, send } = await startStage(database, gateway.url)
    const { url, ctx } = service
    const paid = await seedPaid(database, { amount: '100000000' })
    const { id } = await expectTaken(await ask({ url }, paid.id, { amount: '1' }))
    await seedPaid(database, { paymentId: 'P-QR', paymentMethod: 'QR' })
    const known = {
      transactionId: paid.transactionId,
      paymentId: paid.id,
      refundId: id,
      virtualCardRequestId: 'VC-1',
    }
    const routes = createApp(ctx)
      .routes.filter(({ method, path }) => /^\/v\d/.test(path) && method !== 'ALL')
      .map(({ method, path }) => `${method} ${path}`)
    const seen = new Map<string, number>()
    await fuzz({ share: 0.37 }, makeRequest([...new Set(routes)], known), async (sent) => {
      errors.splice(0)
      const got = await send(sent)
      expectOwn(got, sent.method)
      expect(errors).toEqual([])
      seen.set(`${got.status}`, (seen.get(`${got.status}`) ?? 0) + 1)
    })
    for (const status of ['200', '400', '401', '404', '405', '415', '422']) {
      if (!process.env.FUZZ_PATH) expect([...seen.keys()]).toContain(status)
    }
    await expectWell(service)
  })

  it('bytes that may be no request at all lead to no answer of 500 and leave it well', async () => {
    const { service, errors } = await startStage(database)
    await seedPaid(database, { paymentId: 'P-RAW' })
    const notified = JSON.stringify(signIpn({ svc_TransactionID: 'T-1' }))
    const bytes = makeBytes(notified)
    const batch = 20
    const many = fc.array(bytes, { minLength: batch, maxLength: batch })
    await fuzz({ share: 0.1, batch }, many, async (list) => {
      errors.splice(0)
      const answers = await Promise.all(list.map((one) => sendBytes(service.url, one)))
      for (const answer of answers) {
        expect(answer).toMatch(/^$|^HTTP\/1\.1 /)
        expect(answer).not.toMatch(/^HTTP\/1\.1 5/m)
      }
      expect(errors).toEqual([])
    })
    await expectWell(service)
  })
})
