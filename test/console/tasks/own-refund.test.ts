import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { TEXTS } from '../../../src/console/texts/catalogue.ts'
import { addPrincipal } from '../../support/approvals.ts'
import { ask, expectTaken } from '../../support/ask.ts'
import { addVisitor, submitAs, submitBack, type Visitor } from '../../support/console.ts'
import { openAs, readHidden } from '../../support/console-pages.ts'
import { emptyTables } from '../../support/database.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab()
afterEach(async () => {
  await lab.database.sql`update actors set ended_at = null where kind = 'key'`
  await emptyTables(lab.database)
})
const { merchantCode } = MERCHANT

let asker: Visitor
let other: Visitor
beforeEach(async () => {
  asker = await addVisitor(lab.database, { roles: ['operator'] })
  other = await addVisitor(lab.database, { roles: ['operator'] })
})

/** Revokes every key that may decide, but that of the person. */
const leaveAlone = ({ personId }: Visitor) => lab.database.sql`
  update actors set ended_at = now() where ended_at is null and (kind = 'person' or 'ops' = any(scopes)) and id <> ${personId}`

/** A refund of 10 that the asker requested with an API key of theirs. */
async function request(payment: LabPayment): Promise<string> {
  const { key } = await addPrincipal(lab.database, { person: asker.name })
  const asked = { url: lab.service.url, key }
  return (await expectTaken(await ask(asked, payment.id, { amount: '10' }))).id
}

describe('another refund that holds back one’s own', () => {
  async function make() {
    const { payment, refundId } = await lab.openInferred()
    await request(payment)
    return `/console/refunds/${merchantCode}/${refundId}`
  }

  it('offers no decision, says why, and refuses a forged one', async () => {
    const path = await make()
    const page = await openAs(lab, asker, path)
    expect(page.text).toContain(TEXTS['discrepancyPage.ownRefund.another'][0])
    expect(readHidden(page.html, `${path}/resolution`)).toBeUndefined()
    const hidden = readHidden((await openAs(lab, other, path)).html, `${path}/resolution`)
    const decided = { version: hidden?.version ?? '', outcome: 'succeeded', reason: 'x' }
    const forged = await submitBack(lab, asker, `${path}/resolution`, decided)
    expect(forged.status).toBe(200)
    expect(await forged.text()).toContain(TEXTS['decisions.refused.same_person'][0])
  })

  it('does not say what they could decide, where another person has to', async () => {
    const { payment, refundId } = await lab.openMatched()
    await request(payment)
    const page = await openAs(lab, asker, `/console/refunds/${merchantCode}/${refundId}`)
    expect(page.text).toContain(TEXTS['discrepancyPage.ownRefund.another'][0])
    expect(page.text).not.toContain(TEXTS['decisions.notNow.succeeded_already'][0])
  })

  it('is offered to the only one who may decide, with a warning', async () => {
    const path = await make()
    await leaveAlone(asker)
    const page = await openAs(lab, asker, path)
    expect(page.text).toContain(TEXTS['discrepancyPage.ownRefund.self'][0])
    expect(readHidden(page.html, `${path}/resolution`)).toBeDefined()
  })
})

describe('a discrepancy that holds back a refund of one’s own', () => {
  async function make() {
    const payment = await lab.open()
    await request(payment)
    await lab.notify(payment, 'portal-1', '20')
    await lab.show(payment, '50')
    await lab.pass(payment)
    const [row] = await lab.database.sql<{ id: string }[]>`
      select id::text from discrepancies where kind = 'unexplained_growth'`
    return `/console/discrepancies/${merchantCode}/${row?.id}`
  }

  it('offers no decision, says why, and refuses a forged one', async () => {
    const path = await make()
    const page = await openAs(lab, asker, path)
    expect(page.text.split(TEXTS['discrepancyPage.ownRefund.another'][0])).toHaveLength(2)
    expect(readHidden(page.html, `${path}/resolution`)).toBeUndefined()
    expect(readHidden(page.html, `${path}/external`)).toBeUndefined()
    const forged = await submitBack(lab, asker, `${path}/resolution`, { reason: 'x' })
    expect(forged.status).toBe(200)
    expect(await forged.text()).toContain(TEXTS['discrepancyPage.refused.same_person'][0])
    expect(readHidden((await openAs(lab, other, path)).html, `${path}/resolution`)).toBeDefined()
  })

  it('is offered to the only one who may decide, with a warning', async () => {
    const path = await make()
    await leaveAlone(asker)
    const page = await openAs(lab, asker, path)
    expect(page.text).toContain(TEXTS['discrepancyPage.ownRefund.self'][0])
    expect(readHidden(page.html, `${path}/resolution`)).toBeDefined()
  })
})

describe('a hold on a refund of one’s own', () => {
  async function make(setter: Visitor) {
    const payment = await lab.open()
    const refundId = await request(payment)
    const action = `/console/refunds/${merchantCode}/${refundId}/hold`
    await submitAs(lab, setter, action, { held: 'true', reason: 'stop' })
    return { action, page: `/console/refunds/${merchantCode}/${refundId}` }
  }

  it('that somebody else set is not offered to be released, and a forged release is refused', async () => {
    const { action, page: path } = await make(other)
    const page = await openAs(lab, asker, path)
    expect(page.text).toContain(TEXTS['story.actions.releaseByAnother'][0])
    expect(readHidden(page.html, action)).toBeUndefined()
    const forged = await submitBack(lab, asker, action, { held: 'false', reason: 'x' })
    expect(forged.status).toBe(200)
    expect(await forged.text()).toContain(TEXTS['discrepancyPage.refused.same_person'][0])
    expect(readHidden((await openAs(lab, other, path)).html, action)).toBeDefined()
  })

  it('that they set themselves is, and so is another to the only one who may decide', async () => {
    const own = await make(asker)
    expect((await openAs(lab, asker, own.page)).text).toContain(
      TEXTS['story.actions.releaseHint'][0],
    )
    const theirs = await make(other)
    await leaveAlone(asker)
    const page = await openAs(lab, asker, theirs.page)
    expect(page.text).toContain(TEXTS['story.actions.releaseBySelf'][0])
    expect(readHidden(page.html, theirs.action)).toBeDefined()
  })
})
