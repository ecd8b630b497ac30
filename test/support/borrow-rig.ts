import { vi } from 'vitest'
import { SETTING_CHAIN } from '../../src/access/keys.ts'
import { makeRandom } from '../../src/sandbox/random.ts'
import { addCards } from '../../src/sandbox/seed.ts'
import type { Sandbox } from '../../src/sandbox/start.ts'
import { createBackgroundTasks } from '../../src/sandbox/state.ts'
import { TWO_ACCOUNTS } from './api.ts'
import { cleanups } from './cleanups.ts'
import { deleteRows } from './database.ts'
import { KEY, type Rig, type RigOptions, setRefundMode, startRig } from './service.ts'

/** A rig that outlives its file, with what its service was started with. */
type Lendable = { rig: Rig; profile: string; ctx: Rig['service']['ctx']; config: object }

/** This worker's rigs that no file uses now. */
const idle: Lendable[] = []

/** How often this worker's files have asked for a profile. */
const requests = new Map<string, number>()

/** Each keeps a dozen sessions; three are what most files ask for. */
const MAX_IDLE = 3

/**
 * Lends a rig until `stop`: the one with the same settings that an earlier file of this worker has given back, or a new one.
 * Only services without background work are shared, and only where nothing but settings differs: the others would claim
 * what the next file makes due, or keep what a file has put into them.
 */
export async function borrowRig(options: RigOptions = {}): Promise<Rig> {
  const profile = describeProfile(options)
  if (profile === undefined) return await startRig(options)
  requests.set(profile, countRequests(profile) + 1)
  const place = idle.findIndex((one) => one.profile === profile)
  const [known] = place < 0 ? [] : idle.splice(place, 1)
  const borrowed = known ?? (await startLendable(profile, options))
  const cleanUp = () => settle(borrowed.rig, options)
  await cleanUp()
  cleanups.add(cleanUp)
  return {
    ...borrowed.rig,
    async stop() {
      if (cleanups.delete(cleanUp)) await takeBack(borrowed)
    },
  }
}

const countRequests = (profile: string) => requests.get(profile) ?? 0

function describeProfile({
  settings = {},
  refundMode: _,
  ...more
}: RigOptions): string | undefined {
  // The files that settings name are those of one test file, but for that of the two accounts.
  const isOwn = Object.entries(settings).some(
    ([name, value]) => name.endsWith('_FILE') && value !== TWO_ACCOUNTS.MERCHANTS_FILE,
  )
  if (settings.ROLE !== 'web' || isOwn || Object.keys(more).length > 0) return undefined
  return JSON.stringify(Object.entries(settings).sort())
}

async function startLendable(profile: string, options: RigOptions): Promise<Lendable> {
  const rig = await startRig(options)
  const { ctx } = rig.service
  return { rig, profile, ctx: { ...ctx }, config: { ...ctx.config } }
}

/**
 * Ends what a test leaves behind in a rig: what is due, leases, holds, and how the gateway behaves. Rows stay, as the next
 * test has other ids.
 */
async function settle({ sandbox, database }: Rig, { refundMode }: RigOptions): Promise<void> {
  sandbox.state.faults.length = 0
  setRefundMode(sandbox, refundMode)
  await database.sql.unsafe(`
    update transactions set due_at = null, lease_id = null where due_at is not null;
    update merchant_accounts set hold = null where hold is not null`)
}

async function takeBack(borrowed: Lendable): Promise<void> {
  const { rig, ctx, config } = borrowed
  vi.restoreAllMocks()
  Object.assign(rig.service.ctx, ctx)
  Object.assign(ctx.config, config)
  if (!(await isReusable(rig))) {
    await rig.stop()
    return
  }
  try {
    await reset(rig)
  } catch (error) {
    await rig.stop().catch(() => {})
    throw error
  }
  // The latest stays in any case; of the others, what the fewest files have asked for goes.
  idle.sort((one, other) => countRequests(other.profile) - countRequests(one.profile))
  if (idle.length >= MAX_IDLE) await idle.pop()?.rig.stop()
  idle.push(borrowed)
}

/** Whether the service still runs and reaches its database, and has its accounts and its key alone. */
async function isReusable({ service: { ctx, url }, database: { sql } }: Rig): Promise<boolean> {
  const ready = ctx.lifecycle.stopping.aborted ? undefined : await fetch(`${url}/readyz`)
  if (ready?.status !== 200) return false
  const [row] = await sql<{ keys: string[]; accounts: string[] }[]>`
    select array(select encode(hash, 'hex') from actors where chain_id = ${SETTING_CHAIN}
        and ended_at is null and expires_at is null) as keys,
      array(select merchant_code from merchant_accounts order by 1) as accounts`.catch(() => [])
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(KEY))
  return (
    row?.keys.join() === Buffer.from(hash).toString('hex') &&
    row.accounts.join() === [...ctx.access.merchants].sort().join()
  )
}

/** Deletes what the borrower has stored: only the keys and the account of the service stay. */
async function reset({ sandbox, service, database }: Rig): Promise<void> {
  await resetSandbox(sandbox)
  sandbox.setIpnUrl(`${service.url}/ipn`)
  await deleteRows(database, ['data_keys', 'actors', 'merchant_accounts', 'installation'])
  await database.sql.unsafe(`
    delete from actors where chain_id <> '${SETTING_CHAIN}';
    update merchant_accounts set hold = null, paid_until = now();
    select setval(pg_get_serial_sequence('events', 'id'), 1, false) from installation where epoch > 0;
    update installation set epoch = 0, stopped_at = null, stopped_because = null, restored_at = null`)
}

/** Forgets everything that was made at the gateway, and cancels what it still waits for. */
async function resetSandbox({ state }: Sandbox): Promise<void> {
  await state.background.stop()
  for (const [name, merchant] of state.merchants) {
    for (const records of [merchant.transactions, merchant.payments, merchant.refunds]) {
      records.clear()
    }
    merchant.cards.clear()
    addCards(merchant, { seed: 1, name })
  }
  state.journal.length = 0
  Object.assign(state, {
    faults: [],
    ledger: [],
    background: createBackgroundTasks(),
    random: makeRandom(1),
    deliveryRandom: makeRandom(1),
  } satisfies Partial<Sandbox['state']>)
}
