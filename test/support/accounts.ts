import { z } from 'zod'
import { makeDefaultClient } from '../../src/sandbox/cards/tokens.ts'
import { OTHER, writeMerchantsFile } from './api.ts'
import { addKey, MERCHANT, type Rig, startRig } from './service.ts'
import { waitUntil } from './wait-until.ts'

const SCOPES = [
  'payments:read',
  'refunds:read',
  'refunds:write',
  'cards:read',
  'webhooks:write',
  'ops',
]

/** One of two accounts, with a key that is bound to it and what it alone has. */
export type Tenant = {
  merchantCode: string
  secret: string
  key: string
  transactionId: string
  paymentId: string
  refundId: string
  cardId: string
  endpointId: string
  /** Of the payment whose id both accounts have. */
  sharedAmount: string
}

/** A transaction and a payment of the same ids in both accounts. */
export const SHARED = { transactionId: 'T-BOTH', paymentId: 'P-BOTH' }

export type Accounts = { rig: Rig; mine: Tenant; theirs: Tenant; stop(): Promise<void> }

const Taken = z.object({ id: z.uuid() })

/**
 * Two accounts on one installation and one gateway. Each has a transaction of its own and one whose id
 * the other has too, and a refund that the gateway accepted and will never end: nothing is due any more.
 * Each reads its own cards, with a token of its own, and has two webhook endpoints that cannot be reached.
 */
export async function startTwoAccounts(): Promise<Accounts> {
  const accounts = [MERCHANT, OTHER]
  const clients = accounts.map(({ merchantCode }) => makeDefaultClient(merchantCode))
  const file = writeMerchantsFile(accounts.map((account, at) => ({ ...account, ...clients[at] })))
  const settings = {
    MERCHANTS_FILE: file.path,
    REFUND_BACKOFF_MS: '900000',
    GATEWAY_TIMEOUT_MS: '5000',
  }
  const resolve = () => Promise.reject(new Error('no name is known here'))
  const rig = await startRig({ settings, sandbox: { accounts }, resolve })
  await rig.control('PUT', '/refund-mode', { settleMs: null })
  const mine = await setUp(rig, MERCHANT, 'MINE', '400')
  const theirs = await setUp(rig, OTHER, 'THEIRS', '600')
  await waitUntil(async () => (await countRestless(rig)) === 0, { what: 'both accounts to rest' })
  const stop = async () => {
    await rig.stop()
    file.remove()
  }
  return { rig, mine, theirs, stop }
}

/** Calls the API with a tenant's own key, or any other. */
export function callAs(rig: Rig, { key }: { key: string }, path: string, init: RequestInit = {}) {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` }
  return fetch(rig.service.url + path, {
    ...init,
    headers: { ...headers, ...Object.fromEntries(new Headers(init.headers)) },
  })
}

/** Asks for a refund under an idempotency key. */
export function askRefund(
  rig: Rig,
  asker: { key: string },
  paymentId: string,
  idempotencyKey: string,
  { query = '', amount = '1' } = {},
) {
  return callAs(rig, asker, `/v1/payments/${paymentId}/refunds${query}`, {
    method: 'POST',
    headers: { 'idempotency-key': idempotencyKey },
    body: JSON.stringify({ amount }),
  })
}

/** Registers a webhook endpoint of the asker's account, or of the one it names. */
export function registerEndpoint(rig: Rig, asker: { key: string }, query = '') {
  return callAs(rig, asker, `/v1/webhook-endpoints${query}`, {
    method: 'POST',
    body: JSON.stringify({ url: 'https://shop.example/hook' }),
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
    const known = async () =>
      (await callAs(rig, { key }, `/v1/payments/${paymentId}`)).status === 200
    await waitUntil(known, { what: `payment ${paymentId}` })
  }
  const taken = await askRefund(rig, { key }, own.paymentId, `set-up-${name}`)
  const { id } = Taken.parse(await taken.json())
  for (const transactionId of [own.transactionId, SHARED.transactionId]) {
    await rig.database.sql`
      insert into discrepancies (merchant_code, transaction_id, kind, ours, theirs)
      values (${account.merchantCode}, ${transactionId}, 'ipn_missing', 'state paid', 'no notification')`
  }
  await registerEndpoint(rig, { key })
  const registered = await registerEndpoint(rig, { key })
  const { id: endpointId } = Taken.parse(await registered.json())
  const cardId = `VC-${account.merchantCode}-0001`
  return { ...account, ...own, key, refundId: id, cardId, endpointId, sharedAmount }
}

/** Refunds that are not accepted yet, and queries that are due or under way. */
async function countRestless({ database }: Rig): Promise<number> {
  const [row] = await database.sql<{ n: number }[]>`
    select (select count(*) from refunds where status <> 'accepted')::int
      + (select count(*) from transactions where lease_id is not null or claimed <> want
          or due_at < now() + interval '1 minute')::int as n`
  return row?.n ?? 0
}
