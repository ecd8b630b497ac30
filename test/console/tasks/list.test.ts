import { afterEach, describe, expect, it } from 'vitest'
import type { SectionName } from '../../../src/console/task-sections.tsx'
import { TEXTS } from '../../../src/console/texts/catalogue.ts'
import { DISCREPANCY_KINDS } from '../../../src/discrepancies/kinds.ts'
import { seedDiscrepancy } from '../../support/api.ts'
import { addPrincipal } from '../../support/approvals.ts'
import { ask, expectTaken, moveTo, seedCurrency, seedPaid } from '../../support/ask.ts'
import { addVisitor, dropProof, type Visitor } from '../../support/console.ts'
import { openAs, sendForm } from '../../support/console-pages.ts'
import { emptyTables } from '../../support/database.ts'
import { MERCHANT } from '../../support/service.ts'
import { usePeople, useRig } from '../../support/use-started.ts'

const { merchantCode } = MERCHANT
const SETTINGS = {
  ROLE: 'web',
  REFUND_APPROVAL_ABOVE: 'CLF:50',
  REFUND_RESOLVE_FOR_MS: '259200000',
}

const rig = useRig({ settings: SETTINGS })
const people = usePeople(rig)
afterEach(async () => {
  await emptyTables(rig.database)
  await rig.database.sql`delete from webhook_endpoints`
  await rig.database.sql`delete from webhook_attempts`
})

const tasks = (visitor: Visitor, query = '') => openAs(rig, visitor, `/console/tasks${query}`)

