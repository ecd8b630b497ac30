import { describe, expect, it } from 'vitest'
import { seedTransaction } from '../../support/api.ts'
import { dropProof, submitAs, submitBack, type Visitor, visitAs } from '../../support/console.ts'
import { cutPart, readText } from '../../support/read-html.ts'
import { MERCHANT } from '../../support/service.ts'
import { usePeople, useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab()
const visitors = usePeople(lab)

const code = MERCHANT.merchantCode
const storyOf = (transactionId: string) => `/console/transactions/${code}/${transactionId}`
const read = async (transactionId: string, who: Visitor) =>
  await (await visitAs(lab, who, storyOf(transactionId))).text()

const auditOf = (objectId: string) => lab.database.sql<{ actor: string; outcome: string }[]>`
  select actor, outcome from audit_entries where object_id = ${objectId} order by id`

describe('asking the gateway now', () => {
  it('makes the transaction due, says so, and names who asked', async () => {
    const { transactionId } = await lab.open()
    const { viewer } = visitors
    const response = await submitAs(lab, viewer, `${storyOf(transactionId)}/sync`)
    expect(response.status).toBe(303)
    const to = response.headers.get('location') ?? ''
    expect(dropProof(to)).toBe(`${storyOf(transactionId)}?notice=asked`)
    const text = readText(await (await visitAs(lab, viewer, to)).text())
    expect(text).toContain('The gateway is being asked. What it answers appears on this page.')
    expect(text).toContain('The gateway is being asked now. Show the current state')
    expect(await auditOf(transactionId)).toMatchObject([{ actor: viewer.name, outcome: 'done' }])
    expect(
      readText(cutPart(await read(`${transactionId}?view=history`, viewer), 'history')),
    ).toContain(`${viewer.name} : Asked the gateway`)
  })

  it('is explained when the account is no longer in the settings', async () => {
    const { database, service } = lab
    await database.sql`insert into merchant_accounts (merchant_code) values ('GONE1')`
    await seedTransaction(database, { merchantCode: 'GONE1', transactionId: 'T-GONE' })
    const all = [...service.ctx.access.merchants]
    Object.assign(service.ctx.access, { merchants: [...all, 'GONE1'] })
    const response = await submitBack(
      lab,
      visitors.admin,
      '/console/transactions/GONE1/T-GONE/sync',
    )
    Object.assign(service.ctx.access, { merchants: all })
    expect(response.status).toBe(200)
    expect(readText(await response.text())).toContain('no longer in the settings')
  })
})

describe('a hold', () => {
  it('of a payment is set with a reason, shown with it, and released', async () => {
    const payment = await lab.open()
    const { operator, admin } = visitors
    const path = `/console/payments/${code}/${payment.id}/hold`
    const held = await submitAs(lab, operator, path, {
      held: 'true',
      reason: ' the shop disputes it ',
    })
    expect(held.status).toBe(303)
    expect(dropProof(held.headers.get('location'))).toBe(
      `${storyOf(payment.transactionId)}?notice=held#payment-${encodeURIComponent(payment.id)}`,
    )
    expect((await lab.refund(payment.id, { amount: '1' })).status).toBe(409)
    const html = await read(payment.transactionId, admin)
    const text = readText(cutPart(html, 'payments'))
    expect(text).toContain('Held')
    expect(text).toContain(`by ${operator.name}: the shop disputes it`)
    expect(text).toContain('Release the hold')
    expect(html).not.toContain(`/${payment.id}/refund"`)
    const released = await submitAs(lab, operator, path, { held: 'false', reason: 'settled' })
    expect(released.headers.get('location')).toContain('notice=released')
    expect((await lab.refund(payment.id, { amount: '1' })).status).toBe(202)
  })

  it('without a reason comes back unfolded, filled, with the problem beside its field', async () => {
    const payment = await lab.open()
    const path = `/console/payments/${code}/${payment.id}/hold`
    for (const reason of ['', '   ', 'x'.repeat(501), 'two\u0007']) {
      const response = await submitBack(lab, visitors.operator, path, { held: 'true', reason })
      expect(response.status).toBe(200)
      const html = await response.text()
      const id = `hold-payment-${payment.id}`
      expect(html).toContain(`<details id="${id}" open="">`)
      expect(html).toContain(`aria-describedby="reason-${id}-hint reason-${id}-problem"`)
      expect(html).toContain('aria-invalid="true"')
    }
    const [row] = await lab.database.sql`select hold from payments where payment_id = ${payment.id}`
    expect(row?.hold).toBeNull()
  })

  it('is not changed by a form that was shown with another one, whose typed reason stays in no other form', async () => {
    const payment = await lab.open()
    const path = `/console/payments/${code}/${payment.id}/hold`
    const { operator, admin } = visitors
    const hold = async (reason: string) => {
      await submitAs(lab, operator, path, { held: 'true', reason })
      const html = await read(payment.transactionId, admin)
      expect(html).toContain(`<details id="release-payment-${payment.id}"`)
      return /name="shown" value="([^"]+)"/.exec(html)?.[1] ?? ''
    }
    const fields = { held: 'false', reason: 'settled', shown: await hold('checking the receiver') }
    await submitAs(lab, operator, path, { held: 'false', reason: 'checked' })
    const shown = await hold('fraud')
    for (const stale of [fields, { ...fields, held: 'true', shown: '' }]) {
      const to = (await submitAs(lab, admin, path, stale)).headers.get('location') ?? ''
      expect(to).toContain('kept=')
      const page = readText(await (await visitAs(lab, admin, to)).text())
      expect(page).toContain('this has changed since you opened it')
      expect(await read(payment.transactionId, admin)).toContain(`value="${shown}"`)
    }
    const released = await submitAs(lab, admin, path, { ...fields, shown })
    expect(released.headers.get('location')).toContain('notice=released')
  })

  it('that was released meanwhile is explained on the page', async () => {
    const payment = await lab.open()
    const path = `/console/payments/${code}/${payment.id}/hold`
    const response = await submitBack(lab, visitors.operator, path, { held: 'false', reason: 'x' })
    expect(response.status).toBe(200)
    expect(readText(await response.text())).toContain('There is no hold any more')
  })
})
