import type { Sql, Tx } from '../platform/postgres/types.ts'

/**
 * The principal of the row `k` of `api_keys`, in SQL: the person for whom the key was created, or else the key with all
 * keys it was rotated from and to. A person's keys are one principal.
 */
export const PRINCIPAL_SQL = `coalesce('person:' || lower(btrim(k.person)), 'key:' || coalesce(k.chain_id, k.id)::text)`

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
