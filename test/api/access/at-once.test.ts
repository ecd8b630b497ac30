import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { rotateKey } from '../../../src/access/key-changes.ts'
import { endPerson } from '../../../src/access/people.ts'
import { decideRefund } from '../../../src/decisions/refunds.ts'
import { recordEvents } from '../../../src/events/record-events.ts'
import { publishEvents } from '../../../src/feed/publish-events.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import type { Sql } from '../../../src/platform/postgres/types.ts'
import { findRefund } from '../../../src/refunds/find.ts'
import { findPersonAccess } from '../../support/access.ts'
import { expectProblem, withKey } from '../../support/api.ts'
import { ask, expectTaken, seedPaid } from '../../support/ask.ts'
import { addVisitor, type Visitor } from '../../support/console.ts'
import { EVENT_DATA } from '../../support/event-data.ts'
import { openEventStream } from '../../support/feed.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { addKey, MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const rig = useRig({ settings: { ROLE: 'web', REFUND_APPROVAL_ABOVE: 'VND:1' } })

async function makeKey(scope: string, merchantCode?: string): Promise<string> {
  const key = `key-that-loses-${randomUUID()}`
  await addKey(rig.database, key, [scope], merchantCode)
  return key
}

/** Requests a refund with a key, and changes the key while the request waits for the transaction. */
async function requestWhile(
  change: (key: string) => Promise<unknown>,
  merchantCode?: string,
): Promise<Response> {
  const key = await makeKey('refunds:write', merchantCode)
  const { id, transactionId } = await seedPaid(rig.database)
  return await whileUncommitted(
    rig.database,
    (held) => held`
      select from transactions where transaction_id = ${transactionId} for update`,
    async (commit) => {
      const asked = ask({ url: rig.service.url, key }, id, { amount: '1' })
      await waitUntilBlocked(rig.database)
      await change(key)
      await commit()
      return await asked
    },
  )
}

const update = (key: string, column: string, value: unknown) => rig.database.sql`
  update actors set ${rig.database.sql({ [column]: value })} where hash = sha256(${key}::bytea)`

it('a refund request that waits for a lock is taken when nothing changes', async () => {
  expect((await requestWhile(async () => {})).status).toBe(202)
})

it.each([
  ['is revoked', 'ended_at', '2026-01-01', 401, 'unauthenticated'],
  ['loses the scope', 'scopes', ['refunds:read'], 403, 'scope_missing'],
  [
    'has no more than the accounts of today',
    'merchants',
    [MERCHANT.merchantCode],
    403,
    'scope_missing',
  ],
  ['is bound to other networks', 'networks', ['192.0.2.0/24'], 403, 'network_not_allowed'],
] as const)(
  'a refund request that waits for a lock is refused when its key %s',
  async (_, column, value, status, code) => {
    await expectProblem(await requestWhile((key) => update(key, column, value)), status, code)
  },
)

it('a refund request that waits for a lock is refused when its key of one account loses it', async () => {
  const refused = await requestWhile(
    (key) => update(key, 'merchants', ['OTHER']),
    MERCHANT.merchantCode,
  )
  await expectProblem(refused, 403, 'scope_missing')
})

it('a refund request that waits for a lock is refused when its key is rotated without grace', async () => {
  const refused = await requestWhile(async (key) => {
    const [row] = await rig.database.sql<{ id: string }[]>`
      select id from actors where hash = sha256(${key}::bytea)`
    await runInTransaction(rig.database.sql, (tx) => rotateKey(tx, row?.id ?? '', 0))
  })
  await expectProblem(refused, 401, 'unauthenticated')
})

const takeRole = ({ personId }: Visitor) => rig.database.sql`
  update actors set roles = '{viewer}' where id = ${personId}`
const endSession = ({ token }: Visitor) => rig.database.sql`
  update sessions set ended_at = now() where token_hash = sha256(${token}::bytea)`

