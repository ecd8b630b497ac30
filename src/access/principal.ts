import { DomainError } from '../errors.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'

/** Few people decide; a longer list is cut. */
const MAX_NAMES = 100

/** Lists the people who may decide for an account (scope `ops`), by name. */
export async function listDeciders(sql: Sql, merchantCode: string): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select distinct on (lower(btrim(k.person))) k.person as name
    from (select ${merchantCode}::text as merchant_code) as m, api_keys as k
    where k.person is not null and 'ops' = any(k.scopes) and ${sql.unsafe(coversSql('m.merchant_code'))}
      and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
    order by lower(btrim(k.person)) limit ${MAX_NAMES}`
  return rows.map(({ name }) => name)
}

/**
 * The principal of the row `k` of `api_keys`, in SQL: the person for whom the key was created, or else the key with all
 * keys it was rotated from and to. A person's keys are one principal.
 */
export const PRINCIPAL_SQL = `coalesce('person:' || lower(btrim(k.person)), 'key:' || coalesce(k.chain_id, k.id)::text)`

/**
 * Whether the row `k` of `api_keys` covers a merchant account, in SQL. The accounts of a person with several stand in
 * `people` only.
 * @param merchantCode an expression
 */
export function coversSql(merchantCode: string): string {
  return `(k.merchant_code in ('*', ${merchantCode}) or exists (
    select from people as p where p.key_id = k.id and ${merchantCode} = any(p.merchants)))`
}

/** Selects the principal of a key, for use inside a statement. */
export function selectPrincipal(sql: Sql | Tx, keyId: string) {
  return sql`(select ${sql.unsafe(PRINCIPAL_SQL)} from api_keys as k where k.id = ${keyId})`
}

/** Selects the name of a key, for use inside a statement. */
export function selectKeyName(sql: Sql | Tx, keyId: string) {
  return sql`(select k.name from api_keys as k where k.id = ${keyId})`
}

/**
 * Whether `on_behalf_of` names the row `k` of `api_keys`, in SQL: by the name of the key, its principal or the person.
 * The constraint `refunds_decided_by_another` has the same rule.
 */
export function namesKeySql(onBehalfOf: string): string {
  return `coalesce(lower(btrim(${onBehalfOf})) in
    (lower(btrim(k.name)), ${PRINCIPAL_SQL}, regexp_replace(${PRINCIPAL_SQL}, '^[a-z]+:', '')), false)`
}

/** A key with its principal. */
export type NamedKey = { name: string; principal: string }

/** Reads a key's name and principal, to show what it may do; undefined when there is no such key. */
export async function readPrincipal(sql: Sql, keyId: string): Promise<NamedKey | undefined> {
  const [key] = await sql<NamedKey[]>`
    select k.name, ${sql.unsafe(PRINCIPAL_SQL)} as principal from api_keys as k where k.id = ${keyId}`
  return key
}

/**
 * Locks a key until the commit, and reads its principal: nothing is decided with a key once its revocation is
 * committed.
 * @throws DomainError `unauthenticated` when it was revoked or has expired since the request was authenticated
 */
export async function lockLiveKey(tx: Tx, keyId: string): Promise<NamedKey> {
  const [key] = await tx<NamedKey[]>`
    select k.name, ${tx.unsafe(PRINCIPAL_SQL)} as principal from api_keys as k
    where k.id = ${keyId} and k.revoked_at is null and (k.expires_at is null or k.expires_at > now()) for share`
  if (!key) throw new DomainError('unauthenticated', 'The API key is revoked or expired')
  return key
}

/**
 * Whether a text names the key, by its name, its principal or its person, in any case. The letters of a name need
 * not be known to the database's locale, so the comparison in SQL may miss some.
 */
export function namesKey({ name, principal }: NamedKey, text: string | null): boolean {
  const names = [name, principal, principal.replace(/^[a-z]+:/, '')]
  return text !== null && names.map(foldName).includes(foldName(text))
}

/** Formats a name for comparison: its case and its spaces do not count. */
export function foldName(text: string): string {
  return text.trim().normalize('NFKC').replaceAll(/\s+/g, ' ').toLowerCase()
}
