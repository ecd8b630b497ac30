import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, vi } from 'vitest'
import { EVERY_MERCHANT } from '../../../src/access/keys.ts'
import type { SandboxRefund } from '../../../src/sandbox/state.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { addPrincipal } from '../../support/approvals.ts'
import { seedCurrency } from '../../support/ask.ts'
import { startRefundRig } from '../../support/refunds.ts'
import { MERCHANT } from '../../support/service.ts'
import { makeTransaction } from '../../support/sync.ts'
import { useStarted } from '../../support/use-started.ts'
import { tapGateway } from './wire.ts'
import {
  countTaken,
  deliverNotification,
  refundElsewhere,
  World,
  type WorldOptions,
  type Worlds,
} from './world.ts'

/** A second account of the same gateway. */
const OTHER = { merchantCode: 'OTHER1', secret: 'the-secret-of-another-account' }

/** The keys of a changing `DATA_ENCRYPTION_KEY`; `next` while it changes. */
export type RootKeys = { n: number; current: string; next: string | undefined }

export type Stage = Awaited<ReturnType<typeof startStage>>

/** One service without background work and one gateway, for many worlds one after the other. */
async function startStage() {
  const rig = await startRefundRig({
    config: { accounts: [MERCHANT, OTHER] },
    sandbox: { accounts: [MERCHANT, OTHER] },
    settings: {
      ROLE: 'web',
      GATEWAY_TIMEOUT_MS: '5000',
      REFUND_BACKOFF_MS: '2000',
      REFUND_BACKOFF_MAX_MS: '900000',
      REFUND_RESEND_AFTER_MS: '30000',
      SYNC_MIN_GAP_MS: '0',
      SYNC_MAX_GAP_MS: '0',
      SYNC_BACKOFF_MS: '2000',
      SYNC_REPOLL_MS: '5000',
    },
  })
  const add = async (scopes: string) =>
    (await addPrincipal(rig.database, { scopes, merchantCode: EVERY_MERCHANT })).key
  const scopes = '{ops,payments:read,refunds:read}'
  const roots: RootKeys = { n: 7, current: Buffer.alloc(32, 7).toString('base64'), next: undefined }
  return {
    rig,
    roots,
    /** How often each thing has taken effect. */
    tally: new Map<string, number>(),
    /** Every table whose rows belong to an account, once they are known. */
    tables: [] as string[],
    /** The key of another principal than the one that asks, which approves. */
    approver: await add('{refunds:approve}'),
    /** The keys of two others, which decide about outcomes. */
    deciders: [await add(scopes), await add(scopes)] as const,
    stop: () => rig.stop(),
  }
}

/** Starts the stage before the tests of a file, without dice. */
export function useStage(): Stage {
  beforeAll(() => {
    // The only dice of the service: how long it waits after a failed query.
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
  })
  afterAll(() => {
    vi.restoreAllMocks()
  })
  return useStarted(startStage, (stage) => stage.stop())
}

export async function openWorlds(stage: Stage, options: WorldOptions): Promise<Worlds> {
  const { dedupes, countsUnsettled, approvalAbove: above } = options
  const { state } = stage.rig.sandbox
  state.faults.length = 0
  state.refundMode = {
    ...state.refundMode,
    ...{ ipn: 'never', guardsBalance: false, settleMs: null, dedupes, countsUnsettled },
  }
  stage.rig.service.ctx.config.REFUND_APPROVAL_ABOVE =
    above === null ? [] : [{ currency: 'VND', amount: String(above) }]
  const transactionId = randomUUID()
  const given = { stage, options, transactionId }
  const payments = options.amounts.map((amount) => ({ amount: String(amount) }))
  const first = await openWorld({ ...given, account: MERCHANT }, payments)
  const ids = first.payments.map(({ id }) => id)
  const second = await openWorld(
    { ...given, account: OTHER },
    payments.map((one, n) => ({ ...one, id: ids[n] ?? '' })),
  )
  first.other = second
  second.other = first
  return [first, second]
}

async function openWorld(
  given: Pick<World, 'stage' | 'options' | 'account' | 'transactionId'>,
  list: readonly { amount: string; id?: string }[],
): Promise<World> {
  const { account, transactionId } = given
  const { rig } = given.stage
  const { merchantCode } = account
  await makeTransaction(rig, transactionId, list, merchantCode)
  const merchant = rig.sandbox.state.merchants.get(merchantCode)
  const payments = merchant?.transactions.get(transactionId)?.payments ?? []
  const { ctx } = rig.service
  const accounts: typeof ctx.config.accounts = [account]
  const own = { GATEWAY_REFUND_DEDUPES: given.options.dedupes, accounts }
  const world = new World({
    ...given,
    payments,
    ctx: { ...ctx, config: { ...ctx.config, ...own } },
  })
  world.ctx.gateway = tapGateway(world, ctx.gateway)
  const early = await makeEarlyRefunds(world)
  await world.sql`
    insert into transactions (merchant_code, transaction_id, due_at)
    values (${merchantCode}, ${transactionId}, now())`
  await seedCurrency(rig.database, transactionId, 'VND', { merchantCode })
  await syncDue(world.ctx)
  for (const refund of early) await deliverNotification(world, refund)
  return world
}

/** @returns those to be notified once the payment was seen */
async function makeEarlyRefunds(world: World): Promise<SandboxRefund[]> {
  const [payment] = world.payments
  const later: SandboxRefund[] = []
  for (const { amount, notified } of payment ? world.options.before : []) {
    if (!payment || countTaken(payment) + amount > Number(payment.amount)) continue
    const refund = await refundElsewhere(world, payment, amount)
    world.early.add(refund.requestId)
    if (notified === 'before') {
      await deliverNotification(world, refund)
      world.told.firstSight.add(refund.requestId)
    }
    if (notified === 'after') later.push(refund)
  }
  return later
}