/** The text of one section; undefined when the page has none of that name. */
function readSection(html: string, name: SectionName): string | undefined {
  const part = html.split(`<section id="${name}"`)[1]?.split('</section>')[0]
  return part
    ?.replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

async function request(amount: string, key?: string): Promise<string> {
  const payment = await seedPaid(rig.database)
  await seedCurrency(rig.database, payment.transactionId, 'CLF')
  const asked = { url: rig.service.url, ...(key === undefined ? {} : { key }) }
  return (await expectTaken(await ask(asked, payment.id, { amount }))).id
}

async function makeSent(status: 'accepted' | 'unknown' | 'needs_review', hours: number) {
  const id = await request('10')
  await moveTo(rig.database, id, status)
  await rig.database.sql`
    update refunds set requested_at = now() - ${hours} * interval '1 hour',
      last_sent_at = now() - ${hours} * interval '1 hour' where refund_id = ${id}`
  return id
}

const addDiscrepancy = (kind: string, daysAgo: number, account = merchantCode) =>
  seedDiscrepancy(rig.database, kind, { daysAgo, merchantCode: account })

async function addEndpoint(owner: string, more: { disabled?: boolean; failing?: boolean } = {}) {
  const { disabled = false, failing = true } = more
  const { sql } = rig.database
  const [row] = await sql<{ id: string }[]>`
    insert into webhook_endpoints (key_chain_id, merchant_code, url, types, api_version, secret, cursor, failing_since,
      due_at, disabled_at, disabled_reason)
    values (gen_random_uuid(), ${owner}, 'https://shop.example/hooks', '{payment.updated}', '', '', 7,
      ${failing ? sql`now() - interval '2 days'` : null}, ${failing ? sql`now() + interval '1 minute'` : sql`now()`},
      ${disabled ? sql`now()` : null}, ${disabled ? 'failing' : null})
    returning id`
  const id = row?.id ?? ''
  if (failing) {
    await sql`
      insert into events (id, merchant_code, transaction_id, type, data, at)
      values (7, ${merchantCode}, 'T-7', 'payment.updated', '{}', now()) on conflict do nothing`
    await sql`
      insert into webhook_retries (endpoint_id, event_id, merchant_code, transaction_id)
      values (${id}, 7, ${merchantCode}, 'T-7')`
    await sql`
      insert into webhook_attempts (merchant_code, endpoint_id, event_id, type, transaction_id, attempt, sent_at,
        duration_ms, http_status, error, answer)
      values (${owner}, ${id}, 7, 'payment.updated', 'T-7', 1, now(), 12, 503, 'answered 503', ${'down <b>now</b>'})`
  }
  return id
}

describe('what waits for a person', () => {
  it('is nothing at first, and every section says so kindly', async () => {
    const { text, html, status } = await tasks(people.admin)
    expect(status).toBe(200)
    expect(text).toContain('Nothing waits for you at the moment.')
    for (const name of [
      'paidTwice',
      'approvals',
      'reviews',
      'overdue',
      'discrepancies',
      'endpoints',
    ] as const) {
      expect(readSection(html, name)).toContain(TEXTS[`tasks.sections.${name}.empty`][0])
    }
  })

  it('depends on the role', async () => {
    const shown = await Promise.all(
      (['viewer', 'agent', 'approver', 'operator', 'admin'] as const).map(async (role) => {
        const { html } = await tasks(people[role])
        return [role, [...html.matchAll(/<section id="(\w+)"/g)].map(([, name]) => name)]
      }),
    )
    expect(Object.fromEntries(shown)).toEqual({
      viewer: [],
      agent: ['paidTwice', 'own', 'approvals'],
      approver: ['approvals'],
      operator: ['reviews', 'overdue', 'discrepancies', 'endpoints'],
      admin: ['paidTwice', 'own', 'approvals', 'reviews', 'overdue', 'discrepancies', 'endpoints'],
    })
    expect((await tasks(people.viewer)).text).toContain('Your roles let you look things up.')
  })

  it('is counted in the navigation of every page, and again after what the person did', async () => {
    // The count is kept for some seconds for each person.
    const approver = await addVisitor(rig.database, { roles: ['approver'] })
    const { viewer } = people
    const id = await request('60')
    await request('61')
    const open = async (who: Visitor) =>
      (await openAs(rig, who, '/console/account')).html.replaceAll(/\s+/g, ' ')
    expect(await open(approver)).toContain('Waiting for you (2)')
    expect(await open(viewer)).not.toContain('Waiting for you (')
    const path = `/console/refunds/${merchantCode}/${id}`
    const page = await openAs(rig, approver, path)
    await sendForm(rig, approver, page, `${path}/approval`, { decision: 'decline', reason: '' })
    expect(await open(approver)).toContain('Waiting for you (1)')
  })

  it('are the refunds that a person asked for and that failed or came back lately', async () => {
    const name = `Linh ${crypto.randomUUID()}`
    const linh = await addVisitor(rig.database, { name, roles: ['agent'] })
    const { sql } = rig.database
    const ids = [await request('11'), await request('12'), await request('13'), await request('14')]
    await sql`update refunds set requested_by = ${name} where refund_id in ${sql(ids)}`
    const [failed = '', returned = '', old = ''] = ids
    await moveTo(rig.database, failed, 'failed')
    await moveTo(rig.database, returned, 'returned')
    await moveTo(rig.database, old, 'failed')
    await sql`
      update refunds set requested_at = now() - interval '8 days' where refund_id = ${old}`
    const section = readSection((await tasks(linh)).html, 'own')
    expect(section).toMatch(/did not arrive 2 .*12 CLF .* Money came back .*11 CLF .* Failed/)
    expect(section).not.toMatch(/13 CLF|14 CLF/)
    expect(readSection((await tasks(people.agent)).html, 'own')).not.toContain('11 CLF')
  })

  it.each([
    ['are not those that they cancelled themselves', true],
    ['are those that somebody else cancelled', false],
  ])('of the refunds of a person that did not arrive %s', async (_, isOwn) => {
    const agent = await addVisitor(rig.database, { roles: ['agent'] })
    const id = await request('11')
    await rig.database.sql`
      update refunds set requested_by = ${agent.name} where refund_id = ${id}`
    const canceller = isOwn ? agent : people.admin
    const path = `/console/refunds/${merchantCode}/${id}`
    const page = await openAs(rig, canceller, path)
    const fields = { cancelReason: 'a mistake' }
    const done = await sendForm(rig, canceller, page, `${path}/cancellation`, fields)
    expect(done.status).toBe(303)
    expect((await tasks(agent)).html.includes(id)).toBe(!isOwn)
  })

  it("is that of the person's own accounts", async () => {
    await request('60')
    await makeSent('needs_review', 1)
    await addDiscrepancy('amount_mismatch', 1)
    await addDiscrepancy('amount_mismatch', 1, 'OTHER1')
    await addEndpoint(merchantCode)
    await addEndpoint('*')
    const theirs = await addVisitor(rig.database, { roles: ['admin'], merchants: ['OTHER1'] })
    const { html } = await tasks(theirs)
    for (const name of ['paidTwice', 'approvals', 'reviews', 'overdue', 'endpoints'] as const) {
      expect(readSection(html, name)).toContain(TEXTS[`tasks.sections.${name}.empty`][0])
    }
    expect(readSection(html, 'discrepancies')).toMatch(/^.*Discrepancies 1 /)
    expect(readSection((await tasks(people.admin)).html, 'endpoints')).toMatch(/arrive 2 /)
  })
})

describe('refunds to approve', () => {
  it('come longest first, with who asked and why', async () => {
    const old = await request('61')
    await request('62')
    await rig.database.sql`
      update refunds set requested_at = now() - interval '50 hours' where refund_id = ${old}`
    const section = readSection((await tasks(people.approver)).html, 'approvals') ?? ''
    expect(section).toMatch(/Refunds to approve 2 .*61 CLF .* first .*62 CLF/)
    expect(section).toContain('Open it to approve or decline.')
  })

  it("name one's own, with why another person has to approve it", async () => {
    const name = `Lan ${crypto.randomUUID()}`
    const lan = await addVisitor(rig.database, { name, roles: ['agent', 'approver'] })
    const key = await addPrincipal(rig.database, { person: name })
    await request('60', key.key)
    expect(readSection((await tasks(lan)).html, 'approvals')).toContain(
      'You asked for this refund: another person has to approve it.',
    )
    expect(readSection((await tasks(people.agent)).html, 'approvals')).toContain(
      'An approver has to decide.',
    )
  })
})

describe('refunds without an outcome', () => {
  it('are those sent more than a day ago, with when they can be decided', async () => {
    await makeSent('accepted', 23)
    await makeSent('accepted', 30)
    await makeSent('unknown', 40)
    await makeSent('accepted', 80)
    const section = readSection((await tasks(people.operator)).html, 'overdue') ?? ''
    expect(section).toMatch(/^.*Refunds without an outcome 3 /)
    expect(section).toContain('Sent more than 24 hours ago')
    expect(section).toMatch(/You can decide it now\..*You can decide it now/)
    expect(section).toContain('You can decide it in 2 days.')
  })
})

describe('refunds that need a decision', () => {
  it('show why, and who takes care of them: also of their discrepancy', async () => {
    const id = await makeSent('needs_review', 5)
    const other = await makeSent('needs_review', 4)
    const { sql } = rig.database
    await sql`update refunds set review = 'no_evidence' where refund_id = ${id}`
    await sql`
      insert into refund_reviews (merchant_code, refund_id, assignee) values (${merchantCode}, ${id}, 'Linh')`
    await sql`
      insert into discrepancies (merchant_code, transaction_id, refund_id, kind, ours, theirs, assignee)
      select ${merchantCode}, transaction_id, refund_id, 'failure_after_success', '', '', 'Minh'
      from refunds where refund_id = ${other}`
    const section = readSection((await tasks(people.operator)).html, 'reviews') ?? ''
    expect(section).toMatch(/No evidence arrived\. .* Linh .*contradicts itself\. .* Minh/)
  })

  it('show who takes care of one that awaits a second word that its money came back', async () => {
    const id = await makeSent('needs_review', 5)
    await moveTo(rig.database, id, 'returned')
    await rig.database.sql`
      insert into refund_reviews (merchant_code, refund_id, assignee) values (${merchantCode}, ${id}, 'Linh')`
    const section = readSection((await tasks(people.operator)).html, 'reviews') ?? ''
    expect(section).toMatch(/another one has to confirm it\. .* Linh/)
  })
})

describe('discrepancies', () => {
  it('come by severity, then age; resolved ones do not', async () => {
    await addDiscrepancy('ipn_missing', 9)
    await addDiscrepancy('order_paid_twice', 5)
    await addDiscrepancy('amount_mismatch', 1)
    await addDiscrepancy('currency_changed', 3)
    const over = await addDiscrepancy('currency_changed', 4)
    await rig.database.sql`update discrepancies set resolved_at = now() where id = ${over}`
    const section = readSection((await tasks(people.operator)).html, 'discrepancies') ?? ''
    const names = [
      'currency_changed',
      'amount_mismatch',
      'order_paid_twice',
      'ipn_missing',
    ] as const
    const places = names.map((kind) => section.indexOf(TEXTS[`discrepancies.kinds.${kind}`][0]))
    expect(places.every((place) => place > 0)).toBe(true)
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(section).toMatch(/^.*Discrepancies 4 /)
  })

  it('are listed page by page without one twice or left out', async () => {
    const kinds = Object.keys(DISCREPANCY_KINDS)
    const ids = new Set<number>()
    for (let n = 0; n < 120; n += 1) {
      ids.add(await addDiscrepancy(kinds[n % kinds.length] ?? '', Math.floor(n / 3)))
    }
    const first = await tasks(people.operator)
    expect(readSection(first.html, 'discrepancies')).toMatch(/Discrepancies 50\+/)
    expect(first.text).toContain('More than 40 others')
    let query = '?section=discrepancies'
    const seen: number[] = []
    for (let page = 0; page < 3; page += 1) {
      const { html } = await tasks(people.operator, query)
      const found = html.matchAll(/href="\/console\/discrepancies\/\w+\/(\d+)"/g)
      seen.push(...[...found].map(([, id]) => Number(id)))
      query =
        /href="\/console\/tasks(\?[^"]*)" rel="next"/.exec(html)?.[1]?.replaceAll('&amp;', '&') ??
        ''
    }
    expect(query).toBe('')
    expect(seen).toHaveLength(120)
    expect(new Set(seen)).toEqual(ids)
  })
})

