import { expect } from 'vitest'
import { sayStored } from '../../src/console/texts/sentences.ts'
import type { TestDatabase } from './database.ts'

/** Words of our sentences that stand in no Vietnamese one. */
const ENGLISH = /\b(the|was|of|and|which|refund|payment|amount|sent)\b/

/** What people and the gateway wrote follows these. */
const QUOTES = /\b(by|with|code) [^:]+: /

/** Requires that every sentence that is stored has a Vietnamese one: the table of them follows the code. */
export async function expectSaidInVietnamese({ sql }: TestDatabase): Promise<void> {
  const rows = await sql<{ text: string }[]>`
    select cause as text from changes where cause <> 'query'
    union select ours from discrepancies
    union select theirs from discrepancies where kind not in ('payment_unreadable', 'refund_rule_missing')`
  const left = rows.filter(({ text }) => {
    const said = sayStored('vi', text)
    return said === text || (!QUOTES.test(text) && ENGLISH.test(said))
  })
  expect(left).toEqual([])
}
