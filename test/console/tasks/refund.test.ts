import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { readShownVersion } from '../../../src/decisions/unit-of-work.ts'
import { addPrincipal, openIn } from '../../support/approvals.ts'
import { ask, expectTaken, moveTo } from '../../support/ask.ts'
import { beginPass } from '../../support/begin-pass.ts'
import { addVisitor, dropProof, submitBack, type Visitor } from '../../support/console.ts'
import { type OpenPage, openAs, readHidden, sendForm } from '../../support/console-pages.ts'
import { emptyTables } from '../../support/database.ts'
import { readForms } from '../../support/forms.ts'
import { MERCHANT, startTestService } from '../../support/service.ts'
import { usePeople, useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab({
  settings: {
    REFUND_APPROVAL_ABOVE: 'VND:50',
    REFUND_RESOLVE_FOR_MS: '3600000',
    REFUND_CONFIRM_FAILED_MS: '600000',
  },
})
afterEach(() => emptyTables(lab.database))

const people = usePeople(lab)

const pathOf = (id: string) => `/console/refunds/${MERCHANT.merchantCode}/${id}`
const open = (visitor: Visitor, id: string) => openAs(lab, visitor, pathOf(id))

const RECEIVER_B = { accountName: 'TRAN B', accountNumber: '987654321', swiftCode: 'ASCBVNVX' }

/** Requests a refund with an API key; more than 50 awaits approval. */
async function request(amount: string, { key, body = {} }: { key?: string; body?: object } = {}) {
  const payment = await openIn(lab, 'VND')
  const asked = { url: lab.service.url, ...(key === undefined ? {} : { key }) }
  const { id } = await expectTaken(await ask(asked, payment.id, { amount, ...body }))
  return { payment, id }
}

/** A refund of 30 that was sent an hour ago or earlier, in this status. */
async function makeSent(status: Parameters<typeof moveTo>[2]) {
  const { payment, id } = await request('30')
  await moveTo(lab.database, id, status)
  await lab.age(id, 7_200_000)
  return { payment, id }
}

async function act(visitor: Visitor, id: string, form: string, fields: Record<string, string>) {
  return await sendForm(lab, visitor, await open(visitor, id), `${pathOf(id)}/${form}`, fields)
}

const status = async (id: string) => (await lab.row(id)).status

/** The outcomes that a page offers. */
const listOutcomes = ({ html }: { html: string }) =>
  [...html.matchAll(/<input type="radio" name="outcome" value="(\w+)"/g)].map(([, value]) => value)

describe('a refund that waits for an approval', () => {
  it('is shown with what will be sent, and to whom', async () => {
    const { id } = await request('60', { body: { receiver: RECEIVER_B, reason: 'Returned goods' } })
    const { text } = await open(people.approver, id)
    expect(text).toContain('Refund of 60')
    expect(text).toContain('TRAN B, 987654321, ASCBVNVX')
    expect(text).toContain('Returned goods')
    expect(text).toContain('Left to refund beside it 40')
  })

  it('shows its receiver whole to who may approve and who asked for it, while it waits, and masked to all others', async () => {
    const name = `Linh ${crypto.randomUUID()}`
    const asker = await addVisitor(lab.database, { name, roles: ['agent'] })
    const key = await addPrincipal(lab.database, { person: name })
    const { id } = await request('60', { key: key.key, body: { receiver: RECEIVER_B } })
    const whole = 'TRAN B, 987654321, ASCBVNVX'
    for (const visitor of [asker, people.approver, people.admin]) {
      expect((await open(visitor, id)).text).toContain(whole)
    }
    for (const visitor of [people.viewer, people.agent, people.operator]) {
      const { html, text } = await open(visitor, id)
      expect(text).toContain('TRAN B, •••• 4321, ASCBVNVX')
      expect(html).not.toContain('987654321')
    }
    await act(people.approver, id, 'approval', { decision: 'decline', reason: 'not theirs' })
    for (const visitor of [asker, people.approver, people.admin, people.viewer]) {
      expect((await open(visitor, id)).html).not.toContain('987654321')
    }
  })

  it('is said to be declined to whoever declined it, on its page, for a minute', async () => {
    const [{ id }, { id: other }] = [await request('60'), await request('60')]
    const { approver, admin } = people
    const done = await act(approver, id, 'approval', { decision: 'decline', reason: 'not theirs' })
    const to = done.location ?? ''
    const [path, query] = to.split('?')
    expect(path).toBe(pathOf(id))
    const says = async (visitor: Visitor, address: string) =>
      (await openAs(lab, visitor, address)).text.includes('Declined. The refund has failed')
    expect(await says(approver, to)).toBe(true)
    expect(await says(admin, to)).toBe(false)
    expect(await says(approver, `${pathOf(other)}?${query}`)).toBe(false)
    expect(await says(approver, `${pathOf(other)}?notice=refundDeclined`)).toBe(false)
    const { ctx } = lab.service
    const late = vi.spyOn(ctx, 'now').mockReturnValue(new Date(Date.now() + 61_000))
    expect(await says(approver, to)).toBe(false)
    late.mockRestore()
  })

  it('is approved by another person, who is named in the audit log', async () => {
    const { id } = await request('60')
    const { status: answer, location } = await act(people.approver, id, 'approval', {
      decision: 'approve',
      reason: 'checked',
    })
    expect([answer, dropProof(location)]).toEqual([303, `${pathOf(id)}?notice=refundApproved`])
    expect(await status(id)).toBe('pending')
    expect((await openAs(lab, people.approver, location ?? '')).text).toContain('Approved.')
    const [row] = await lab.database.sql`
      select decided_by, decided_principal, decided_reason from refunds where refund_id = ${id}`
    expect(row).toEqual({
      decided_by: people.approver.name,
      decided_principal: `person:${people.approver.name.toLowerCase()}`,
      decided_reason: 'checked',
    })
  })

  it('is declined with a reason', async () => {
    const { id } = await request('60')
    await act(people.approver, id, 'approval', { decision: 'decline', reason: 'no return came' })
    expect(await lab.row(id)).toMatchObject({ status: 'failed', failureReason: 'declined' })
    expect((await open(people.viewer, id)).text).toContain(
      `Declined by ${people.approver.name}: no return came`,
    )
  })

  it('is not approved by whoever asked for it: not in a second session, nor with an API key', async () => {
    const name = `Linh ${crypto.randomUUID()}`
    const linh = await addVisitor(lab.database, { name, roles: ['approver', 'agent'] })
    const key = await addPrincipal(lab.database, { person: name.toUpperCase() })
    const { id } = await request('60', { key: key.key })
    const page = await open(linh, id)
    expect(page.text).toContain('You asked for this refund')
    expect(readHidden(page.html, `${pathOf(id)}/approval`)).toBeUndefined()
    const hidden = readHidden((await open(people.approver, id)).html, `${pathOf(id)}/approval`)
    const forced = await submitBack(lab, linh, `${pathOf(id)}/approval`, {
      version: hidden?.version ?? '',
      decision: 'approve',
    })
    expect(forced.status).toBe(200)
    expect(await forced.text()).toContain('another person has to decide')
    expect(await status(id)).toBe('awaiting_approval')
  })
})

it('a refund from before a restore is offered for cancellation to others than whoever asked for it', async () => {
  const name = `Linh ${crypto.randomUUID()}`
  const linh = await addVisitor(lab.database, { name, roles: ['agent'] })
  const { key } = await addPrincipal(lab.database, { person: name })
  const { id } = await request('30', { key })
  const isOffered = async (visitor: Visitor) =>
    readHidden((await open(visitor, id)).html, `${pathOf(id)}/cancellation`) !== undefined
  expect([await isOffered(linh), await isOffered(people.agent)]).toEqual([true, true])
  try {
    await lab.database.sql`update installation set restored_at = clock_timestamp()`
    expect([await isOffered(linh), await isOffered(people.agent)]).toEqual([false, true])
    expect((await open(linh, id)).text).toContain('another person has to decide')
  } finally {
    await lab.database.sql`update installation set restored_at = null`
  }
})

describe('what a page says happens next', () => {
  it('of a held refund that is approved is not that it is sent within moments', async () => {
    const { id } = await request('60')
    const held = await act(people.operator, id, 'hold', { held: 'true', reason: 'disputed' })
    expect(held.status).toBe(303)
    const { location } = await act(people.approver, id, 'approval', { decision: 'approve' })
    const after = await openAs(lab, people.approver, location ?? '')
    expect(after.text).toContain('Nothing is sent until the hold is released')
    expect(after.text).not.toContain('is sent to the gateway within moments')
  })

  it('of a refund that waits while sending is switched off is not that it is sent', async () => {
    const { id } = await request('30')
    const settings = { ROLE: 'web', REFUNDS_ENABLED: 'false' }
    const off = await startTestService(lab.database, lab.sandbox.url, { settings })
    onTestFinished(() => off.stop())
    const { text } = await openAs({ service: off }, people.operator, pathOf(id))
    expect(text).toContain('New refunds are switched off, so it is not sent.')
    const health = await openAs({ service: off }, people.operator, '/console/health')
    expect(health.text).toContain('New refunds are not: REFUNDS_ENABLED is false.')
    expect(health.text).not.toContain('Refunds and webhooks are sent.')
  })
})

describe('the outcomes that an operator is offered', () => {
  it.each([
    ['awaiting_approval', []],
    ['pending', []],
    ['sending', []],
    ['accepted', ['succeeded', 'failed']],
    ['unknown', ['succeeded', 'failed']],
    ['needs_review', ['succeeded', 'failed']],
    ['succeeded', ['failed', 'returned']],
    ['failed', ['succeeded', 'returned']],
    ['returned', ['succeeded', 'failed', 'returned']],
  ] as const)('of a refund that is %s are %j', async (state, offered) => {
    const { id } = await request(state === 'awaiting_approval' ? '60' : '30')
    if (state !== 'awaiting_approval' && state !== 'pending') {
      await moveTo(lab.database, id, state)
      await lab.age(id, 7_200_000)
    }
    expect(listOutcomes(await open(people.operator, id))).toEqual(offered)
  })

  it.each(['accepted', 'unknown'] as const)(
    'begin for one that is %s when its time has come, and the page names that time',
    async (state) => {
      const { id } = await request('30')
      await moveTo(lab.database, id, state)
      const { html, text } = await open(people.operator, id)
      expect(html).not.toContain('name="outcome"')
      expect(text).toContain(
        `you can decide the outcome in ${state === 'accepted' ? '1 hour' : '10 minutes'}`,
      )
      const forced = await submitBack(lab, people.operator, `${pathOf(id)}/resolution`, {
        outcome: 'failed',
        reason: 'x',
      })
      expect(forced.status).toBe(200)
      expect(await status(id)).toBe(state)
    },
  )
})

describe('a refund whose success was only concluded', () => {
  async function makeInferred(): Promise<string> {
    const payment = await openIn(lab, 'VND')
    const id = await lab.send(payment, '30')
    await lab.show(payment, '30')
    await lab.pass(payment)
    expect(await lab.row(id)).toMatchObject({ status: 'succeeded', inferred: true })
    return id
  }

  const readDeciding = ({ html }: OpenPage) =>
    readForms(html).filter(({ action }) => action.endsWith('/resolution'))

  it('is confirmed with one click', async () => {
    const id = await makeInferred()
    const page = await open(people.operator, id)
    expect(page.text).toContain('Did it happen?')
    const done = await sendForm(lab, people.operator, page, `${pathOf(id)}/resolution`, {})
    expect(done.status).toBe(303)
    expect(await lab.row(id)).toMatchObject({
      ...{ status: 'succeeded', inferred: false },
      resolution: { outcome: 'succeeded', by: people.operator.name },
    })
    expect((await open(people.operator, id)).text).not.toContain('Did it happen?')
  })

  it('is offered at first as what happened or as a decision, without a box', async () => {
    const deciding = readDeciding(await open(people.operator, await makeInferred()))
    expect(deciding.map(({ buttons }) => buttons)).toEqual([
      ['It happened'],
      ['Record the decision'],
    ])
    expect(deciding.flatMap(({ shown }) => shown)).not.toContain('againstEvidence')
  })

  it('asks for the box beside the decision that it failed, not in the form that says that it happened', async () => {
    const id = await makeInferred()
    const decision = { outcome: 'failed', reason: 'their support says no' }
    const refused = await act(people.operator, id, 'resolution', decision)
    expect(refused.text).toContain('This decision contradicts the evidence:')
    const asking = readDeciding(refused).filter(({ shown }) => shown.includes('againstEvidence'))
    expect(asking.map(({ buttons }) => buttons)).toEqual([['Record the decision']])
  })

  it('leads there from the transaction, and not for people who may not decide', async () => {
    const id = await makeInferred()
    const { transactionId } = await lab.row(id)
    const path = `/console/transactions/${MERCHANT.merchantCode}/${transactionId}`
    expect((await openAs(lab, people.operator, path)).text).toContain('Say whether it happened')
    expect((await openAs(lab, people.viewer, path)).text).not.toContain('Say whether it happened')
  })
})

describe('what a person decided before', () => {
  it.each([
    ['succeeded', ['returned'], 'failed'],
    ['failed', ['succeeded'], 'returned'],
    ['returned', [], 'returned'],
  ] as const)(
    'as %s offers that person only %j: another one can decide the rest',
    async (state, offered, outcome) => {
      const { id } = await makeSent(state === 'returned' ? 'succeeded' : 'needs_review')
      await act(people.operator, id, 'resolution', { outcome: state, reason: 'ticket 4711' })
      const shown = await open(people.operator, id)
      expect(listOutcomes(shown)).toEqual(offered)
      expect(shown.text).toContain('What is not offered here, another person can decide.')
      const path = `${pathOf(id)}/resolution`
      const hidden = readHidden((await open(people.admin, id)).html, path)
      const decided = { outcome, reason: 'once more', againstEvidence: 'true' }
      const fields = { version: hidden?.version ?? '', ...decided }
      expect((await submitBack(lab, people.operator, path, fields)).status).toBe(200)
      expect(await status(id)).toBe(state)
      const page = await open(people.admin, id)
      const waits = async () =>
        (await openAs(lab, people.admin, '/console/tasks?section=reviews')).text.includes(
          'One person said that the money came back; another one has to confirm it.',
        )
      expect(await waits()).toBe(state === 'returned')
      expect((await sendForm(lab, people.admin, page, path, decided)).status).toBe(303)
      expect(await status(id)).toBe(outcome)
      if (state === 'returned') expect(await waits()).toBe(false)
    },
  )

  it('is decided again alone where nobody else may, after a wait that the page names', async () => {
    const { id } = await makeSent('succeeded')
    await act(people.operator, id, 'resolution', { outcome: 'returned', reason: 'ticket 4711' })
    const { sql } = lab.database
    const { personId } = people.operator
    await sql`
      update actors set ended_at = now()
      where (kind = 'person' or 'ops' = any(scopes)) and id <> ${personId}`
    try {
      expect((await open(people.operator, id)).text).toContain(
        'You can decide it again in 10 minutes.',
      )
      await sql`
        update refunds set resolved_at = resolved_at - interval '10 min' where refund_id = ${id}`
      const page = await open(people.operator, id)
      expect(page.text).toContain('so you can decide it again; that is recorded.')
      const fields = { outcome: 'returned', reason: 'the bank says so' }
      const done = await sendForm(lab, people.operator, page, `${pathOf(id)}/resolution`, fields)
      expect(done.status).toBe(303)
    } finally {
      await sql`update actors set ended_at = null`
    }
    expect(await lab.row(id)).toMatchObject({ status: 'returned', returnSightings: 2 })
    expect((await lab.readRefund(id)).selfDecided).toBe(true)
  })
})

describe('a refund that growth of its payment may be', () => {
  it.each(['30', '60'])(
    'of %s is neither cancelled nor declined, and the page says why',
    async (amount) => {
      const { payment, id } = await request(amount)
      await lab.database.sql`
        update payments set refunded_amount = ${amount} where payment_id = ${payment.id}`
      const { html, text } = await open(people.admin, id)
      expect(text).toContain('that may be this refund')
      expect(html).not.toContain('/cancellation"')
      expect(html).not.toContain('value="decline"')
      const key = { merchantCode: MERCHANT.merchantCode, refundId: id }
      const version = await readShownVersion(lab.service.ctx.db.sql, key)
      const forced = { cancelReason: 'x', version }
      const refused = await submitBack(lab, people.admin, `${pathOf(id)}/cancellation`, forced)
      expect(refused.status).toBe(200)
      expect(await refused.text()).toContain('It was neither cancelled nor declined')
      expect((await lab.row(id)).failureSource).toBeNull()
    },
  )
})

describe('the evidence beside the decision', () => {
  it('shows what speaks for each outcome, what to ask, and the request id to quote', async () => {
    const payment = await openIn(lab, 'VND')
    await lab.fault('code', { code: 5 })
    const id = await lab.send(payment, '30')
    await moveTo(lab.database, id, 'needs_review')
    await lab.notify(payment, id, '30')
    const { text, html } = await open(people.operator, id)
    expect(text).toMatch(/Speaks for: the money moved Notification .*Speaks for: the money did not/)
    expect(text).toMatch(/Speaks for: the money did not move .*Answer of the gateway .*code 5/)
    expect(text).toContain(`Request id ${id}`)
    expect(text).toContain(`payment ${payment.id}: was the refund of 30`)
    expect(html).toMatch(new RegExp(`<code data-copy[^>]*>${id}</code>`))
  })

  it('has to be the newest: a late answer to an attempt makes the page outdated', async () => {
    const payment = await openIn(lab, 'VND')
    const id = await lab.ask(payment, '30')
    const held = await beginPass(lab, payment, 'REFUND')
    await lab.pass(payment)
    await lab.age(id, 3_600_000)
    await lab.pass(payment)
    expect(await status(id)).toBe('needs_review')
    const page = await open(people.operator, id)
    expect(page.text).toContain('no answer')
    await held.finish()
    const decision = { outcome: 'failed', reason: 'their support says no' }
    const sent = await sendForm(lab, people.operator, page, `${pathOf(id)}/resolution`, decision)
    expect(sent.text).toContain('this has changed since you opened it')
    expect(await status(id)).toBe('needs_review')
  })

  it('has to be contradicted on purpose: the page shows it, and a box to confirm', async () => {
    const payment = await openIn(lab, 'VND')
    const id = await lab.send(payment, '30')
    await moveTo(lab.database, id, 'needs_review')
    await lab.notify(payment, id, '30')
    const first = await open(people.operator, id)
    expect(first.html).not.toContain('againstEvidence')
    const form = `${pathOf(id)}/resolution`
    const decision = { outcome: 'failed', reason: 'their support says no' }
    const refused = await sendForm(lab, people.operator, first, form, decision)
    expect(refused.status).toBe(200)
    expect(refused.text).toContain('This decision contradicts the evidence:')
    expect(refused.text).toContain('the gateway notified that it succeeded')
    expect(refused.html).toContain('their support says no')
    expect(refused.html).toMatch(/value="failed" checked/)
    expect(refused.text).not.toContain('againstEvidence')
    expect(await status(id)).toBe('needs_review')
    const confirmed = { ...decision, againstEvidence: 'true' }
    const done = await sendForm(lab, people.operator, refused, form, confirmed)
    expect(done.status).toBe(303)
    expect(await status(id)).toBe('failed')
    expect(await lab.disagreements(payment)).toContain('decided_against_evidence')
  })
})

describe("one's own refund in review", () => {
  it('is decided by another person', async () => {
    const name = `Minh ${crypto.randomUUID()}`
    const minh = await addVisitor(lab.database, { name, roles: ['operator'] })
    const key = await addPrincipal(lab.database, { person: name })
    const { id } = await request('30', { key: key.key })
    await moveTo(lab.database, id, 'needs_review')
    const { html, text } = await open(minh, id)
    expect(html).not.toContain('name="outcome"')
    expect(text).toContain('another person has to decide about it')
    const hidden = readHidden((await open(people.operator, id)).html, `${pathOf(id)}/resolution`)
    const forced = await submitBack(lab, minh, `${pathOf(id)}/resolution`, {
      version: hidden?.version ?? '',
      outcome: 'succeeded',
      reason: 'mine',
    })
    expect(forced.status).toBe(200)
    expect(await status(id)).toBe('needs_review')
  })
})

describe('a cancellation', () => {
  it('ends what was never sent, by a person who may ask for refunds', async () => {
    const { id } = await request('30')
    const { status: answer } = await act(people.agent, id, 'cancellation', {
      cancelReason: 'the customer keeps the goods',
    })
    expect(answer).toBe(303)
    expect(await lab.row(id)).toMatchObject({ status: 'failed', failureReason: 'cancelled' })
  })
})

describe('a form that was opened before', () => {
  const decision = { outcome: 'failed', reason: 'x', againstEvidence: 'true' }
  const approve = { decision: 'approve' }
  it.each<
    [what: string, form: string, amount: string, fields: Record<string, string>, shown: string]
  >([
    ['the approval', 'approval', '60', approve, 'Approved by'],
    ['a hold', 'approval', '60', approve, 'the shop disputes it'],
    ['evidence', 'resolution', '30', decision, 'Speaks for: the money moved Notification'],
    ['the decision', 'resolution', '30', decision, 'decided that it succeeded'],
    ['the approval', 'cancellation', '60', { cancelReason: 'x' }, 'Approved by'],
    ['the answer', 'cancellation', '30', { cancelReason: 'x' }, 'Accepted by the gateway'],
  ])('makes after %s no %s, and its page shows that', async (what, form, amount, fields, shown) => {
    const { payment, id } = await request(amount)
    if (form === 'resolution') {
      await moveTo(lab.database, id, 'needs_review')
      await lab.age(id, 7_200_000)
    }
    const page = await open(people.admin, id)
    const meanwhile: Record<string, () => Promise<unknown>> = {
      'the approval': () => act(people.approver, id, 'approval', approve),
      'a hold': () => lab.hold(`refund/${id}`, 'the shop disputes it'),
      evidence: () => lab.notify(payment, id, '30'),
      'the decision': () =>
        act(people.operator, id, 'resolution', { outcome: 'succeeded', reason: 'paid out' }),
      'the answer': () => moveTo(lab.database, id, 'accepted'),
    }
    await meanwhile[what]?.()
    const before = await status(id)
    const late = await sendForm(lab, people.admin, page, `${pathOf(id)}/${form}`, fields)
    expect(late.status).toBe(200)
    expect(late.text).toContain(shown)
    expect(await status(id)).toBe(before)
  })
})

describe('input on the page of a refund', () => {
  it.each([
    ['approval', { decision: 'approve', reason: 'x'.repeat(501) }, 'At most 500 characters'],
    ['cancellation', { cancelReason: '  ' }, 'Give a reason.'],
  ] as const)('that is wrong comes back beside its field: %s', async (form, fields, problem) => {
    const { id } = await request('60')
    const refused = await act(people.admin, id, form, fields)
    expect(refused.status).toBe(200)
    expect(refused.text).toContain(problem)
    expect(refused.html).toMatch(/<textarea[^>]*aria-invalid="true"[^>]*autofocus/)
    expect(await status(id)).toBe('awaiting_approval')
  })

  it('without an outcome or a reason comes back with what was filled in', async () => {
    const { id } = await makeSent('needs_review')
    const first = await act(people.operator, id, 'resolution', { reason: 'ticket <b>47</b>' })
    expect(first.status).toBe(200)
    expect(first.text).toContain('Choose what happened.')
    expect(first.html).toContain('ticket &lt;b&gt;47&lt;/b&gt;')
    const second = await act(people.operator, id, 'resolution', { outcome: 'failed' })
    expect(second.text).toContain('Give a reason.')
    expect(second.html).toMatch(/value="failed" checked/)
    expect(await status(id)).toBe('needs_review')
  })

  it('without the version that was shown decides nothing', async () => {
    const { id } = await request('60')
    const path = `${pathOf(id)}/approval`
    for (const version of [undefined, '', 'x'.repeat(1000)]) {
      const fields = { decision: 'approve', ...(version === undefined ? {} : { version }) }
      expect((await submitBack(lab, people.approver, path, fields)).status).toBe(200)
    }
    expect(await status(id)).toBe('awaiting_approval')
  })

  it.each([
    ['viewer', []],
    ['agent', ['cancellation']],
    ['approver', ['approval']],
    ['operator', ['note', 'assignee', 'resolution']],
    ['admin', ['approval', 'cancellation', 'note', 'assignee', 'resolution']],
  ] as const)('is asked of the role %s for: %j', async (role, forms) => {
    const awaiting = (await open(people[role], (await request('60')).id)).html
    const inReview = (await open(people[role], (await makeSent('needs_review')).id)).html
    const all = ['approval', 'cancellation', 'note', 'assignee', 'resolution']
    const shown = all.filter((form) => `${awaiting}${inReview}`.includes(`/${form}"`))
    expect(shown).toEqual(forms)
  })
})

describe('a refund in review', () => {
  it('is assigned and noted, which the timeline and the audit log record', async () => {
    const { payment, id } = await makeSent('needs_review')
    await act(people.operator, id, 'assignee', { name: people.operator.name })
    await act(people.operator, id, 'note', { text: 'asked their support\n\nticket 4711' })
    const { text } = await open(people.admin, id)
    expect(text).toContain(`Taken care of by ${people.operator.name}`)
    expect(text).toContain(`asked their support ticket 4711 by ${people.operator.name}`)
    const changes = await lab.database.sql`
      select field, after from changes where transaction_id = ${payment.transactionId}
        and field like 'refund_%' order by id`
    expect(changes).toEqual([
      { field: 'refund_assignee', after: people.operator.name },
      { field: 'refund_note', after: 'asked their support ticket 4711' },
    ])
    const audited = await lab.database.sql`
      select operation from audit_entries where object_id = ${id} and actor = ${people.operator.name}
      order by id`
    expect(audited.map(({ operation }) => operation)).toEqual([
      'POST /console/refunds/{merchant}/{refundId}/assignee',
      'POST /console/refunds/{merchant}/{refundId}/note',
    ])
    await act(people.admin, id, 'assignee', { name: '' })
    expect((await open(people.admin, id)).text).toContain('Taken care of by Not assigned')
  })

  it('is assigned to people who may decide it only', async () => {
    const { id } = await makeSent('needs_review')
    for (const name of [people.viewer.name, 'Mallory', ' ']) {
      const refused = await act(people.operator, id, 'assignee', { name })
      expect(refused.status).toBe(200)
      expect(refused.text).toContain('Choose a person of the list.')
    }
    expect((await act(people.operator, id, 'assignee', { name: people.admin.name })).status).toBe(
      303,
    )
  })

  it('takes a hundred notes, and no more', async () => {
    const { id } = await makeSent('needs_review')
    await act(people.operator, id, 'note', { text: 'first' })
    await lab.database.sql`
      update refund_reviews set notes = (
        select jsonb_agg(one) from jsonb_array_elements(notes) as one, generate_series(1, 100))`
    const refused = await act(people.operator, id, 'note', { text: 'one more' })
    expect(refused.status).toBe(200)
    expect(refused.text).toContain('there are 100 notes already')
  })
})
