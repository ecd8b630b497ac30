import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { endPerson } from '../../../src/access/people.ts'
import type { Role } from '../../../src/access/types.ts'
import { decideRefund } from '../../../src/decisions/refunds.ts'
import { findRefund } from '../../../src/refunds/find.ts'
import { requestRefund } from '../../../src/refunds/request.ts'
import { findPersonAccess } from '../../support/access.ts'
import { addVisitor } from '../../support/console.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundRig } from '../../support/use-started.ts'

const MERCHANTS = [MERCHANT.merchantCode]
const roles: Role[] = ['agent', 'approver']

const rig = useRefundRig({ settings: { REFUND_APPROVAL_ABOVE: 'VND:1' } })

it('a person whose access ends at the moment of the decision decides nothing', async () => {
  const { ctx } = rig.service
  const [person, approver] = [
    await addVisitor(rig.database, { roles }),
    await addVisitor(rig.database, { roles }),
  ]
  const { id: paymentId } = await rig.pay()
  const params = { amount: undefined, receiver: undefined, paymentId, reason: 'a test' }
  const asker = await findPersonAccess(rig, person.token)
  const { refundId } = await requestRefund(ctx, asker, MERCHANTS, randomUUID(), params)
  const found = await findRefund(ctx, MERCHANTS, refundId)
  const access = await findPersonAccess(rig, approver.token)
  await whileUncommitted(
    rig.database,
    (held) => endPerson(held, approver.personId),
    async (commit) => {
      const deciding = decideRefund(ctx, found, { decision: 'approve' }, access)
      deciding.catch(() => {})
      await waitUntilBlocked(rig.database)
      await commit()
      await expect(deciding).rejects.toMatchObject({ code: 'unauthenticated' })
    },
  )
  expect((await rig.readRefund(refundId)).status).toBe('awaiting_approval')
})
