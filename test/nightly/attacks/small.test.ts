import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { ask, seedPaid } from '../../support/ask.ts'
import { addKey } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const WRITER = 'key-that-writes-refunds-only-0123456789-01'
const Refusal = z.object({ code: z.string() })
const REFUNDS = 2_000
const AT_ONCE = 50

const rig = useRig({ settings: { ROLE: 'web' } })
beforeAll(() => addKey(rig.database, WRITER, ['refunds:write']))

/** Asks for many refunds of one payment, and counts the answers by status. */
async function askForMany(id: string, amount: string): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {}
  for (let asked = 0; asked < REFUNDS; asked += AT_ONCE) {
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, () =>
        ask({ url: rig.service.url, key: WRITER }, id, { amount }),
      ),
    )
    for (const answer of answers) {
      const code = answer.status === 202 ? 'accepted' : Refusal.parse(await answer.json()).code
      statuses[code] = (statuses[code] ?? 0) + 1
    }
  }
  return statuses
}

const countOpen = async (id: string) => {
  const [row] = await rig.database.sql<{ count: number }[]>`
    select count(*) from refunds where payment_id = ${id}`
  return row?.count
}

it('2,000 refunds of 0.0001 of one payment: none is stored', async () => {
  const { id, transactionId } = await seedPaid(rig.database)
  await rig.database.sql`
    update transactions set currency = null where transaction_id = ${transactionId}`
  expect(await askForMany(id, '0.0001')).toEqual({ invalid_request: REFUNDS })
  expect(await countOpen(id)).toBe(0)
})

it('2,000 refunds of 0.01 of one payment: a hundred are stored, and all the others refused', async () => {
  const { id } = await seedPaid(rig.database)
  expect(await askForMany(id, '0.01')).toEqual({
    accepted: 100,
    too_many_open_refunds: REFUNDS - 100,
  })
  expect(await countOpen(id)).toBe(100)
})
