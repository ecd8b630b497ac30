import { type DestinationStream, pino } from 'pino'
import { z } from 'zod'
import type { Log } from '../../src/platform/telemetry/log.ts'
import { claimDue } from '../../src/sync/claim-due.ts'
import { commitAnswer } from '../../src/sync/commit.ts'
import { syncDue } from '../../src/sync/sync-due.ts'
import type { Claim, SyncContext } from '../../src/sync/types.ts'
import { MERCHANT, postIpn, type Rig, signIpn } from './service.ts'
import { waitUntil } from './wait-until.ts'

type Given = { id?: string; amount?: string; status?: string; paymentMethod?: string }

/** Creates a transaction at the gateway without a notification; by default with one successful payment. */
export async function makeTransaction(
  rig: Rig,
  transactionId: string,
  payments: readonly Given[] = [{}],
  merchantCode: string = MERCHANT.merchantCode,
): Promise<void> {
  const list = payments.map((one) => ({
    amount: '10',
    paymentMethod: 'CC',
    status: 'SUCCESS',
    ...one,
  }))
  const created = { transactionId, merchantCode, payments: list, ipn: false }
  await rig.control('POST', '/transactions', created)
}

/** Sends the gateway's notification and checks that it is acknowledged. `more` changes its bytes. */
export async function notifyOf(rig: Rig, transactionId: string, more = {}): Promise<void> {
  const { status } = await postIpn(
    rig.service.url,
    signIpn({ svc_TransactionID: transactionId, ...more }),
  )
  if (status !== 200) throw new Error(`the notification was answered with ${status}`)
}

/** Reads the work item of a transaction; times in ms from the database's now. */
export async function readItem({ database }: Rig, transactionId: string) {
  const [row] = await database.sql<
    {
      state: string
      version: number
      attempts: number
      polls: number
      lastError: string | null
      leased: boolean
      abandoned: boolean
      gapMs: number
      dueInMs: number | null
      dueAfterQueryMs: number | null
      asOf: string | null
      updatedAt: string
    }[]
  >`
    select state, version, attempts, polls, last_error as "lastError", lease_id is not null as leased,
      abandoned_at is not null as abandoned, gap_ms as "gapMs",
      (extract(epoch from due_at - now()) * 1000)::float8 as "dueInMs",
      (extract(epoch from due_at - queried_at) * 1000)::float8 as "dueAfterQueryMs",
      as_of::text as "asOf", updated_at::text as "updatedAt"
    from transactions where transaction_id = ${transactionId}`
  if (!row) throw new Error(`no transaction ${transactionId}`)
  return row
}

/** Makes a transaction due now: ends its schedule, backoff and lease. */
export async function makeDueNow({ database }: Rig, transactionId: string): Promise<void> {
  await database.sql`
    update transactions set due_at = now() - interval '1 s' where transaction_id = ${transactionId}`
}

/**
 * Queries the gateway once more about a transaction that is scheduled for later. A notification that is being stored, such
 * as that of a refund that was just settled, holds its row: it is claimed after that.
 */
export async function syncAgain(
  rig: Rig,
  transactionId: string,
  ctx: SyncContext = rig.service.ctx,
): Promise<void> {
  await makeDueNow(rig, transactionId)
  const what = `${transactionId} alone is claimed`
  await waitUntil(async () => (await syncDue(ctx)) === 1, { what })
}

/** Claims the one transaction that is due. */
export async function claimOne(ctx: SyncContext): Promise<Claim> {
  const [claim, ...others] = await claimDue(ctx, 10)
  if (!claim || others.length > 0) throw new Error('not exactly one transaction is due')
  return claim
}

/** Queries the gateway for a claim and commits the answer, as a round does. */
export async function commitClaim(ctx: SyncContext, claim: Claim) {
  const sentAfterMs = performance.now() - claim.knownAt
  const call = await ctx.gateway.queryPayments(claim)
  return commitAnswer(ctx, { claim, call, sentAfterMs })
}

const Calls = z.object({
  data: z.array(z.object({ transactionId: z.string().nullable(), outcome: z.string() })),
})

/** Counts the queries about a transaction that reached the gateway. */
export async function countQueries(rig: Rig, transactionId: string): Promise<number> {
  const { data } = Calls.parse(await rig.control('GET', '/calls?command=QUERY_PT'))
  return data.filter((call) => call.transactionId === transactionId).length
}

export async function waitForQueries(rig: Rig, transactionId: string, n: number): Promise<void> {
  const arrived = async () => (await countQueries(rig, transactionId)) >= n
  await waitUntil(arrived, { what: `${n} queries about ${transactionId}` })
}

/** Inserts a due transaction of the test's merchant about which nothing is known. */
export async function registerDue({ database }: Rig, transactionId: string): Promise<void> {
  await database.sql`
    insert into transactions (merchant_code, transaction_id, due_at)
    values (${MERCHANT.merchantCode}, ${transactionId}, now())`
}

const Line = z.looseObject({ level: z.number(), msg: z.string() })

export type KeptLog = {
  log: Log
  errors(): z.infer<typeof Line>[]
  /** The lines, of whatever level, whose message contains the text. */
  saying(text: string): z.infer<typeof Line>[]
  text(): string
}

/** Creates a log whose lines the test can read. */
export function keepLog(): KeptLog {
  const lines: z.infer<typeof Line>[] = []
  const stream: DestinationStream = { write: (line) => lines.push(Line.parse(JSON.parse(line))) }
  return {
    log: pino({ level: 'debug' }, stream),
    errors: () => lines.filter(({ level }) => level >= 50),
    saying: (text) => lines.filter(({ msg }) => msg.includes(text)),
    text: () => JSON.stringify(lines),
  }
}
