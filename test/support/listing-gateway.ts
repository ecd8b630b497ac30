import type { Config } from '../../src/config/config.ts'
import { syncDue } from '../../src/sync/sync-due.ts'
import { makeClient, serve } from './gateway.ts'
import { MERCHANT, type Rig } from './service.ts'

/** A gateway whose lists of payments are written by the test, and the rig's service that queries it. */
export type ListingGateway = {
  /** The entries of the next answers, as JSON. */
  list(...entries: readonly (string | object)[]): void
  /** The next answers to a command as they are written on the wire; those to queries replace the list. */
  answer(command: 'QUERY_PT' | 'REFUND', body: string, status?: number): void
  /** Queries the gateway once about a transaction, registered if it is not known, and about no other. */
  sync(transactionId: string): Promise<void>
  /** Number of queries received. */
  queries(): number
  /** The requests of a command as they came. */
  received(command: 'QUERY_PT' | 'REFUND'): Record<string, unknown>[]
}

/**
 * Starts it for one test. The rig's service queries it in `sync` only.
 * @param instead the address of another gateway to query
 */
export async function startListingGateway(
  { database, service }: Pick<Rig, 'database' | 'service'>,
  config: Partial<Config> = {},
  instead?: string,
): Promise<ListingGateway> {
  let entries = ''
  const written: Record<string, { body: string; status: number }> = {}
  const { url, seen } = await serve((response, { body }) => {
    const own = Object.entries(written).find(([command]) => body.includes(`"${command}"`))?.[1]
    if (own) response.writeHead(own.status).end(own.body)
    else
      response.end(`{"svc_ResponseCode":0,"svc_ResponseMsg":"ok","svc_ResponseData":[${entries}]}`)
  })
  const ctx = {
    ...service.ctx,
    gateway: { ...service.ctx.gateway, ...makeClient(instead ?? url).client },
    config: { ...service.ctx.config, ...config },
  }
  return {
    list(...given) {
      entries = given.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join(',')
    },
    answer(command, body, status = 200) {
      written[command] = { body, status }
    },
    async sync(transactionId) {
      await database.sql`update transactions set due_at = now() + interval '1 h' where due_at is not null`
      await database.sql`
        insert into transactions as t (merchant_code, transaction_id, due_at)
        values (${MERCHANT.merchantCode}, ${transactionId}, now())
        on conflict (merchant_code, transaction_id) do update set due_at = now() - interval '1 s'`
      if ((await syncDue(ctx)) !== 1) throw new Error(`${transactionId} was not claimed`)
    },
    queries: () => seen.length,
    received: (command) =>
      seen.map(({ body }) => JSON.parse(body)).filter((one) => one.svc_Command === command),
  }
}

/** An entry as the specification defines it, with other values where they are given. */
export function makeEntry(id: string, more: object = {}): object {
  return { id, status: 'SUCCESS', amount: 10, refundedAmount: 0, paymentMethod: 'CC', ...more }
}

/** The same as JSON, with a part of it replaced. */
export function writeEntry(id: string, from: string, to: string): string {
  const text = JSON.stringify(makeEntry(id))
  if (!text.includes(from)) throw new Error(`no ${from} in ${text}`)
  return text.replace(from, to)
}

/** Moves a payment's first omission into the past, as if a minute had passed since. */
export async function ageOmission(
  { database }: Pick<Rig, 'database'>,
  paymentId: string,
): Promise<void> {
  await database.sql`
    update payments set unlisted_since = unlisted_since - interval '1 minute' where payment_id = ${paymentId}`
}
