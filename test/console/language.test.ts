import { beforeAll, describe, expect, it } from 'vitest'
import { seedPayment, seedTransaction } from '../support/api.ts'
import { addVisitor, visitAs } from '../support/console.ts'
import { readText } from '../support/read-html.ts'
import { MERCHANT } from '../support/service.ts'
import { useRig } from '../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
beforeAll(async () => {
  const firstSeenAt = '2026-11-20T18:30:00Z'
  await seedTransaction(rig.database, { transactionId: 'T-VN', orderId: 'DH-VN', state: 'paid' })
  await rig.database.sql`
    update transactions set paid_amount = 1110000, expected_amount = null, first_seen_at = ${firstSeenAt}
    where transaction_id = 'T-VN'`
  await seedPayment(rig.database, {
    ...{
      paymentId: 'P-VN',
      transactionId: 'T-VN',
      amount: '1110000',
      paymentMethod: 'CC',
      firstSeenAt,
    },
  })
})

const STORY = `/console/transactions/${MERCHANT.merchantCode}/T-VN`

describe('the language of a page', () => {
  it('is that of the person, with its numbers, times and zone', async () => {
    const mai = await addVisitor(rig.database, { language: 'vi', timeZone: 'Asia/Ho_Chi_Minh' })
    const html = await (
      await visitAs(rig, mai, STORY, { headers: { 'accept-language': 'en' } })
    ).text()
    expect(html).toContain('<html lang="vi">')
    const text = readText(html)
    expect(text).toContain('Đã thanh toán 1.110.000 VND')
    expect(text).toMatch(/01:30:00 21\/11\/2026 GMT\+7/)
    const list = readText(await (await visitAs(rig, mai, '/console/payments')).text())
    expect(list).toContain('Thời điểm (GMT+7)')
  })

  it.each([
    ['2026-01-01T10:00:00Z', '1'],
    ['2026-07-01T10:00:00Z', '2'],
  ])('has times that are said in the offset that they are written in: %s', async (at, offset) => {
    const berlin = await addVisitor(rig.database, { timeZone: 'Europe/Berlin' })
    await rig.database.sql`update payments set first_seen_at = ${at}`
    const list = '/console/payments'
    for (const path of [list, `${list}?format=csv`]) {
      const text = readText(await (await visitAs(rig, berlin, path)).text())
      const stated = /\(GMT\+(\d)\)/.exec(text)?.[1] ?? offset
      const clock = /2026-\d\d-\d\d (\d\d):00:00/.exec(text)?.[1]
      expect([stated, clock]).toEqual([offset, String(10 + Number(offset))])
    }
  })

  it.each([
    ['vi', 'vi'],
    ['vi-VN,vi;q=0.9,en;q=0.8', 'vi'],
    ['en-GB,en;q=0.9,vi;q=0.8', 'en'],
    ['fr-FR,fr;q=0.9', 'en'],
    ['', 'en'],
  ])('without a person is, for %s, %s', async (accepted, language) => {
    const headers = { 'accept-language': accepted }
    const response = await fetch(`${rig.service.url}/console/sign-in`, { headers })
    expect(await response.text()).toContain(`<html lang="${language}">`)
  })

  it('is that of a refusal, too, around what is said in English', async () => {
    const mai = await addVisitor(rig.database, { language: 'vi' })
    const refused = await visitAs(rig, mai, '/console/transactions?cursor=zz')
    expect(refused.status).toBe(422)
    expect(readText(await refused.text())).toContain(
      'Yêu cầu chưa được thực hiện. Chi tiết: cursor: is not a cursor of this list',
    )
  })

  it('does not leak into a page that is answered at the same time', async () => {
    const mai = await addVisitor(rig.database, { language: 'vi' })
    const ann = await addVisitor(rig.database, { language: 'en' })
    const pages = await Promise.all(
      Array.from({ length: 10 }, async (_, n) => {
        const who = n % 2 === 0 ? mai : ann
        return await (await visitAs(rig, who, STORY)).text()
      }),
    )
    for (const [n, html] of pages.entries()) {
      expect(html).toContain(n % 2 === 0 ? 'Hỏi cổng thanh toán ngay' : 'Ask the gateway now')
      expect(html).not.toContain(n % 2 === 0 ? 'Ask the gateway now' : 'Hỏi cổng thanh toán ngay')
    }
  })
})
