import { createHash } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { refundPagePath, storyPath } from '../../../src/console/paths.ts'
import { findText, listKeys } from '../../../src/console/texts/text.ts'
import { seedPaid } from '../../support/ask.ts'
import { addVisitor, dropProof, followBack, submitAs } from '../../support/console.ts'
import { readText } from '../../support/forms.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import {
  act,
  type Clerk,
  openRefundForm,
  PART,
  prepareRefund,
  readConfirmed,
  refundPathOf,
  sendForm,
  useClerk,
} from '../../support/refund-form.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundRig } from '../../support/use-started.ts'

const DEFAULT_REASONS = listKeys('reasons.default').map(
  (name) => findText('en', `reasons.default.${name}`) ?? '',
)

const rig = useRefundRig({ settings: { ROLE: 'web', REFUND_APPROVAL_ABOVE: 'CLF:20' } })
const admin = useClerk(rig, 'admin', { name: 'Hoa' })
const agent = useClerk(rig, 'agent')
afterEach(async () => {
  await rig.database.sql`update merchant_accounts set refund_reasons = '{}'`
})

const PATH = '/console/reasons'
const { merchantCode: merchant } = MERCHANT

const save = (person: Clerk, reasons: string) => submitAs(rig, person, PATH, { merchant, reasons })

async function expectSaved(response: Response) {
  const location = `${PATH}?merchant=${merchant}&notice=saved`
  expect([response.status, dropProof(response.headers.get('location'))]).toEqual([303, location])
}

const listLabels = async () => {
  const [row] = await rig.database.sql<{ reasons: string[] }[]>`
    select refund_reasons as reasons from merchant_accounts where merchant_code = ${merchant}`
  return row?.reasons ?? []
}

describe('the reasons of an account', () => {
  it('are the usual ones until an admin writes some, which the form of a refund then offers', async () => {
    const text = readText(await admin.read(PATH))
    for (const label of DEFAULT_REASONS) expect(text).toContain(label)
    const path = refundPathOf(await seedPaid(rig.database))
    const usual = ['', ...DEFAULT_REASONS, 'other']
    expect((await openRefundForm(agent, path)).options.reason).toEqual(usual)
    await expectSaved(await save(admin, 'Fraud reported\r\n\r\n  Goods returned \r\n'))
    const own = ['', 'Fraud reported', 'Goods returned', 'other']
    expect((await openRefundForm(agent, path)).options.reason).toEqual(own)
    await expectSaved(await save(admin, ''))
    expect((await openRefundForm(agent, path)).options.reason).toEqual(usual)
  })

  it('of a Vietnamese reader are in their language, and stored in English', async () => {
    const reader = await addVisitor(rig.database, { roles: ['agent'], language: 'vi' })
    const path = refundPathOf(await seedPaid(rig.database))
    const html = await act(rig, reader).read(path)
    expect(html).toMatch(/<option value="Goods returned">\s*Khách trả hàng/)
  })

  it('are read in the language of the person, with their remark, wherever a refund shows', async () => {
    const reader = act(rig, await addVisitor(rig.database, { roles: ['approver'], language: 'vi' }))
    const payment = await seedPaid(rig.database)
    const fields = { ...PART, reason: 'Goodwill', reasonText: 'late' }
    const check = await prepareRefund(agent, refundPathOf(payment), fields)
    const { refundId: id } = readConfirmed(await sendForm(agent, check))
    const pages = [
      '/console/refunds',
      '/console/refunds?format=csv',
      '/console/tasks?section=approvals',
      storyPath({ merchantCode: merchant, transactionId: payment.transactionId }),
      refundPagePath(merchant, id),
    ]
    for (const path of pages) {
      expect(await reader.read(path)).toContain('Hỗ trợ khách hàng: late')
      expect(await agent.read(path)).toContain('Goodwill: late')
    }
  })

  it('are changed under the name of the admin', async () => {
    await expectSaved(await save(admin, 'One'))
    const [entry] = await rig.database.sql`
      select actor, operation, merchant_code as merchant, object_id as object from audit_entries
      order by id desc limit 1`
    const operation = 'POST /console/reasons'
    expect(entry).toEqual({ actor: 'Hoa', operation, merchant, object: merchant })
  })

  it('of a long list in Vietnamese come back whole with what is wrong', async () => {
    // Hardly compressible, as people write.
    const line = (n: number) =>
      `${n} Khách trả hàng ${createHash('sha256').update(`${n}`).digest('base64')} quá hạn`
    const lines = Array.from({ length: 45 }, (_, n) => line(n))
    const back = await followBack(
      rig,
      admin,
      await save(admin, [...lines, 'x'.repeat(81)].join('\n')),
    )
    const html = await back.text()
    for (const one of lines) expect(html).toContain(one)
  })

  it.each([
    ['x'.repeat(81), 'at most 80 characters'],
    ['a\tb', 'at most 80 characters'],
    ['One\none', 'stands in the list twice'],
    [Array.from({ length: 51 }, (_, n) => `Reason ${n}`).join('\n'), 'at most 50 reasons'],
  ])('are not saved as %j, which comes back with the problem', async (reasons, words) => {
    await expectSaved(await save(admin, 'Before'))
    const back = await followBack(rig, admin, await save(admin, reasons))
    const html = await back.text()
    expect(readText(html)).toContain(words)
    expect(html).toMatch(/<textarea[^>]* aria-invalid="true"[^>]* autofocus/)
    expect(await listLabels()).toEqual(['Before'])
  })

  it('of two lists that are saved at once are those of the second', async () => {
    await whileUncommitted(
      rig.database,
      (held) =>
        held`select from merchant_accounts where merchant_code = ${merchant} for no key update`,
      async (commit) => {
        const sent = ['A\nB', 'B\nC'].map((reasons) => save(admin, reasons))
        await waitUntilBlocked(rig.database, 2)
        await commit()
        for (const response of await Promise.all(sent)) await expectSaved(response)
      },
    )
    expect(['A B', 'B C']).toContain((await listLabels()).join(' '))
  })
})
