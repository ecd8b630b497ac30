import { afterEach, describe, expect, it } from 'vitest'
import { findText, listKeys } from '../../../src/console/texts/text.ts'
import { DISCREPANCY_KINDS } from '../../../src/discrepancies/kinds.ts'
import { seedDiscrepancy } from '../../support/api.ts'
import { dropProof, type Visitor } from '../../support/console.ts'
import { openAs, readHidden, sendForm } from '../../support/console-pages.ts'
import { emptyTables } from '../../support/database.ts'
import { MERCHANT } from '../../support/service.ts'
import { usePeople, useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab()
afterEach(() => emptyTables(lab.database))
const { merchantCode } = MERCHANT

const people = usePeople(lab)

const pathOf = (id: number | string) => `/console/discrepancies/${merchantCode}/${id}`
const open = (visitor: Visitor, id: number) => openAs(lab, visitor, pathOf(id))

async function act(id: number, form: string, fields: Record<string, string>) {
  const page = await open(people.operator, id)
  return await sendForm(lab, people.operator, page, `${pathOf(id)}/${form}`, fields)
}

const addDiscrepancy = (kind: string) => seedDiscrepancy(lab.database, kind)

async function find(kind: string): Promise<number> {
  const [row] = await lab.database.sql<{ id: number }[]>`
    select id from discrepancies where kind = ${kind} and resolved_at is null`
  if (!row) throw new Error(`no open ${kind}`)
  return row.id
}

/** A payment of 100 of which the gateway shows more refunded than is known here. */
async function makeGrowth(refunded: string) {
  const payment = await lab.open()
  await lab.show(payment, refunded)
  await lab.pass(payment)
  return { payment, id: await find('unexplained_growth') }
}

async function readExternal() {
  return await lab.database.sql`
    select amount, source, matched, outcome from external_refunds order by first_seen_at`
}

describe('the page of a discrepancy', () => {
  it.each(Object.keys(DISCREPANCY_KINDS))('explains %s, and what to do', async (kind) => {
    const id = await addDiscrepancy(kind)
    const { text, status } = await open(people.operator, id)
    expect(status).toBe(200)
    const name = findText('en', `discrepancies.kinds.${kind}`)
    expect(name).toBeDefined()
    expect(text.startsWith(name ?? '')).toBe(true)
    expect(text).toContain(findText('en', `discrepancyHelp.${kind}.meaning`))
    expect(text).toContain(findText('en', `discrepancyHelp.${kind}.steps`))
  })

  it('has words for every kind that there is, and for no other', () => {
    const kinds = Object.keys(DISCREPANCY_KINDS).sort()
    const explained = listKeys('discrepancyHelp').map((key) => key.split('.')[0])
    expect([...new Set(explained)].sort()).toEqual([...kinds, 'unknown'].sort())
    const named = listKeys('discrepancies.kinds')
    expect(named.sort()).toEqual(kinds)
  })

  it('shows one of another release all the same', async () => {
    const { text, status } = await open(people.operator, await addDiscrepancy('of_tomorrow'))
    expect(status).toBe(200)
    expect(text).toContain('Two sources disagree about this transaction.')
  })
})

describe('a discrepancy', () => {
  it('is assigned, noted and resolved with a reason, under the name of the person', async () => {
    const id = await addDiscrepancy('amount_mismatch')
    const { operator } = people
    expect((await act(id, 'assignee', { name: operator.name })).status).toBe(303)
    expect((await act(id, 'note', { text: 'asked the customer' })).status).toBe(303)
    const resolved = await act(id, 'resolution', { reason: 'accepted' })
    expect(dropProof(resolved.location)).toBe(`${pathOf(id)}?notice=discrepancyResolved`)
    const { text, html } = await open(people.admin, id)
    expect(text).toContain(`Taken care of by ${operator.name}`)
    expect(text).toContain(`asked the customer by ${operator.name}`)
    expect(text).toContain(`Resolved by ${operator.name}: accepted`)
    expect(readHidden(html, `${pathOf(id)}/resolution`)).toBeUndefined()
    expect(readHidden(html, `${pathOf(id)}/assignee`)).toBeUndefined()
    expect(readHidden(html, `${pathOf(id)}/note`)).toBeDefined()
  })

  it('resolved by another person meanwhile stays so, and the page names them', async () => {
    const id = await addDiscrepancy('amount_mismatch')
    const page = await open(people.operator, id)
    const form = `${pathOf(id)}/resolution`
    await sendForm(lab, people.admin, await open(people.admin, id), form, { reason: 'refunded' })
    const late = await sendForm(lab, people.operator, page, form, { reason: 'accepted' })
    expect(late.status).toBe(200)
    expect(late.text).toContain('this discrepancy is resolved already')
    expect(late.text).toContain(`by ${people.admin.name}: refunded`)
    const [row] = await lab.database.sql`select resolution from discrepancies where id = ${id}`
    expect(row).toEqual({ resolution: 'refunded' })
  })

  it.each([
    ['resolution', { reason: ' ' }, 'Give a reason.'],
    ['resolution', { reason: 'x'.repeat(501) }, 'At most 500 characters'],
    ['note', { text: '' }, 'Write a note.'],
    ['assignee', { name: 'Mallory' }, 'Choose a person of the list.'],
  ] as const)('keeps as it is with wrong input: %s %j', async (form, fields, problem) => {
    const id = await addDiscrepancy('amount_mismatch')
    const refused = await act(id, form, fields)
    expect(refused.status).toBe(200)
    expect(refused.text).toContain(problem)
    const [row] = await lab.database.sql`
      select resolved_at, assignee, notes from discrepancies where id = ${id}`
    expect(row).toEqual({ resolved_at: null, assignee: null, notes: [] })
  })
})

describe('growth that nothing explains', () => {
  it('is entered with the amount that the page names', async () => {
    const { id } = await makeGrowth('30')
    expect((await open(people.operator, id)).text).toContain('Resolving enters 30 as a refund')
    expect((await act(id, 'resolution', { reason: 'seen in the portal' })).status).toBe(303)
    expect(await readExternal()).toMatchObject([{ amount: '30', source: 'person', matched: true }])
  })

  it('is not entered when there is more of it than was shown', async () => {
    const { payment, id } = await makeGrowth('30')
    const page = await open(people.operator, id)
    // An answer whose commit has not judged the growth yet.
    await lab.database.sql`
      update payments set refunded_amount = 70 where payment_id = ${payment.id}`
    const form = `${pathOf(id)}/resolution`
    const refused = await sendForm(lab, people.operator, page, form, { reason: 'x' })
    expect(refused.status).toBe(200)
    expect(refused.text).toContain('this has changed since you opened it')
    expect(await readExternal()).toEqual([])
    expect(refused.text).toContain('Resolving enters 70 as a refund')
    const again = await sendForm(lab, people.operator, refused, form, { reason: 'x' })
    expect(again.status).toBe(303)
    expect(await readExternal()).toMatchObject([{ amount: '70' }])
  })
})

describe('a refund made elsewhere', () => {
  /** A refund of 20 at the portal that was notified, and that the refunded amount does not show in time. */
  async function makePortalRefund() {
    const payment = await lab.open()
    await lab.notify(payment, crypto.randomUUID(), '20')
    await lab.database.sql`update external_refunds set first_seen_at = now() - interval '30 days'`
    await lab.pass(payment)
    await lab.database.sql`update external_refunds set first_seen_at = now() - interval '30 days'`
    await lab.pass(payment)
    return { payment, id: await find('external_refund_unmatched') }
  }

  it('is decided on the page of its discrepancy, which that resolves', async () => {
    const { id } = await makePortalRefund()
    const { text } = await open(people.operator, id)
    expect(text).toContain('Decide the refund of 20')
    const fields = { externalOutcome: 'never_happened', externalReason: 'ticket 4711' }
    expect((await act(id, 'external', fields)).status).toBe(303)
    expect(await readExternal()).toMatchObject([{ outcome: 'never_happened' }])
    const page = await open(people.operator, id)
    expect(page.text).toContain('Resolved Both sides agree again')
    const [link = ''] = /\/console\/discrepancies\/[^"]*external=[^"#]*/.exec(page.html) ?? []
    const again = await openAs(lab, people.operator, link)
    expect(again.text).toContain('It never happened: it is decided so already')
  })

  it('that is one of two is decided on the page about it, which names it and does not offer the other', async () => {
    const payment = await lab.open()
    const [other, named] = [crypto.randomUUID(), crypto.randomUUID()]
    await lab.notify(payment, other, '20')
    await lab.pass(payment)
    await lab.notify(payment, named, '20')
    await lab.notify(payment, named, '20', { code: 33 })
    await lab.pass(payment)
    const id = await find('external_refund_contradicted')
    expect((await open(people.operator, id)).text).toContain(`Decide the refund of 20 ${named}`)
    const fields = { externalOutcome: 'never_happened', externalReason: 'ticket 4711' }
    expect((await act(id, 'external', fields)).status).toBe(303)
    const decided = await lab.database.sql`
      select request_id from external_refunds where outcome is not null`
    expect(decided).toEqual([{ request_id: named }])
    // The other one is not offered instead.
    const { html } = await open(people.operator, id)
    expect(readHidden(html, `${pathOf(id)}/external`)).toBeUndefined()
  })

  it('is found first on the page about it, and by its link, however many there are', async () => {
    const { payment, id } = await makePortalRefund()
    for (let more = 0; more < 22; more += 1) await lab.notify(payment, crypto.randomUUID(), '1')
    await lab.pass(payment)
    const rows = await lab.database.sql<{ id: string }[]>`
      select id from external_refunds order by first_seen_at, id`
    const shown = await open(people.operator, id)
    expect(shown.text).toContain('Decide the refund of 20')
    expect(shown.text).toContain('There are more.')
    const [, second] = rows
    expect(shown.html).not.toContain(`external=${second?.id}`)
    const named = await openAs(lab, people.operator, `${pathOf(id)}?external=${second?.id}`)
    expect(named.text).toContain('Decide the refund of 1 ')
    const story = `/console/transactions/${merchantCode}/${payment.transactionId}`
    expect((await openAs(lab, people.operator, story)).text).toContain('Only the newest refunds')
  })

  it('that does not fit the figures is not matched, and the page explains it', async () => {
    const { id } = await makePortalRefund()
    const fields = { externalOutcome: 'matched', externalReason: 'x' }
    const refused = await act(id, 'external', fields)
    expect(refused.status).toBe(200)
    expect(refused.text).toContain('no such amount is left unexplained')
    expect(refused.html).toMatch(/value="matched" checked/)
    expect(await readExternal()).toMatchObject([{ matched: false, outcome: null }])
  })

  it('that was decided meanwhile is not decided again with the old page', async () => {
    const { id } = await makePortalRefund()
    const page = await open(people.operator, id)
    const form = `${pathOf(id)}/external`
    const fields = { externalOutcome: 'never_happened', externalReason: 'ticket 4711' }
    await act(id, 'external', fields)
    const other = { ...fields, externalOutcome: 'part_of_first_sight', againstEvidence: 'true' }
    const late = await sendForm(lab, people.operator, page, form, other)
    expect(late.status).toBe(200)
    expect(late.text).toContain('this has changed since you opened it')
    expect(await readExternal()).toMatchObject([{ outcome: 'never_happened' }])
  })

  it('of another payment is not decided there', async () => {
    const { id } = await makePortalRefund()
    const other = await lab.open()
    await lab.notify(other, crypto.randomUUID(), '20')
    await lab.pass(other)
    const [row] = await lab.database.sql<{ id: string }[]>`
      select id from external_refunds where payment_id = ${other.id}`
    const fields = { externalOutcome: 'never_happened', externalReason: 'ticket 4711' }
    const refused = await act(id, 'external', { ...fields, externalId: row?.id ?? '' })
    expect(refused.status).toBe(404)
    expect(await readExternal()).toMatchObject([{ outcome: null }, { outcome: null }])
  })

  it('against an earlier decision has to be confirmed', async () => {
    const { id } = await makePortalRefund()
    await act(id, 'external', { externalOutcome: 'never_happened', externalReason: 'ticket 1' })
    const path = `${pathOf(id)}?external=`
    const [row] = await lab.database.sql<{ id: string }[]>`select id from external_refunds`
    const page = await openAs(lab, people.operator, path + row?.id)
    const form = `${pathOf(id)}/external`
    const fields = { externalOutcome: 'part_of_first_sight', externalReason: 'ticket 2' }
    const refused = await sendForm(lab, people.operator, page, form, fields)
    expect(refused.status).toBe(200)
    expect(refused.text).toContain('a person decided it as never_happened')
    expect(refused.html).toContain('name="againstEvidence"')
  })

  it.each([
    [{ externalId: 'x' }],
    [{ externalId: '00000000-0000-4000-8000-000000000000' }],
    [{ externalOutcome: 'released' }],
    [{ externalReason: '' }],
    [{ state: 'matched' }],
  ])('is not decided with odd input: %j', async (odd) => {
    const { id } = await makePortalRefund()
    const fields = { externalOutcome: 'never_happened', externalReason: 'ticket 4711' }
    const refused = await act(id, 'external', { ...fields, ...odd })
    expect([200, 404]).toContain(refused.status)
    expect(await readExternal()).toMatchObject([{ outcome: null }])
  })
})
