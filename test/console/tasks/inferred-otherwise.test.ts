import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openIn } from '../../support/approvals.ts'
import { addVisitors } from '../../support/console.ts'
import { openAs, sendForm } from '../../support/console-pages.ts'
import { emptyTables } from '../../support/database.ts'
import { readForms } from '../../support/forms.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab()
afterEach(() => emptyTables(lab.database))

let people: Awaited<ReturnType<typeof addVisitors>>
beforeAll(async () => {
  people = await addVisitors(lab.database)
})

const pathOf = (id: string) => `/console/refunds/${MERCHANT.merchantCode}/${id}`

describe('a refund whose success was only concluded, and that a person says failed', () => {
  const open = async () => {
    const payment = await openIn(lab, 'VND')
    const id = await lab.send(payment, '30')
    await lab.show(payment, '30')
    await lab.pass(payment)
    return { id, page: await openAs(lab, people.operator, pathOf(id)) }
  }

  it('asks for the box beside that decision, not in the form that says that it happened', async () => {
    const { id, page } = await open()
    const decision = { outcome: 'failed', reason: 'their support says no' }
    const refused = await sendForm(lab, people.operator, page, `${pathOf(id)}/resolution`, decision)
    expect(refused.text).toContain('This decision contradicts the evidence:')
    const forms = readForms(refused.html).filter(({ action }) => action.endsWith('/resolution'))
    const asking = forms.filter(({ shown }) => shown.includes('againstEvidence'))
    expect(asking.map(({ buttons }) => buttons)).toEqual([['Record the decision']])
  })

  it('is offered both at first, without a box', async () => {
    const forms = readForms((await open()).page.html)
    const deciding = forms.filter(({ action }) => action.endsWith('/resolution'))
    expect(deciding.map(({ buttons }) => buttons)).toEqual([
      ['It happened'],
      ['Record the decision'],
    ])
    expect(deciding.flatMap(({ shown }) => shown)).not.toContain('againstEvidence')
  })
})
