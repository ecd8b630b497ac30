import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { endPerson } from '../../../src/access/people.ts'
import type { Role } from '../../../src/access/types.ts'
import { decideRefund } from '../../../src/decisions/refunds.ts'
import { findRefund } from '../../../src/refunds/find.ts'
import { requestRefund } from '../../../src/refunds/request.ts'
import { findPersonAccess } from '../../support/access.ts'
import { withKey } from '../../support/api.ts'
import { addPrincipal, type TestKey } from '../../support/approvals.ts'
import { addVisitor, openTestSession, type Visitor } from '../../support/console.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundRig } from '../../support/use-started.ts'

const MERCHANTS = [MERCHANT.merchantCode]
const BOTH: Role[] = ['agent', 'approver', 'operator']

const rig = useRefundRig({ settings: { REFUND_APPROVAL_ABOVE: 'VND:1' } })

const readAccess = (token: string) => findPersonAccess(rig, token)

async function request(token: string): Promise<string> {
  const payment = await rig.pay()
  const none = { amount: undefined, receiver: undefined }
  const params = { ...none, paymentId: payment.id, reason: 'a test' }
  const { ctx } = rig.service
  const access = await readAccess(token)
  return (await requestRefund(ctx, access, MERCHANTS, randomUUID(), params)).refundId
}

async function approve(token: string, refundId: string): Promise<void> {
  const found = await findRefund(rig.service.ctx, MERCHANTS, refundId)
  await decideRefund(rig.service.ctx, found, { decision: 'approve' }, await readAccess(token))
}

const approveByKey = ({ key }: TestKey, refundId: string) =>
  fetch(`${rig.service.url}/v1/refunds/${refundId}/approval`, {
    method: 'POST',
    ...withKey(key, { 'content-type': 'application/json' }),
    body: '{}',
  })

const SAME = { code: 'same_person' }
const newPerson = (name = `Mai ${randomUUID()}`): Promise<Visitor> =>
  addVisitor(rig.database, { name, roles: BOTH })

it('nobody approves their own refund, in this session or in a second one', async () => {
  const person = await newPerson()
  const refundId = await request(person.token)
  expect((await rig.readRefund(refundId)).status).toBe('awaiting_approval')
  await expect(approve(person.token, refundId)).rejects.toMatchObject(SAME)
  const second = await openTestSession(rig.database, person.personId)
  await expect(approve(second, refundId)).rejects.toMatchObject(SAME)
})

it('nor with an API key that was created for them, nor with the one that replaced it', async () => {
  const person = await newPerson()
  const refundId = await request(person.token)
  const own = await addPrincipal(rig.database, { person: person.name.toUpperCase() })
  const rotated = await addPrincipal(rig.database, { person: person.name, rotates: own })
  for (const key of [own, rotated]) expect((await approveByKey(key, refundId)).status).toBe(403)
})

it('nor in the console what they requested with such a key', async () => {
  const person = await newPerson()
  const { key } = await addPrincipal(rig.database, { person: person.name })
  const payment = await rig.pay()
  const headers = { 'content-type': 'application/json', 'idempotency-key': randomUUID() }
  const response = await fetch(`${rig.service.url}/v1/payments/${payment.id}/refunds`, {
    ...{ method: 'POST', body: '{}' },
    ...withKey(key, headers),
  })
  const { id } = z.object({ id: z.uuid() }).parse(await response.json())
  await expect(approve(person.token, id)).rejects.toMatchObject(SAME)
})

it('nor as a new person of the same name, after the first one was ended', async () => {
  const person = await newPerson()
  const refundId = await request(person.token)
  await endPerson(rig.database.sql, person.personId)
  const again = await newPerson(person.name)
  await expect(approve(again.token, refundId)).rejects.toMatchObject(SAME)
})

it('a second person approves once: a replay of the approval is refused, and the money moves once', async () => {
  const [person, approver] = [await newPerson(), await newPerson()]
  const refundId = await request(person.token)
  await approve(approver.token, refundId)
  await expect(approve(approver.token, refundId)).rejects.toMatchObject({
    code: 'not_awaiting_approval',
    message: expect.stringContaining(`approved by ${approver.name}`),
  })
  const ended = await rig.untilEnded(refundId)
  expect(ended).toMatchObject({ status: 'succeeded', requestedBy: person.name })
  expect(ended.approval).toMatchObject({ by: approver.name })
  expect(await rig.moved(ended.paymentId)).toEqual(['100'])
})

it('the people stand in the timeline and the audit log, not their keys', async () => {
  const [person, approver] = [await newPerson(), await newPerson()]
  const refundId = await request(person.token)
  await approve(approver.token, refundId)
  const causes = await rig.database.sql<{ cause: string }[]>`
    select cause from changes where refund_id = ${refundId} and after in ('awaiting_approval', 'pending') order by id`
  expect(causes.map(({ cause }) => cause)).toEqual([
    `requested by ${person.name}: a test`,
    `approved by ${approver.name}`,
  ])
  const actors = await rig.database.sql<{ actor: string }[]>`
    select actor from audit_entries where object_id = ${refundId} order by id`
  expect(actors.map(({ actor }) => actor)).toEqual([person.name, approver.name])
})

it('a person whose access ends at the moment of the decision decides nothing', async () => {
  const [person, approver] = [await newPerson(), await newPerson()]
  const refundId = await request(person.token)
  await whileUncommitted(
    rig.database,
    (held) => endPerson(held, approver.personId),
    async (commit) => {
      const deciding = approve(approver.token, refundId)
      deciding.catch(() => {})
      await waitUntilBlocked(rig.database)
      await commit()
      await expect(deciding).rejects.toMatchObject({ code: 'unauthenticated' })
    },
  )
  expect((await rig.readRefund(refundId)).status).toBe('awaiting_approval')
})
