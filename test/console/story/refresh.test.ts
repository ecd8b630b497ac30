import { beforeAll, describe, expect, it } from 'vitest'
import { createNewsWaiter } from '../../../src/console/transaction.tsx'
import { findTransaction } from '../../../src/transactions/find-transaction.ts'
import { addVisitor, type Visitor, visitAs } from '../../support/console.ts'
import { cutPart, readText } from '../../support/read-html.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const lab = useRefundLab()
let viewer: Visitor
beforeAll(async () => {
  viewer = await addVisitor(lab.database)
})

const pathOf = (transactionId: string) =>
  `/console/transactions/${MERCHANT.merchantCode}/${transactionId}`

async function readTag(path: string, who = viewer): Promise<string> {
  const html = await (await visitAs(lab, who, path)).text()
  return /data-refresh="([^"]+)"/.exec(html)?.[1]?.replaceAll('&quot;', '"') ?? ''
}

const refresh = (path: string, etag: string, who = viewer, init: RequestInit = {}) =>
  visitAs(lab, who, path, { ...init, headers: { 'x-refresh': '1', 'if-none-match': etag } })

const waiting = () => lab.service.ctx.transactionWaiters.count()

/** The request ends long before its time is over. */
const untilNews = (before: number) =>
  waitUntil(() => waiting() <= before, { what: 'the request ends', timeoutMs: 15_000 })

describe('a page that asks for itself again', () => {
  it('gets the parts at once if they differ from what it shows', async () => {
    const payment = await lab.open()
    const response = await refresh(pathOf(payment.transactionId), '"other"')
    expect(response.status).toBe(200)
    expect(response.headers.get('etag')).toBe(await readTag(pathOf(payment.transactionId)))
    const html = await response.text()
    expect(html).not.toContain('<html')
    expect(html.match(/data-live/g)).toHaveLength(5)
  })

  it('waits while nothing changes, and learns of a change at once', async () => {
    const payment = await lab.open()
    const path = pathOf(payment.transactionId)
    const etag = await readTag(path)
    const before = waiting()
    const asked = refresh(path, etag)
    await waitUntil(() => waiting() > before, { what: 'the request waits' })
    await lab.ask(payment, '10')
    await untilNews(before)
    const response = await asked
    expect(response.status).toBe(304)
    const next = await refresh(path, etag)
    expect(next.status).toBe(200)
    const part = `<main>${await next.text()}</main>`
    expect(readText(cutPart(part, 'refunds'))).toContain('Refund of 10 Waiting to be sent')
  })

  it('learns that the gateway answered, also when it reports nothing new', async () => {
    const payment = await lab.open()
    const path = pathOf(payment.transactionId)
    const etag = await readTag(path)
    const before = waiting()
    const asked = refresh(path, etag)
    await waitUntil(() => waiting() > before, { what: 'the request waits' })
    await lab.pass(payment)
    await untilNews(before)
    expect((await asked).status).toBe(304)
    expect((await refresh(path, etag)).status).toBe(200)
  })

  it('has the same tag in two renderings, although each form has a token of its own', async () => {
    const payment = await lab.open()
    const admin = await addVisitor(lab.database, { roles: ['admin'] })
    const path = pathOf(payment.transactionId)
    expect(await readTag(path, admin)).toBe(await readTag(path, admin))
    expect(await readTag(path, admin)).not.toBe(await readTag(path))
  })

  it('stops waiting when the page is closed', async () => {
    const payment = await lab.open()
    const path = pathOf(payment.transactionId)
    const etag = await readTag(path)
    const before = waiting()
    const closed = new AbortController()
    const asked = refresh(path, etag, viewer, { signal: closed.signal })
    await waitUntil(() => waiting() > before, { what: 'the request waits' })
    closed.abort()
    await expect(asked).rejects.toThrow()
    await waitUntil(() => waiting() === before, { what: 'nothing waits any more' })
  })

  it('is led to the sign-in once the session has ended, and reads nothing more', async () => {
    const payment = await lab.open()
    const path = pathOf(payment.transactionId)
    const leaver = await addVisitor(lab.database)
    const etag = await readTag(path, leaver)
    const before = waiting()
    const asked = refresh(path, etag, leaver)
    await waitUntil(() => waiting() > before, { what: 'the request waits' })
    await lab.database
      .sql`update sessions set ended_at = now() where person_id = ${leaver.personId}`
    await lab.ask(payment, '10')
    const response = await asked
    expect(response.status).toBe(304)
    expect(await response.text()).toBe('')
    const next = await refresh(path, etag, leaver)
    expect(next.headers.get('location')).toBe('/console/sign-in')
  })

  it('does not extend the session', async () => {
    const payment = await lab.open()
    const path = pathOf(payment.transactionId)
    const visitor = await addVisitor(lab.database)
    const readUse = async () => {
      const [row] = await lab.database.sql<{ usedAt: string }[]>`
        select last_used_at::text as "usedAt" from sessions where person_id = ${visitor.personId}`
      return row?.usedAt
    }
    await lab.database.sql`
      update sessions set last_used_at = now() - interval '10 min' where person_id = ${visitor.personId}`
    const before = await readUse()
    expect((await refresh(path, '"other"', visitor)).status).toBe(200)
    expect(await readUse()).toBe(before)
    await visitAs(lab, visitor, path)
    expect(await readUse()).not.toBe(before)
  })
})

describe('waiting is bounded', () => {
  it('in time', async () => {
    const { ctx } = lab.service
    const { transactionId } = await lab.open()
    const found = await findTransaction(ctx, [MERCHANT.merchantCode], transactionId)
    const waitForNews = createNewsWaiter(ctx, { waitMs: 1 })
    expect(await waitForNews(found, new AbortController().signal)).toBe('waited')
  })

  it('in number: one too many asks again after a pause', async () => {
    const { ctx } = lab.service
    const { transactionId } = await lab.open()
    const found = await findTransaction(ctx, [MERCHANT.merchantCode], transactionId)
    const waitForNews = createNewsWaiter(ctx, { maxWaiting: 1 })
    const closed = new AbortController()
    const first = waitForNews(found, closed.signal)
    expect(await waitForNews(found, closed.signal)).toBe('full')
    closed.abort()
    expect(await first).toBe('waited')
    const ended = new AbortController()
    ended.abort()
    expect(await waitForNews(found, ended.signal)).toBe('waited')
  })
})
