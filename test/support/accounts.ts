import { z } from 'zod'
import { SCOPES } from '../../src/access/keys.ts'
import { makeDefaultClient } from '../../src/sandbox/tokens.ts'
import { OTHER, writeMerchantsFile } from './api.ts'
import { ask } from './ask.ts'
import { addKey, MERCHANT, type Rig, startRig } from './service.ts'
import { useStarted } from './use-started.ts'
import { waitUntil } from './wait-until.ts'

/** One of two accounts, with a key bound to it and the objects only it has. */
export type Tenant = {
  merchantCode: string
  secret: string
  key: string
  transactionId: string
  paymentId: string
  refundId: string
  cardId: string
  endpointId: string
  /** Of a discrepancy that is resolved. */
  discrepancyId: string
  externalRefundId: string
  /** Of the payment whose id exists in both accounts. */
  sharedAmount: string
}

/** A transaction and a payment with the same ids in both accounts. */
export const SHARED = { transactionId: 'T-BOTH', paymentId: 'P-BOTH' }

export type Accounts = { rig: Rig; mine: Tenant; theirs: Tenant; stop(): Promise<void> }

const Taken = z.object({ id: z.uuid() })

/**
 * Starts two accounts on one installation and one gateway. Each has a transaction of its own, one whose id
 * also exists in the other, and two refunds that the gateway accepted and never ends, so that nothing is due.
 * Each reads its own cards with its own token, and has two unreachable webhook endpoints.
 */
async function startTwoAccounts(): Promise<Accounts> {
  const accounts = [MERCHANT, OTHER]
  const clients = accounts.map(({ merchantCode }) => makeDefaultClient(merchantCode))
  const file = writeMerchantsFile(accounts.map((account, at) => ({ ...account, ...clients[at] })))
  const settings = {
    MERCHANTS_FILE: file.path,
    REFUND_BACKOFF_MS: '900000',
    GATEWAY_TIMEOUT_MS: '5000',
    SYNC_MAX_GAP_MS: '50',
  }
  const resolve = () => Promise.reject(new Error('no host resolves here'))
  const webhookTimeouts = { testMs: 20 }
  const rig = await startRig({ settings, sandbox: { accounts }, resolve, webhookTimeouts })
  await rig.control('PUT', '/refund-mode', { settleMs: null })
  const mine = await setUp(rig, MERCHANT, 'MINE', '400')
  const theirs = await setUp(rig, OTHER, 'THEIRS', '600')
  await waitUntilIdle(rig, mine)
  await waitUntilIdle(rig, theirs)
  const stop = async () => {
    await rig.stop()
    file.remove()
  }
  return { rig, mine, theirs, stop }
}

export function useTwoAccounts(): Accounts {
  return useStarted(startTwoAccounts, (accounts) => accounts.stop())
}

/** Calls the API with a given key. */
export function callAs(rig: Rig, { key }: { key: string }, path: string, init: RequestInit = {}) {
  return callWith(rig, `Bearer ${key}`, path, init)
}

/** Calls the API with an `Authorization` header, or without one. */
export function callWith(
  rig: Rig,
  authorization: string | undefined,
  path: string,
  init: RequestInit = {},
) {
  const headers = new Headers({ 'content-type': 'application/json' })
  if (authorization !== undefined) headers.set('authorization', authorization)
  for (const [name, value] of new Headers(init.headers)) headers.set(name, value)
  return fetch(rig.service.url + path, { ...init, headers })
}

const OF_ACCOUNT = [
  ...['transactions', 'payments', 'refunds', 'refund_attempts', 'refund_reviews', 'changes'],
  ...['discrepancies', 'external_refunds', 'hold_changes', 'ipn_events', 'gateway_calls'],
]

/**
 * Reads every row of these accounts as text, and how many writes were done; of webhook endpoints only what their owner
 * changes, because attempts to reach them go on.
 */
export async function readRows({ database: { sql } }: Rig, owners: Tenant[]): Promise<string[]> {
  const codes = owners.map(({ merchantCode }) => merchantCode)
  const ofAccount = OF_ACCOUNT.map(
    (table) => `select '${table} ' || to_jsonb(t)::text as row from ${table} t
      where merchant_code = any($1)`,
  )
  const rows = await sql.unsafe<{ row: string }[]>(
    `${ofAccount.join(' union all ')}
     union all select 'hold ' || concat_ws(' ', merchant_code, hold) from merchant_accounts
     union all select 'done ' || count(*) from audit_entries where outcome = 'done'
     union all select concat_ws(' ', 'endpoint', id, url, types, secret, previous_secret, disabled_at)
       from webhook_endpoints
     order by 1`,
    [codes],
    { prepare: true },
  )
  return rows.map(({ row }) => row)
}

