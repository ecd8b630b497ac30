import { parseCidr } from '../config/setting-types.ts'
import { DomainError } from '../errors.ts'
import { compileNetworks } from '../http/client-address.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { EVERY_MERCHANT, LIVE_SQL } from './keys.ts'
import { type Access, hasScopeSql, listScopes } from './types.ts'

/** Folds a name for comparison by the rules of Unicode: case, spacing and invisible characters do not count. */
export function foldName(text: string): string {
  const folded = text
    .normalize('NFKC')
    .replaceAll(/[\p{Default_Ignorable_Code_Point}\p{Cf}\u2800]/gu, '')
    // Some letters are equal only as capitals: ß and SS, ς and σ. The capital ẞ has to become ß first.
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    // What remains of İ, the capital of i in Turkish.
    .replaceAll(/i\u0307+/g, 'i')
  return folded.normalize('NFKC').replaceAll(/\s+/g, ' ').trim()
}

/** Whether the row `k` of `actors` covers an account, in SQL. @param merchantCode an SQL expression */
export const coversSql = (merchantCode: string) =>
  `k.merchants && array['${EVERY_MERCHANT}', ${merchantCode}]`

/** Whether a folded text names the row `k` of `actors`, in SQL, as in the constraint `refunds_decided_by_another`. */
export const namesActorSql = (folded: string) =>
  `coalesce(${folded} in (k.folded_name, k.principal, regexp_replace(k.principal, '^[a-z]+:', '')), false)`

/** Lists the names of up to 100 people who may decide for an account (scope `ops`), as they were first spelled. */
export async function listDeciders(sql: Sql, merchantCode: string): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select distinct on (k.folded_person) k.person as name
    from (select ${merchantCode}::text as merchant_code) as m, actors as k
    where k.person is not null and ${sql.unsafe(hasScopeSql('k', 'ops'))}
      and ${sql.unsafe(coversSql('m.merchant_code'))} and ${sql.unsafe(LIVE_SQL)}
    order by k.folded_person, k.kind desc, k.created_at, k.id limit 100`
  return rows.map(({ name }) => name)
}

export type Principal = Pick<Access, 'name' | 'principal'>

/** Whether a text names somebody by name, principal or person, however it is spelled. */
export function namesActor({ name, principal }: Principal, text: string | null): boolean {
  const names = [name, principal, principal.replace(/^[a-z]+:/, '')]
  return text !== null && names.map(foldName).includes(foldName(text))
}

export function findForeignUse({ networks }: Pick<Access, 'networks'>, address?: string) {
  if (networks === null || address === undefined) return undefined
  const isWithin = compileNetworks(networks.flatMap((one) => parseCidr(one) ?? []))
  if (isWithin(address)) return undefined
  return new DomainError('network_not_allowed', `This key may not be used from ${address}`)
}

type Granted = Pick<Access, 'scopes' | 'merchants' | 'networks' | 'principal'> & {
  roles?: string[]
}

/** Finds what has been taken away since a request was admitted. @param now undefined if the access has ended */
export function findLoss(access: Access, now: Granted | undefined): DomainError | undefined {
  if (!now || now.principal !== access.principal) {
    const what = 'The access of this person, or this session, has ended'
    const detail = access.isPerson ? what : 'The API key is revoked or expired'
    return new DomainError('unauthenticated', detail)
  }
  const granted = [...now.scopes, ...(now.roles ?? [])]
  const missing = [...access.required].find((one) => !granted.includes(one))
  if (missing) return new DomainError('scope_missing', `${missing} was taken away in this moment`)
  const coversAll = now.merchants.includes(EVERY_MERCHANT)
  const covers = (code: string) => coversAll || now.merchants.includes(code)
  if ((access.coversAll && !coversAll) || !access.merchants.every(covers)) {
    const what = 'The accounts have changed in this moment; repeat the request'
    return new DomainError('scope_missing', what)
  }
  return findForeignUse(now, access.address)
}

/**
 * Locks the actor until the commit, so that nothing is committed with a key, a session, a role, an account or a
 * network that was taken away. Call it after the last lock that the unit of work waits for, but before it locks
 * webhook endpoints: whatever ends an access locks them after the actor.
 * @throws DomainError of `findLoss`
 */
export async function lockActor(tx: Tx, access: Access): Promise<void> {
  const [row] = await tx<(Granted & { roles: string[] })[]>`
    select k.scopes, k.roles, k.merchants, k.networks, k.principal from actors as k
    where k.id = ${access.id} and ${tx.unsafe(LIVE_SQL)} for share`
  const isOver = access.sessionId !== undefined && !(await lockSession(tx, access.sessionId))
  const now = row && { ...row, scopes: [...row.scopes, ...listScopes(row.roles)] }
  const loss = findLoss(access, isOver ? undefined : now)
  if (loss) throw loss
}

/** Whether the row `s` of `sessions` is live, in SQL. A session ends after half an hour without a request. */
export const LIVE_SESSION_SQL = `(s.ended_at is null and s.expires_at > now()
  and s.last_used_at > now() - interval '30 minutes')`

/** Concurrent writes of a session take turns, as either may end it. @returns whether it is live */
async function lockSession(tx: Tx, id: string): Promise<boolean> {
  const { count } = await tx`
    select from sessions as s where s.id = ${id} and ${tx.unsafe(LIVE_SESSION_SQL)} for no key update`
  return count > 0
}

/**
 * Locks people in the order of their ids. A unit of work that opens or ends sessions begins by locking their owners
 * and the actor. So two admins who end each other's access take turns, and the second finds that its own has ended.
 */
export async function lockPeople(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx`select from actors where id = any(${ids}::uuid[]) order by id for no key update`
}
