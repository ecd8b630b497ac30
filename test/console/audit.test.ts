import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { showTo } from '../../src/console/view.ts'
import { nameOperation } from '../../src/console/words.ts'
import { ROUTES } from '../api/routes.ts'
import { OTHER, seedPayment, seedTransaction, TWO_ACCOUNTS } from '../support/api.ts'
import { addVisitor, submitAs, type Visitor, visitAs } from '../support/console.ts'
import { readText } from '../support/read-html.ts'
import { MERCHANT } from '../support/service.ts'
import { useRig } from '../support/use-started.ts'
import { CONSOLE_ROUTES } from './console-routes.ts'

const { merchantCode } = MERCHANT
const rig = useRig({ settings: { ROLE: 'web', ...TWO_ACCOUNTS } })
let admin: Visitor
let operator: Visitor
beforeAll(async () => {
  admin = await addVisitor(rig.database, { roles: ['admin'] })
  operator = await addVisitor(rig.database, { roles: ['operator'], merchants: [merchantCode] })
  for (const [account, id] of [
    [merchantCode, 'P-OURS'],
    [OTHER.merchantCode, 'P-THEIRS'],
  ] as const) {
    const key = { merchantCode: account, transactionId: `T-${id}` }
    await seedTransaction(rig.database, key)
    await seedPayment(rig.database, { ...key, paymentId: id })
    await submitAs(rig, admin, `/console/payments/${account}/${id}/hold`, {
      ...{ held: 'true', reason: 'stop' },
    })
  }
  await submitAs(rig, admin, '/console/people', {
    ...{ name: 'Mai', 'role-viewer': 'on', 'merchant-*': 'on' },
  })
  // As the command line records it of a key with all accounts.
  await rig.database.sql`
    insert into audit_entries (actor, operation, merchant_code, object_id, outcome)
    values ('root', 'keys create', '*', 'K-OF-ALL', 'done')`
  const viewer = await addVisitor(rig.database, { merchants: [merchantCode] })
  await submitAs(rig, viewer, `/console/payments/${merchantCode}/P-OURS/hold`, { reason: 'x' })
})

async function read(who: Visitor, query = ''): Promise<string> {
  const html = await (await visitAs(rig, who, `/console/audit${query}`)).text()
  return readText(html.replace(/<form.*?<\/form>/gs, ''))
}

describe('the audit log', () => {
  it('says in words who did what, and what was refused', async () => {
    const text = await read(admin)
    expect(text).toContain(`${admin.name} Held P-OURS Done ${merchantCode}`)
    expect(text).toMatch(/Held it, or released the hold P-OURS Refused: scope_missing/)
    expect(text).toContain(`${admin.name} Added a person`)
    expect(text).toContain('K-OF-ALL')
  })

  it('has words for every write by a route', () => {
    const writes = [...Object.keys(ROUTES), ...Object.keys(CONSOLE_ROUTES)]
      .filter((route) => /^(?!GET )\w+ \/(v1|console)\//.test(route))
      .map((route) => route.replaceAll(/:(\w+)/g, '{$1}'))
    expect(writes.length).toBeGreaterThan(40)
    const unnamed = showTo({ language: 'en', zone: 'UTC' }, () =>
      writes.filter((operation) => nameOperation(operation) === operation),
    )
    expect(unnamed).toEqual([])
  })

  it('shows nothing of other accounts, and what belongs to none only to who covers all', async () => {
    const text = await read(operator)
    expect(text).toContain('P-OURS')
    for (const hidden of ['P-THEIRS', 'Added a person', 'K-OF-ALL', 'Refused']) {
      expect(text).not.toContain(hidden)
    }
    const ofAccount = await read(admin, `?account=${OTHER.merchantCode}`)
    expect(ofAccount).toContain('P-THEIRS')
    expect(ofAccount).not.toContain('Added a person')
    expect(ofAccount).not.toContain('K-OF-ALL')
  })

  it.each([
    [
      (): string => `?actor=${encodeURIComponent(admin.name.toUpperCase())}`,
      'P-OURS',
      'scope_missing',
    ],
    [() => '?objectId=P-THEIRS', 'P-THEIRS', 'P-OURS'],
    [() => '?outcome=refused', 'Refused:', 'Added a person'],
    [() => '?to=2026-01-01', 'Nothing fits', 'P-OURS'],
  ])('is filtered by %s', async (query, shown, hidden) => {
    const text = await read(admin, query())
    expect(text).toContain(shown)
    expect(text).not.toContain(hidden)
  })

  /** Entries of one test would fill the pages of the others. */
  const deleteAfterwards = () =>
    onTestFinished(async () => {
      await rig.database.sql`delete from audit_entries where operation = 'test'`
    })

  it('says nothing of the account of the entry where a page ends', async () => {
    deleteAfterwards()
    await rig.database.sql`
      insert into audit_entries (at, actor, operation, merchant_code, object_id, outcome)
      select now() - i * interval '1 day', 'Mai', 'test', ${OTHER.merchantCode}, i, 'done'
      from generate_series(1, 5000) as i`
    const page = await (await visitAs(rig, operator, '/console/audit')).text()
    const [, position = ''] = /cursor=\d+\.([\w-]+)/.exec(page) ?? []
    expect(Buffer.from(position, 'base64url').toString()).toMatch(/^\[".+","\d+",""\]$/)
  })

  it('goes on behind the rows that were looked through, and is downloaded whole', async () => {
    deleteAfterwards()
    await rig.database.sql`
      insert into audit_entries (at, actor, operation, merchant_code, object_id, outcome)
      select now() - i * interval '1 s', case i % 100 when 0 then 'Binh' else 'Mai' end, 'test', ${merchantCode}, i, 'done'
      from generate_series(1, 6000) as i`
    const page = await (await visitAs(rig, admin, '/console/audit?actor=Binh')).text()
    expect(readText(page)).toContain('2500')
    const csv = await (await visitAs(rig, admin, '/console/audit?actor=Binh&format=csv')).text()
    const ids = csv.split('\r\n').flatMap((line) => /,test,(\d+),/.exec(line)?.[1] ?? [])
    expect(ids).toEqual(Array.from({ length: 60 }, (_, n) => String((n + 1) * 100)))
  })
})
