import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { recordFigures } from '../../src/health/figures.ts'
import { COMMIT, PACKAGE } from '../../src/version.ts'
import { seedDiscrepancy } from '../support/api.ts'
import { addVisitors } from '../support/console.ts'
import { openAs } from '../support/console-pages.ts'
import { emptyTables } from '../support/database.ts'
import { MERCHANT } from '../support/service.ts'
import { usePeople, useRig } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

const { merchantCode } = MERCHANT
const rig = useRig({ settings: { ROLE: 'web' } })
const people = usePeople(rig)
beforeEach(() => rig.database.sql`delete from minute_figures`)
afterEach(async () => {
  const { sql } = rig.database
  await emptyTables(rig.database)
  await sql`delete from minute_figures`
  await sql`delete from webhook_endpoints`
  await sql`delete from processes where role = 'worker'`
})

const page = (name: 'operator' | 'admin' = 'operator') =>
  openAs(rig, people[name], '/console/health')

/** The rows of the page's first table: state, what, now, what to do. */
async function readLines(): Promise<string[][]> {
  const { html } = await page()
  const [table = ''] = html.match(/<tbody>.*?<\/tbody>/s) ?? []
  return [...table.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = '']) =>
    [...row.matchAll(/<td[^>]*>(.*?)<\/td>/gs)].map(([, cell = '']) =>
      cell.replaceAll(/<[^>]+>/g, '').trim(),
    ),
  )
}

/** @param commit by default that of the process which shows the page, whose own row may not be written yet */
async function addWorker(commit: string | undefined = COMMIT) {
  await rig.database.sql`
    insert into processes (id, role, version, commit)
    values (gen_random_uuid(), 'worker', ${PACKAGE.version}, ${commit ?? null})`
}

const ageS = (seconds: number) => rig.database.sql`now() - ${seconds} * interval '1 second'`

describe('the health page', () => {
  it('says of everything that it is well', async () => {
    await addWorker()
    await rig.database.sql`
      insert into minute_figures (merchant_code, at, notifications, lag_ms, ipn_event_id, gateway_call_id)
      values (${merchantCode}, now(), 1, 0, 0, 0)`
    const lines = await readLines()
    expect(lines.map(([state, what]) => [state, what])).toEqual(
      [
        'Sending',
        'Processes',
        'Last notification',
        'Questions to the gateway',
        'Answers of the gateway',
        'Refunds',
        'Discrepancies',
        'Webhooks',
        'Accounts held',
      ].map((what) => ['Well', what]),
    )
  })

  it('puts what is wrong first, with what to do', async () => {
    const { sql } = rig.database
    await sql`
      insert into transactions (merchant_code, transaction_id, due_at) values (${merchantCode}, 'T-1', ${ageS(900)})`
    for (const kind of ['amount_mismatch', 'amount_rounded']) {
      await seedDiscrepancy(rig.database, kind)
    }
    await sql`
      insert into webhook_endpoints (key_chain_id, merchant_code, url, types, api_version, secret, cursor, failing_since,
        due_at)
      values (gen_random_uuid(), ${merchantCode}, 'https://shop.example/', '{payment.updated}', '', '', 0, now(), now())`
    await sql`
      insert into minute_figures (merchant_code, at, answered, unanswered, lag_ms, ipn_event_id, gateway_call_id)
      values (${merchantCode}, now(), 3, 2, 0, 0, 0)`
    const lines = await readLines()
    expect(lines.slice(0, 6)).toEqual([
      ['Act now', 'Processes', expect.stringMatching(/^No worker/), expect.stringMatching(/down/)],
      [
        ...['Act now', 'Questions to the gateway'],
        '1 transaction is due. The oldest has waited for 15 minutes.',
        'operations.md#when-transactions-are-not-queried',
      ],
      [
        ...['Act now', 'Discrepancies', '2 are open, 1 of them about money.'],
        'operations.md#when-the-sides-disagree',
      ],
      [
        'Look at it',
        'Last notification',
        'None for a day.',
        'operations.md#when-notifications-are-not-taken',
      ],
      [
        ...['Look at it', 'Answers of the gateway'],
        'In the last hour 3 were answered, and 2 were not.',
        'operations.md#when-the-gateway-does-not-answer',
      ],
      [
        'Look at it',
        'Webhooks',
        '1 endpoint fails or is disabled.',
        'operations.md#when-changes-do-not-arrive',
      ],
    ])
    expect(lines.slice(6).every(([state]) => state === 'Well')).toBe(true)
  })

  it('names headings that docs/operations.md has', async () => {
    const source = readFileSync(new URL('../../src/console/health.tsx', import.meta.url), 'utf8')
    const docs = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')
    const lines = source.split('\n').filter((line) => line.includes(' runbook: '))
    const named = lines.flatMap((line) => line.match(/(?<=')[a-z-]+(?=')/g) ?? [])
    const headings = [...docs.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading.toLowerCase().replaceAll(' ', '-'),
    )
    expect(named).toHaveLength(10)
    expect(headings).toEqual(expect.arrayContaining(named))
  })

  it('shows nothing of an account that is not the person’s', async () => {
    const { sql } = rig.database
    await sql`
      insert into merchant_accounts (merchant_code) values ('elsewhere') on conflict do nothing`
    await sql`
      insert into transactions (merchant_code, transaction_id, due_at) values ('elsewhere', 'T-1', ${ageS(900)})`
    await sql`
      insert into minute_figures (merchant_code, at, notifications, lag_ms, ipn_event_id, gateway_call_id)
      values ('elsewhere', now(), 7700077, 0, 0, 0)`
    const { html } = await page()
    expect(html).toContain('0 transactions are due.')
    expect(html).toContain('None for a day.')
    expect(html).not.toContain('7700077')
  })

  it('lists the processes that live, and that several versions run', async () => {
    await addWorker('aaaa')
    await addWorker('bbbb')
    const { text } = await page()
    expect(text).toMatch(/processes of several versions are running\./)
    expect(text).toMatch(/worker \S+ aaaa .*worker \S+ bbbb/)
  })
})

