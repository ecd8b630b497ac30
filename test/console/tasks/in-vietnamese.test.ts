import { expect, it } from 'vitest'
import { openIn } from '../../support/approvals.ts'
import { moveTo } from '../../support/ask.ts'
import { addVisitor } from '../../support/console.ts'
import { openAs, sendForm } from '../../support/console-pages.ts'
import { CONFIRM_MS } from '../../support/refund-lab.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab()

it('evidence, causes and the sides of a discrepancy are read in the language of the person', async () => {
  const vi = await addVisitor(lab.database, { roles: ['operator'], language: 'vi' })
  const en = await addVisitor(lab.database, { roles: ['operator'], language: 'en' })
  const payment = await openIn(lab, 'VND')
  await lab.fault('code', { code: 5 })
  const id = await lab.send(payment, '30')
  await lab.passShowing(payment, '10')
  await lab.age(id, CONFIRM_MS)
  await lab.pass(payment)
  const [found] = await lab.database.sql<{ id: string }[]>`
    select id from discrepancies where payment_id = ${payment.id} and kind = 'unexplained_growth'`
  const { merchantCode } = MERCHANT
  const refund = `/console/refunds/${merchantCode}/${id}`
  const discrepancy = `/console/discrepancies/${merchantCode}/${found?.id}`
  const list = '/console/discrepancies'
  const story = `/console/transactions/${merchantCode}/${payment.transactionId}`
  const said: [path: string, english: string, vietnamese: string][] = [
    [
      refund,
      `refused with code 5, and the refunded amount did not increase within ${CONFIRM_MS} ms; the code is not known`,
      `bị từ chối với mã 5, và số tiền đã hoàn không tăng trong ${CONFIRM_MS} ms; chưa biết mã này có là kết quả cuối cùng`,
    ],
    [refund, 'attempt recorded before sending', 'ghi nhận lần gửi trước khi gửi'],
    [refund, 'code 5: ', 'mã 5: '],
    [refund, '10 more than before it was sent', 'nhiều hơn 10 so với trước khi gửi lệnh'],
    [discrepancy, 'no refund explains 10 of it', 'trong đó 10 không thuộc lệnh hoàn tiền nào'],
    [list, 'refundedAmount 10', 'số tiền đã hoàn 10'],
    [story, 'no refund explains 10 of it', 'trong đó 10 không thuộc lệnh hoàn tiền nào'],
    [`${story}?view=history`, 'attempt recorded before sending', 'ghi nhận lần gửi trước khi gửi'],
  ]
  for (const [path, english, vietnamese] of said) {
    const [inEnglish, inVietnamese] = [await openAs(lab, en, path), await openAs(lab, vi, path)]
    expect(inEnglish.text).toContain(english)
    expect(inEnglish.text).not.toContain(vietnamese)
    expect(inVietnamese.text).toContain(vietnamese)
    expect(inVietnamese.text).not.toContain(english)
  }
})

it('what a decision contradicts is, too', async () => {
  const vi = await addVisitor(lab.database, { roles: ['operator'], language: 'vi' })
  const payment = await openIn(lab, 'VND')
  const id = await lab.send(payment, '30')
  await moveTo(lab.database, id, 'needs_review')
  await lab.notify(payment, id, '30')
  const path = `/console/refunds/${MERCHANT.merchantCode}/${id}`
  const decision = { outcome: 'failed', reason: 'theirs' }
  const page = await openAs(lab, vi, path)
  const refused = await sendForm(lab, vi, page, `${path}/resolution`, decision)
  expect(refused.text).toContain(
    'Quyết định này trái với bằng chứng: cổng thông báo lệnh thành công',
  )
})
