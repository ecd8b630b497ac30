import { beforeAll, describe, expect, it, vi } from 'vitest'
import { addVisitor, type Visitor, visitAs } from '../../support/console.ts'
import { cutPart, readText } from '../../support/read-html.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'

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

const refresh = (path: string, etag: string, who = viewer) =>
  visitAs(lab, who, path, { headers: { 'x-refresh': '1', 'if-none-match': etag } })

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

  it('gets nothing while nothing changes, and then what changed', async () => {
    const payment = await lab.open()
    const path = pathOf(payment.transactionId)
    const etag = await readTag(path)
    const same = await refresh(path, etag)
    expect([same.status, await same.text()]).toEqual([304, ''])
    await lab.ask(payment, '10')
    const next = await refresh(path, etag)
    expect(next.status).toBe(200)
    const part = `<main>${await next.text()}</main>`
    expect(readText(cutPart(part, 'refunds'))).toContain('Refund of 10 Waiting to be sent')
  })

  it('learns that the gateway answered, also when it reports nothing new', async () => {
    const payment = await lab.open()
    const path = pathOf(payment.transactionId)
    const etag = await readTag(path)
    await lab.pass(payment)
    expect((await refresh(path, etag)).status).toBe(200)
  })

  it('learns within a minute of what is recorded elsewhere', async () => {
    const payment = await lab.open()
    const path = pathOf(payment.transactionId)
    const etag = await readTag(path)
    const { ctx } = lab.service
    const later = vi.spyOn(ctx, 'now').mockImplementation(() => new Date(Date.now() + 60_000))
    expect((await refresh(path, etag)).status).toBe(200)
    later.mockRestore()
  })

  it('is led to the sign-in once the session has ended, and reads nothing more', async () => {
    const payment = await lab.open()
    const path = pathOf(payment.transactionId)
    const leaver = await addVisitor(lab.database)
    const etag = await readTag(path, leaver)
    await lab.database
      .sql`update sessions set ended_at = now() where person_id = ${leaver.personId}`
    await lab.ask(payment, '10')
    const next = await refresh(path, etag, leaver)
    expect(next.status).toBe(303)
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