/** A refund that waits for an approval, and a person who may give it. */
async function prepareApproval() {
  const { database, service } = rig
  const { ctx, url } = service
  const merchants = [MERCHANT.merchantCode]
  const approver = await addVisitor(database, { roles: ['approver'] })
  const { id: paymentId, transactionId } = await seedPaid(database)
  const { id } = await expectTaken(await ask({ url }, paymentId, { amount: '1' }))
  const found = await findRefund(ctx, merchants, id)
  const access = await findPersonAccess(rig, approver.token)
  // As the route asks for it.
  access.required.add('refunds:approve')
  return {
    ...{ approver, transactionId },
    approve: () => decideRefund(ctx, found, { decision: 'approve' }, access),
    readStatus: async () => (await findRefund(ctx, merchants, id)).refund.status,
  }
}

/** Requires that an approval, which begins to wait for what `hold` has locked, is refused after `change` and its commit. */
async function expectApprovalRefused(
  { approve, readStatus }: Awaited<ReturnType<typeof prepareApproval>>,
  hold: (held: Sql) => Promise<unknown>,
  change: () => PromiseLike<unknown>,
  code: string,
): Promise<void> {
  await whileUncommitted(rig.database, hold, async (commit) => {
    const deciding = approve()
    deciding.catch(() => {})
    await waitUntilBlocked(rig.database)
    await change()
    await commit()
    await expect(deciding).rejects.toMatchObject({ code })
  })
  expect(await readStatus()).toBe('awaiting_approval')
}

it.each([
  ['its role is taken away', takeRole, 'scope_missing'],
  ['its session is ended', endSession, 'unauthenticated'],
] as const)('an approval that waits for a lock is refused when %s', async (_, change, code) => {
  const given = await prepareApproval()
  const hold = (held: Sql) => held`
    select from transactions where transaction_id = ${given.transactionId} for update`
  await expectApprovalRefused(given, hold, () => change(given.approver), code)
})

it('an approval waits for the end of the access that is being committed, and is refused', async () => {
  const given = await prepareApproval()
  const hold = (held: Sql) => endPerson(held, given.approver.personId)
  await expectApprovalRefused(given, hold, async () => {}, 'unauthenticated')
})

/** Publishes an event. @returns the transaction that it is about */
async function publish(): Promise<string> {
  const { merchantCode } = MERCHANT
  const transactionId = randomUUID()
  const event = { type: 'payment.updated', merchantCode, transactionId } as const
  await runInTransaction(rig.database.sql, (tx) =>
    recordEvents(tx, [{ ...event, data: EVENT_DATA['payment.updated'] }]),
  )
  await publishEvents(rig.service.ctx.db.sql)
  return transactionId
}

it('a long poll is refused when its key is revoked', async () => {
  const key = await makeKey('payments:read')
  await publish()
  const init = withKey(key)
  const page = await fetch(`${rig.service.url}/v1/events?limit=200`, init)
  const { nextCursor } = z.object({ nextCursor: z.string() }).parse(await page.json())
  const waiting = fetch(`${rig.service.url}/v1/events?wait=60&after=${nextCursor}`, init)
  const { feedWaiters } = rig.service.ctx
  await waitUntil(() => feedWaiters.count() === 1, { what: 'a request that waits' })
  await update(key, 'ended_at', '2026-01-01')
  await publish()
  await expectProblem(await waiting, 401, 'unauthenticated')
})

it('a stream sends no event once its key has lost the scope', async () => {
  const key = await makeKey('payments:read')
  const stream = await openEventStream(rig, '', withKey(key).headers)
  try {
    const { feedWaiters } = rig.service.ctx
    await waitUntil(() => feedWaiters.count() === 1, { what: 'a stream that waits' })
    await update(key, 'scopes', ['refunds:read'])
    const transactionId = await publish()
    let hasEnded = false
    void stream.ended.then(() => {
      hasEnded = true
    })
    const isSent = () => JSON.stringify(stream.messages).includes(transactionId)
    await waitUntil(() => hasEnded || isSent(), { what: 'the end of the stream, or the event' })
    expect(isSent()).toBe(false)
  } finally {
    stream.leave()
  }
})
