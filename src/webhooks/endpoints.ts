import { narrowMerchants } from '../access/authenticate.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import { type Access, listScopes } from '../access/types.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../errors.ts'
import { EVENTS, isEventType } from '../events/event.ts'
import { recordEvents } from '../events/record-events.ts'
import { type FeedFilter, filterByScope } from '../feed/read-feed.ts'
import type { Position } from '../http/list.ts'
import { formatOrigin } from '../platform/outbound/addresses.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { type EndpointRow, showEndpoint } from './schemas.ts'
import type { StoredSecrets } from './send.ts'

/** A request about an endpoint. `owners` are the merchant codes whose endpoints the key may see. */
export type EndpointRequest = { access: Access; owners: readonly string[]; id: string }

/** Lists endpoints, newest first, and one more than `limit` if there is a next page. */
export async function listEndpoints(
  sql: Sql,
  owners: readonly string[],
  limit: number,
  after: Position | undefined,
): Promise<EndpointRow[]> {
  return await sql<EndpointRow[]>`
    ${selectEndpoints(sql)}
    where merchant_code = any(${[...owners]})
      and ${after ? sql`(created_at, id) < (${after.time}::timestamptz, ${after.id}::uuid)` : sql`true`}
    order by created_at desc, id desc limit ${limit + 1}`
}

/** @throws DomainError `webhook_endpoint_not_found` */
export async function findEndpoint({ db: { sql } }: Pick<Context, 'db'>, request: EndpointRequest) {
  const { owners, id } = request
  const [row] = await sql<EndpointRow[]>`
    ${selectEndpoints(sql)} where merchant_code = any(${[...owners]}) and id = ${id}`
  if (!row) throw endpointNotFound(id)
  return showEndpoint(row)
}

export type StoredEndpoint = StoredSecrets & {
  /** A merchant code, or `*` for all accounts. */
  merchantCode: string
  types: readonly string[]
  url: string
  apiVersion: string
  previousSecretUntil: string | null
  isFailing: boolean
  isDisabled: boolean
  /** Null if the key or the person has lost its access. */
  owner: Owner | null
  /** When it was read, in database time (ms since 1970). */
  now: number
}

/** The columns of a stored endpoint `e`, at the moment `clock.at`. */
export function selectStored(sql: Sql | Tx) {
  return sql`e.id, e.merchant_code as "merchantCode", e.url, e.types, e.api_version as "apiVersion", e.secret,
    case when e.previous_secret_until > clock.at then e.previous_secret end as "previousSecret",
    e.previous_secret_until::text as "previousSecretUntil", e.failing_since is not null as "isFailing",
    e.disabled_at is not null as "isDisabled", (select to_json(own) from ${liveKeyOf(sql)} as own) as owner,
    (extract(epoch from clock.at) * 1000)::float8 as now`
}

/** @throws DomainError `webhook_endpoint_not_found` */
export async function readEndpoint(
  sql: Tx,
  { owners, id }: EndpointRequest,
  lock = '',
): Promise<StoredEndpoint> {
  const [row] = await sql<StoredEndpoint[]>`
    select ${selectStored(sql)} from webhook_endpoints as e, (select clock_timestamp() as at) as clock
    where e.id = ${id} and e.merchant_code = any(${[...owners]}) ${sql.unsafe(lock)}`
  if (!row) throw endpointNotFound(id)
  return row
}

export function endpointNotFound(id: string): DomainError {
  return new DomainError('webhook_endpoint_not_found', `There is no webhook endpoint ${id}`)
}

function selectEndpoints(sql: Tx) {
  return sql`
    select id, merchant_code as "merchantCode", url, types, api_version as "apiVersion", created_at::text as "createdAt",
      (select k.name from actors as k where k.chain_id = e.key_chain_id
        order by k.created_at desc, k.id limit 1) as owner,
      failing_since::text as "failingSince", disabled_at::text as "disabledAt",
      disabled_reason as "disabledReason",
      case when previous_secret_until > now() then previous_secret_until::text end as "previousSecretValidUntil",
      ${sql.unsafe(countPendingSql('e', MAX_PENDING))} as pending,
      (select last_error from webhook_retries as r
        where r.endpoint_id = e.id and last_error is not null
        order by due_at desc limit 1) as "lastError"
    from webhook_endpoints as e`
}

const MAX_PENDING = 10_000

/**
 * Counts the events that wait for an endpoint, in SQL: its retries, and the events it gets after its cursor.
 * @param most how many of each are read
 */
export function countPendingSql(endpoint: string, most: number): string {
  return `(
    select (select count(*) from (
        select from webhook_retries as r where r.endpoint_id = ${endpoint}.id limit ${most}) as r)
      + count(*) filter (where type = any(${endpoint}.types) and ev.id <> all(${endpoint}.ahead)
        and transaction_id <> ${endpoint}.id::text)
    from (
      (select id, type, transaction_id from events where ${endpoint}.merchant_code = '${EVERY_MERCHANT}'
        and id > ${endpoint}.cursor order by id limit ${most})
      union all
      (select id, type, transaction_id from events where ${endpoint}.merchant_code <> '${EVERY_MERCHANT}'
        and merchant_code = ${endpoint}.merchant_code and id > ${endpoint}.cursor order by id limit ${most})) as ev)`
}