/** Requests a refund with an idempotency key. */
export function askRefund(
  rig: Rig,
  asker: { key: string },
  paymentId: string,
  idempotencyKey: string,
  { query = '', amount = '1' } = {},
) {
  const asked = { url: rig.service.url, key: asker.key, query, idempotencyKey }
  return ask(asked, paymentId, { amount })
}

/** Registers a webhook endpoint for the caller's account, or for the one named. */
export function registerEndpoint(
  rig: Rig,
  asker: { key: string },
  query = '',
  types?: readonly string[],
) {
  return callAs(rig, asker, `/v1/webhook-endpoints${query}`, {
    method: 'POST',
    body: JSON.stringify({ url: 'https://shop.example/hook', types }),
  })
}

async function setUp(
  rig: Rig,
  account: { merchantCode: string; secret: string },
  name: string,
  sharedAmount: string,
): Promise<Tenant> {
  const key = `key-bound-to-the-account-${name}-0123456789`
  await addKey(rig.database, key, SCOPES, account.merchantCode)
  const own = { transactionId: `T-${name}`, paymentId: `P-${name}`, amount: '1000' }
  for (const { transactionId, paymentId, amount } of [own, { ...SHARED, amount: sharedAmount }]) {
    await rig.control('POST', '/transactions', {
      transactionId,
      merchantCode: account.merchantCode,
      payments: [{ id: paymentId, amount, paymentMethod: 'CC', status: 'SUCCESS' }],
    })
    const isKnown = async () => {
      const rows = await rig.database.sql`
        select from payments where merchant_code = ${account.merchantCode} and payment_id = ${paymentId}`
      return rows.length === 1
    }
    await waitUntil(isKnown, { what: `payment ${paymentId}` })
  }
  const taken = await askRefund(rig, { key }, own.paymentId, `set-up-${name}`)
  await askRefund(rig, { key }, own.paymentId, `set-up-second-${name}`)
  const { id } = Taken.parse(await taken.json())
  const [discrepancy] = await rig.database.sql<{ id: number }[]>`
    insert into discrepancies (merchant_code, transaction_id, kind, ours, theirs, resolved_at)
    select ${account.merchantCode}, id, 'ipn_missing', 'state paid', 'no notification', now()
    from unnest(${[own.transactionId, SHARED.transactionId]}::text[]) as id
    returning id`
  await registerEndpoint(rig, { key })
  // Of types that many may read: the scope alone keeps the others from it.
  const registered = await registerEndpoint(rig, { key }, '', ['payment.updated'])
  const { id: endpointId } = Taken.parse(await registered.json())
  const cardId = `VC-${account.merchantCode}-0001`
  const discrepancyId = String(discrepancy?.id)
  const [external] = await rig.database.sql`
    insert into external_refunds (merchant_code, request_id, payment_id, amount, ipn_event_id, outcome)
    select merchant_code, 'at-the-portal', payment_id, 1, 1, 'own' from payments
    where merchant_code = ${account.merchantCode} and payment_id = ${own.paymentId}
    returning id::text`
  const externalRefundId = String(external?.id)
  return {
    ...account,
    ...own,
    key,
    refundId: id,
    cardId,
    endpointId,
    discrepancyId,
    externalRefundId,
    sharedAmount,
  }
}

/** Waits until each refund of the account is accepted or has succeeded and no query runs or is due soon. */
export async function waitUntilIdle({ database }: Rig, { merchantCode }: Tenant): Promise<void> {
  const isIdle = async () => {
    const busy = await database.sql`
      select from refunds where merchant_code = ${merchantCode} and status not in ('accepted', 'succeeded')
      union all
      select from transactions where merchant_code = ${merchantCode}
        and (lease_id is not null or claimed <> want or due_at < now() + interval '1 minute')`
    return busy.length === 0
  }
  await waitUntil(isIdle, { what: `the account ${merchantCode} to be idle` })
}