describe('a long section of refunds', () => {
  it('shows ten, and leads on to the rest, page by page', async () => {
    const ids: string[] = []
    for (let n = 0; n < 53; n += 1) ids.push(await request('60'))
    const first = await tasks(people.approver)
    expect([...first.html.matchAll(/href="\/console\/refunds\//g)]).toHaveLength(10)
    expect(first.text).toContain('More than 40 others')
    const second = await tasks(people.approver, '?section=approvals')
    expect([...second.html.matchAll(/href="\/console\/refunds\//g)]).toHaveLength(50)
    const next = /href="\/console\/tasks(\?[^"]*)" rel="next"/.exec(second.html)?.[1] ?? ''
    const third = await tasks(people.approver, next.replaceAll('&amp;', '&'))
    const rest = [...third.html.matchAll(/href="\/console\/refunds\/\w+\/([\w-]+)"/g)]
    expect(rest.map(([, id]) => id)).toEqual(ids.slice(50))
  })

  it.each([
    '?section=approvals&cursor=x',
    '?section=discrepancies&cursor=WyIyMDI2LTAxLTAxIDAwOjAwOjAwKzAwIiwieCIsIlUiXQ',
    '?section=approvals&cursor=WyIyMDI2LTAxLTAxIDAwOjAwOjAwKzAwIiwieCIsIlUiXQ',
  ])('refuses a cursor of another list: %s', async (query) => {
    expect((await tasks(people.admin, query)).status).toBe(422)
  })

  it('that is not known, or not for the role, is left out', async () => {
    for (const query of ['?section=x', '?section=__proto__', '?section=discrepancies']) {
      const { status, text } = await tasks(people.approver, query)
      expect(status).toBe(200)
      expect(text).toMatch(/^Waiting for you/)
    }
  })
})

describe('webhook endpoints that fail', () => {
  it('show since when, the last answer, the next attempt and the newest failed event', async () => {
    await addEndpoint(merchantCode)
    await addEndpoint('*', { disabled: true })
    await addEndpoint(merchantCode, { failing: false })
    const { html } = await tasks(people.operator)
    const section = readSection(html, 'endpoints') ?? ''
    expect(section).toMatch(/do not arrive 2 /)
    expect(section).toContain('https://shop.example/hooks')
    expect(section).toContain('Status 503 down &lt;b&gt;now&lt;/b&gt;')
    expect(section).toContain('1 event waits.')
    expect(section).toContain('Disabled: nothing was accepted for five days.')
    expect(html).toContain(`href="/console/transactions/${merchantCode}/T-7"`)
  })

  it('are enabled again, and audited under the name of the person', async () => {
    const id = await addEndpoint(merchantCode, { disabled: true })
    const page = await tasks(people.operator)
    const action = `/console/webhooks/${id}/enable`
    const done = await sendForm(rig, people.operator, page, action, {})
    expect(dropProof(done.location)).toBe('/console/tasks?notice=endpointEnabled#endpoints')
    const [row] = await rig.database.sql`select disabled_at from webhook_endpoints where id = ${id}`
    expect(row).toEqual({ disabled_at: null })
    const [audited] = await rig.database.sql`
      select actor, outcome from audit_entries where object_id = ${id}`
    expect(audited).toEqual({ actor: people.operator.name, outcome: 'done' })
  })
})
