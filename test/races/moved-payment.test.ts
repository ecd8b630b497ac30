import { expect, it } from 'vitest'
import { ask, expectRefused, expectTaken, seedPaid } from '../support/ask.ts'
import {
  commitOnceBlocked,
  expectUnblocked,
  waitUntilBlocked,
  whileUncommitted,
} from '../support/locks.ts'
import { MERCHANT } from '../support/service.ts'
import { useRig } from '../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

it('a payment that moves to another transaction during the request is not refunded without its lock', async () => {
  const { id, transactionId } = await seedPaid(rig.database, { amount: '100' })
  const response = await commitOnceBlocked(
    rig.database,
    async (held) => {
      await held`
        insert into transactions (merchant_code, transaction_id)
        values (${MERCHANT.merchantCode}, 'T-OTHER')`
      await held`select from transactions where transaction_id = ${transactionId} for update`
      await held`update payments set transaction_id = 'T-OTHER' where payment_id = ${id}`
    },
    () => ask(rig.service, id, { amount: '10' }),
  )
  await expectRefused(response, 503, 'unavailable')
  expect(await rig.database.sql`select from refunds`).toHaveLength(0)
  await expectTaken(await ask(rig.service, id, { amount: '100' }))
})

it('a payment that moves during the request does not make it wait for the transaction it moves to', async () => {
  const { id, transactionId } = await seedPaid(rig.database, { amount: '100' })
  const to = await seedPaid(rig.database)
  await whileUncommitted(
    rig.database,
    async (held) => {
      await held`select from transactions where transaction_id = ${transactionId} for update`
      await held`update payments set transaction_id = ${to.transactionId} where payment_id = ${id}`
    },
    async (commit) => {
      const asked = ask(rig.service, id, { amount: '10' })
      await waitUntilBlocked(rig.database)
      const response = await whileUncommitted(
        rig.database,
        (held) => held`
          select from transactions where transaction_id = ${to.transactionId} for no key update`,
        async () => {
          await commit()
          return await expectUnblocked(rig.database, asked)
        },
      )
      expect(response.status).toBe(503)
    },
  )
})