describe('the health page of an account whose calls are paused', () => {
  const breaker = { failures: 1, pauseMs: 1, maxPauseMs: 1, untestedMs: 5_000 }
  const pausing = useRig({ settings: { ROLE: 'web' }, breaker })
  const pauseCalls = (kind: 'refund' | 'cards') => {
    const { breakers } = pausing.service.ctx.gateway
    breakers.of(merchantCode, kind).tryAcquire()?.fail()
    return breakers
  }
  const openPage = async () => {
    const { operator } = await addVisitors(pausing.database)
    return (await openAs(pausing, operator, '/console/health')).html
  }

  it('says so while the next one waits', async () => {
    pauseCalls('refund')
    expect(await openPage()).toContain('Refunds of account UFLIYL are paused.')
  })

  it('says so no more once no call has tested the gateway for long', async () => {
    const breakers = pauseCalls('cards')
    expect(breakers.listPaused()).not.toEqual([])
    await waitUntil(() => breakers.listPaused().length === 0, { what: 'untested for long' })
    expect(await openPage()).not.toContain('are paused.')
  })
})

describe('the figures of a minute', () => {
  const read = async () =>
    await rig.database.sql`
      select notifications, answered, unanswered, lag_ms > 0 as late, refunds_open as open from minute_figures
      where merchant_code = ${merchantCode} order by at`

  it('count what is new since the figures before, once', async () => {
    const { sql } = rig.database
    const addRows = async (count: number) => {
      await sql`
        insert into ipn_events (merchant_code, text_hash, kind, transaction_id, verdict, body, address, deliveries)
        select ${merchantCode}, gen_random_uuid(), 'payment', 'T-1', 'verified', '', '', 1 from generate_series(1, ${count}::int)`
      await sql`
        insert into gateway_calls (merchant_code, transaction_id, command, body_hmac, body_key_id, sent_at, duration_ms, outcome)
        values (${merchantCode}, 'T-1', 'QUERY_PT', '', '', now(), 1, 'answered'),
          (${merchantCode}, 'T-1', 'QUERY_PT', '', '', now(), 1, 'unavailable')`
    }
    await addRows(3)
    expect(await recordFigures(rig.service.ctx)).toBeGreaterThan(0)
    expect(await recordFigures(rig.service.ctx)).toBe(0)
    await sql`update minute_figures set at = at - interval '1 minute'`
    await addRows(2)
    await sql`
      insert into transactions (merchant_code, transaction_id, due_at) values (${merchantCode}, 'T-2', ${ageS(5)})`
    await recordFigures(rig.service.ctx)
    const none = { notifications: 0, answered: 0, unanswered: 0, late: false, open: 0 }
    expect(await read()).toEqual([
      none,
      { ...none, notifications: 2, answered: 1, unanswered: 1, late: true },
    ])
  })

  it('are kept for a day', async () => {
    await rig.database.sql`
      insert into minute_figures (merchant_code, at, lag_ms, ipn_event_id, gateway_call_id)
      values (${merchantCode}, now() - interval '26 hours', 0, 0, 0)`
    await recordFigures(rig.service.ctx)
    expect(await read()).toHaveLength(1)
  })
})
