import { beforeEach, describe, expect, it } from 'vitest'
import { seedPaid } from '../support/ask.ts'
import { makeLink } from '../support/console.ts'
import { openAs, sendForm as sendShown } from '../support/console-pages.ts'
import { emptyTables } from '../support/database.ts'
import { readProblems } from '../support/forms.ts'
import {
  enter,
  openRefundForm,
  PART,
  prepareRefund,
  SAME_ORIGIN,
  sendForm,
  useClerk,
} from '../support/refund-form.ts'
import { MERCHANT } from '../support/service.ts'
import { useRefundRig } from '../support/use-started.ts'

const rig = useRefundRig({ settings: { ROLE: 'web' } })
const agent = useClerk(rig, 'agent')
beforeEach(() => emptyTables(rig.database))

const pathOf = (kind: string, id: string) =>
  `/console/${kind}/${MERCHANT.merchantCode}/${encodeURIComponent(id)}`

const WRONG = { ...PART, amount: '12x' }

describe.each(['P 1', 'P-đ', 'P^1', 'P%1', 'P/1'])('a payment with the id %s', (paymentId) => {
  const path = `${pathOf('payments', paymentId)}/refund`
  beforeEach(() => seedPaid(rig.database, { paymentId }))

  it('gets its wrong form back, filled in and with what is wrong, on the page as it was opened', async () => {
    const form = await openRefundForm(agent, `${path}?opened=1`)
    const response = await sendForm(agent, form, WRONG)
    expect(response.url).toContain('opened=1')
    const html = await response.text()
    expect(Object.keys(readProblems(html))).toEqual(['amount'])
    expect(html).toContain('value="12x"')
  })

  it('says why a confirmed refund was refused', async () => {
    const check = await prepareRefund(agent, path)
    await rig.database.sql`update payments set refunded_amount = 80`
    expect(await (await sendForm(agent, check)).text()).toContain('Nothing was refunded')
  })

  it('gets the form of an ended session back after the sign-in', async () => {
    const person = await enter(rig, 'agent')
    const form = await openRefundForm(person, path)
    await rig.database
      .sql`update sessions set last_used_at = '2020-01-01' where person_id = ${person.personId}`
    const page = (await sendForm(person, form, WRONG)).headers.getSetCookie().join()
    const link = await makeLink(rig.database, person.personId)
    const back = await fetch(`${rig.service.url}/console/sign-in/${link}`, {
      ...{ method: 'POST', redirect: 'manual' },
      headers: { ...SAME_ORIGIN, cookie: page.split(';')[0] ?? '' },
    })
    const token = /session=([^;]+)/.exec(back.headers.getSetCookie().join())?.[1] ?? ''
    const { html } = await openAs(rig, { ...person, token }, back.headers.get('location') ?? '')
    expect(html).toContain('value="12x"')
  })
})

it.each(['T 1', 'T-đ', 'T%1'])(
  'a hold that was not set comes back in the story of %s',
  async (id) => {
    const operator = await enter(rig, 'operator')
    const paid = await seedPaid(rig.database)
    await rig.database.sql`
    insert into transactions (merchant_code, transaction_id, currency, state)
    select merchant_code, ${id}, currency, state from transactions`
    await rig.database.sql`update payments set transaction_id = ${id}`
    const page = await openAs(rig, operator, pathOf('transactions', id))
    const fields = { held: 'true', shown: 'another', reason: 'to be kept' }
    const action = `${pathOf('payments', paid.id)}/hold`
    const back = await sendShown(rig, operator, page, action, fields)
    expect(back.html).toContain('value="to be kept"')
  },
)