/** Counts the events that wait for all endpoints, in SQL. What waits for disabled ones is not read. */
export const PENDING_SQL = `
  select least(${MAX_PENDING}, coalesce(sum(${countPendingSql('e', MAX_PENDING)}), 0))::int as value
  from webhook_endpoints as e where e.disabled_at is null`

/** Records the new condition of endpoints as events of the feed. One of the last statements of a commit. */
export async function recordCondition(
  tx: Tx,
  ids: readonly string[],
  condition: 'failing' | 'disabled' | 'recovered',
): Promise<void> {
  if (ids.length === 0) return
  const rows = await tx<EndpointRow[]>`
    ${selectEndpoints(tx)} where id = any(${[...ids]}::uuid[]) order by id`
  const events = rows.map((row) => ({
    merchantCode: row.merchantCode,
    transactionId: row.id,
    type: `webhook_endpoint.${condition}` as const,
    data: showEndpoint(row),
  }))
  await recordEvents(tx, events)
}

/** What the owner of an endpoint may read: the newest live key of a chain, or a person. */
export type Owner = {
  scopes: readonly string[]
  roles: readonly string[]
  merchants: readonly string[]
}

/** Selects the owner of the endpoint `e`; no row if it has lost its access. */
export function liveKeyOf(sql: Sql | Tx) {
  return sql`(
    select own.scopes, own.roles, own.merchants from actors as own
    where own.chain_id = e.key_chain_id and own.ended_at is null
      and (own.expires_at is null or own.expires_at > now())
    order by own.created_at desc, own.id limit 1)`
}

/** Returns what an endpoint gets of the feed: what it subscribes to, as far as its owner may read it. */
export function filterOf(
  { scopes, roles, merchants }: Owner,
  { merchantCode, types }: Pick<StoredEndpoint, 'merchantCode' | 'types'>,
): FeedFilter {
  const granted: readonly string[] = [...scopes, ...listScopes(roles)]
  const covers = (code: string) => merchants.includes(EVERY_MERCHANT) || merchants.includes(code)
  const own = covers(merchantCode) ? [merchantCode] : []
  const ofAll = merchants.includes(EVERY_MERCHANT) ? undefined : merchants
  return {
    merchants: merchantCode === EVERY_MERCHANT ? ofAll : own,
    types: types.filter((type) => isEventType(type) && granted.includes(EVENTS[type].scope)),
    withRefunds: granted.includes('refunds:read'),
  }
}

/** Requires that a key may read what an endpoint gets. @throws DomainError `scope_missing` */
export function requireReadable(access: Access, { types, owner }: StoredEndpoint): void {
  filterByScope(access, { types: types.filter(isEventType) })
  const namesRefunds =
    owner !== null &&
    filterOf(owner, { merchantCode: EVERY_MERCHANT, types }).withRefunds &&
    types.some((type) => type.startsWith('discrepancy.'))
  if (!namesRefunds || access.scopes.includes('refunds:read')) return
  const detail = 'This key has no scope refunds:read, which the events of this endpoint require'
  throw new DomainError('scope_missing', detail)
}

/** Lists the owners of endpoints that a key may see, or the `named` one. `*` needs a key for all accounts. */
export function listVisibleOwners(access: Access, named: string | undefined): string[] {
  const own = narrowMerchants(access, named)
  const all = access.coversAll && (named ?? EVERY_MERCHANT) === EVERY_MERCHANT
  return all ? [...own, EVERY_MERCHANT] : [...own]
}

/** It has only the host, because the path of a URL can contain a secret of the receiver. */
export type EndedEndpoint = { id: string; merchantCode: string; host: string }

/**
 * Disables the endpoints whose owner has lost its access. What waits stays, for whoever enables them again.
 * @param actorIds limits this to the endpoints of people, or of the chains of keys
 */
export async function endEndpoints(tx: Tx, actorIds?: readonly string[]): Promise<EndedEndpoint[]> {
  const ofKey =
    actorIds === undefined
      ? tx`true`
      : tx`e.key_chain_id in (select k.chain_id from actors as k where k.id = any(${[...actorIds]}::uuid[]))`
  const ended = await tx<{ id: string; merchantCode: string; url: string }[]>`
    update webhook_endpoints as e set disabled_at = now(), disabled_reason = 'key_ended', lease_id = null
    where e.disabled_at is null and ${ofKey} and not exists ${liveKeyOf(tx)}
    returning e.id, e.merchant_code as "merchantCode", e.url`
  const ids = ended.map(({ id }) => id)
  await recordCondition(tx, ids, 'disabled')
  return ended.map(({ url, ...one }) => ({ ...one, host: new URL(formatOrigin(url)).host }))
}

/** Disables the endpoints of keys that ended without a command, such as on their date. */
export async function endOrphanedEndpoints({
  db: { sql },
  log,
}: Pick<Context, 'db' | 'log'>): Promise<number> {
  const ended = await runInTransaction(sql, (tx) => endEndpoints(tx))
  for (const { id, merchantCode, host } of ended) {
    log.warn(
      { endpointId: id, merchantCode, host },
      `webhook endpoint disabled: the key or the person that it belongs to has no access any more; with a key that may read its events, POST /v1/webhook-endpoints/${id}/enable takes it over`,
    )
  }
  return ended.length
}
