import { beforeAll, describe, expect, it } from 'vitest'
import { seedPaid } from '../support/ask.ts'
import { addVisitor, type Visitor, visitAs } from '../support/console.ts'
import { openAs } from '../support/console-pages.ts'
import { useRefundRig } from '../support/use-started.ts'

const rig = useRefundRig({ settings: { ROLE: 'web' } })
let berlin: Visitor
beforeAll(async () => {
  berlin = await addVisitor(rig.database, { roles: ['admin'] })
  await rig.database
    .sql`update actors set time_zone = 'Europe/Berlin' where id = ${berlin.personId}`
  await seedPaid(rig.database)
})

/** The offset that a column states, and the clock that it shows. */
const read = (text: string) => ({
  offset: /\(GMT\+(\d)\)/.exec(text)?.[1],
  clock: /2026-\d\d-\d\d (\d\d):00:00/.exec(text)?.[1],
})

describe('times of a zone with two offsets', () => {
  it.each([
    ['2026-01-01T10:00:00Z', '1'],
    ['2026-07-01T10:00:00Z', '2'],
  ])('are not said to have another one than they are written in: %s', async (at, offset) => {
    await rig.database.sql`update payments set first_seen_at = ${at}`
    const page = await openAs(rig, berlin, '/console/payments')
    const file = await (await visitAs(rig, berlin, '/console/payments?format=csv')).text()
    for (const text of [page.text, file]) {
      const shown = read(text)
      expect(shown.clock).toBe(String(10 + Number(offset)))
      if (shown.offset !== undefined) expect(shown.offset).toBe(offset)
    }
  })
})
