import { z } from 'zod'
import { MERCHANT } from '../../support/service.ts'
import { audit, type Finding } from '../audit/audit.ts'
import { readEvent } from '../audit/events.ts'
import { type Ledgers, nameIn } from '../audit/ledgers.ts'
import { readStored } from '../audit/read-stored.ts'
import { nameRefund, nameTransaction } from '../chaos/read-shown.ts'
import type { Case } from './plays.ts'
import type { Stage } from './stage.ts'

const { merchantCode } = MERCHANT
const named = (id: string) => nameIn(merchantCode, id)

/** Settles everything that the gateway has accepted under the refund's request id: its money moves. */
export async function settleAtGateway({ lab, gateway }: Stage, { refundId }: Case): Promise<void> {
  const calls = await gateway.readJournal('REFUND')
  const accepted = calls.filter((one) => one.requestId === refundId && one.workCode === 0)
  const moved = await gateway.readLedger()
  const settled = moved.filter(({ requestId }) => requestId === named(refundId))
  for (const _ of accepted.slice(settled.length)) await lab.settle(refundId)
}

/**
 * Judges what both sides hold about a refund. Then decides one in `needs_review`, or confirms one that was inferred, as a
 * person would, and judges that.
 * @param runRound queries the transaction once
 */
export async function judge(
  stage: Stage,
  one: Case,
  runRound: () => Promise<void>,
): Promise<{ moved: number; findings: Finding[] }> {
  const ledgers = await readLedgers(stage, one)
  const [own] = ledgers.stored.refunds
  const findings = audit(ledgers)
  const moved = ledgers.moved.movements.length
  if (own?.status === 'needs_review' || own?.inferred) {
    const outcome = own.inferred ? 'succeeded' : 'failed'
    await stage.lab.api(`/v1/refunds/${one.refundId}/resolution`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ outcome, reason: 'looked it up in the ledger' }),
    })
    if (outcome === 'succeeded') await runRound()
  }
  findings.push(...audit({ ...(await readLedgers(stage, one)), phase: 'settled' }))
  return { moved, findings }
}

/** What was requested has been answered with 202 by then. No process works: what is leased is stuck. */
async function readLedgers(stage: Stage, one: Case): Promise<Ledgers> {
  const { lab, gateway, dedupes } = stage
  const { transactionId, id } = one.payment
  const { sql } = lab.database
  const stored = await readStored(sql, { merchantCode, transactionId }, true)
  const asked = {
    ...{ refundId: named(one.refundId), key: named(one.key) },
    ...{ paymentId: named(id), amount: one.amount },
  }
  const movements = (await gateway.readLedger()).filter(({ paymentId }) => paymentId === named(id))
  const calls = await gateway.readJournal('REFUND')
  const times = calls.filter(({ requestId }) => requestId === one.refundId).length
  const read = async (path: string): Promise<unknown> => await (await lab.api(path)).json()
  const refunds = Page.parse(await read(`/v1/refunds?transactionId=${transactionId}`)).data
  const events = await sql<{ id: string; type: string; data: unknown }[]>`
    select id::text, type, data from event_outbox where transaction_id = ${transactionId} order by event_outbox.id`
  return {
    phase: 'rest',
    acknowledged: {
      ...{ notifications: [], synced: [], refused: [], portal: [] },
      asked: [{ ...asked, atMs: 0 }],
      refunds: [{ ...asked, isAtRisk: false }],
    },
    stored: {
      ...stored,
      transactions: stored.transactions.map((row) => ({ ...row, isOverdue: row.isLeased })),
    },
    shown: {
      transactions: [
        nameTransaction(merchantCode, await read(`/v1/transactions/${transactionId}`)),
      ],
      refunds: refunds.map((row) => nameRefund(merchantCode, row)),
    },
    moved: {
      ...{ dedupes, refuses: false, accepted: [], failed: [], told: [] },
      payments: await gateway.readPayments({ merchantCode, id: transactionId }),
      movements: movements.map((row) => ({ ...row, isAtRisk: false, isPending: false })),
      sends: new Map([[named(one.refundId), { times, lost: 0 }]]),
    },
    fed: {
      read: events.map((row) => readEvent(merchantCode, { ...row, transactionId })),
      ...{ followed: undefined, taken: undefined },
    },
  }
}

const Page = z.object({ data: z.array(z.unknown()) })
