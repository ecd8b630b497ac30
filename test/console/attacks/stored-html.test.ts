import { beforeAll, expect, it } from 'vitest'
import { addVisitor, openTestSession, visitAs } from '../../support/console.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundRig } from '../../support/use-started.ts'
import { type ListedPage, listPages } from '../pages/list-pages.ts'
import { playSample } from '../pages/play-sample.ts'

const rig = useRefundRig({
  settings: { REFUND_APPROVAL_ABOVE: 'VND:5000000', REFUND_CONFIRM_FAILED_MS: '100' },
})

/** Breaks out of a text, of an attribute in either kind of quotes, and of a script. */
const HTML = `</script></textarea>'"><img src=x onerror=alert(1)>`

/** The texts that others write, each marked: order systems, the gateway, people, browsers. */
const mark = (name: string) => `${name}${HTML}`

let pages: ListedPage[] = []

beforeAll(async () => {
  const sample = await playSample(rig)
  pages = listPages(sample, MERCHANT.merchantCode)
  const { sql } = rig.database
  await sql`
    update transactions set due_at = null, lease_id = null, order_id = ${mark('order')},
      merchant_txn_id = ${mark('merchantTxn')}, last_error = ${mark('lastError')}`
  await sql`
    update refunds set reason = ${mark('reason')}, requested_by = ${mark('requestedBy')},
      on_behalf_of = ${mark('onBehalfOf')}, folded_on_behalf_of = '', metadata = ${JSON.stringify({ [mark('key')]: mark('value') })}::text::jsonb,
      failure_message = case when failure_message is null then null else ${mark('failure')} end`
  await sql`update merchant_accounts set refund_reasons = ${[mark('listed')]}`
  await sql`update gateway_calls set message = ${mark('message')}`
  await sql`update refund_attempts set message = ${mark('attempt')}`
  await sql`update changes set cause = ${mark('cause')}, before = ${mark('before')}, after = ${mark('after')}`
  await sql`update ipn_events set body = ${JSON.stringify({ svc_Message: mark('ipn') })}`
  await sql`update discrepancies set ours = ${mark('ours')}, theirs = ${mark('theirs')}, assignee = ${mark('assignee')},
    notes = ${JSON.stringify([{ at: '2026-01-01T00:00:00.000Z', by: mark('noteBy'), text: mark('note') }])}::text::jsonb`
  await sql`
    update payments set hold = ${JSON.stringify({ reason: mark('hold'), by: mark('holdBy'), since: '2026-01-01T00:00:00.000Z' })}::text::jsonb`
})

it('every page shows what others wrote as text', async () => {
  const admin = await addVisitor(rig.database, {
    ...{ name: mark('name'), email: `"${'<img src=x>'}"@shop.example` },
    roles: ['admin'],
  })
  await openTestSession(rig.database, admin.personId)
  await rig.database.sql`update sessions set user_agent = ${mark('agent')}`
  const shown = new Set<string>()
  for (const { name, path } of pages) {
    const text = await (await visitAs(rig, admin, path)).text()
    expect([name, /<img|onerror=alert\(1\)>/.exec(text)?.[0]]).toEqual([name, undefined])
    expect([name, (text.match(/<\/script>/g) ?? []).length]).toEqual([name, 1])
    for (const [, marked = ''] of text.matchAll(/(\w+)&lt;\/script&gt;/g)) shown.add(marked)
  }
  // What was typed into the search comes back on the page.
  const typed = await visitAs(rig, admin, `/console?q=${encodeURIComponent(mark('typed'))}`)
  expect(await typed.text()).not.toContain('<img')
  const all = [
    'order',
    'reason',
    'listed',
    'message',
    'attempt',
    'cause',
    'name',
    'agent',
    'ours',
    'ipn',
  ]
  expect([...shown]).toEqual(expect.arrayContaining(all))
})
