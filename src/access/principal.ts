import { parseCidr } from '../config/setting-types.ts'
import { DomainError } from '../errors.ts'
import { compileNetworks } from '../http/client-address.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { EVERY_MERCHANT, LIVE_SQL } from './keys.ts'
import { isLiveSession } from './sessions.ts'
import { type Access, hasScopeSql, listScopes } from './types.ts'

/** Formats a name for comparison by the rules of Unicode: its case, its spaces and what is not seen do not count. */
export function foldName(text: string): string {
  const folded = text
    .normalize('NFKC')
    .replaceAll(/[\p{Default_Ignorable_Code_Point}\p{Cf}\u2800]/gu, '')
    // Some letters are equal in capitals only: ß and SS, ς and σ. ẞ is one, and has no other than its small letter.
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    // What is left of İ, whose small letter is i where it is used.
    .replaceAll(/i\u0307+/g, 'i')
  return folded.normalize('NFKC').replaceAll(/\s+/g, ' ').trim()
}

/** Whether the row `k` of `actors` covers a merchant account, in SQL. @param merchantCode an expression */
export const coversSql = (merchantCode: string) =>
  `k.merchants && array['${EVERY_MERCHANT}', ${merchantCode}]`

/**
 * Whether a folded text names the row `k` of `actors`, in SQL: by its name, its principal or the person. The constraint
 * `refunds_decided_by_another` has the same rule.
 */
export const namesActorSql = (folded: string) =>
  `coalesce(${folded} in (k.folded_name, k.principal, regexp_replace(k.principal, '^[a-z]+:', '')), false)`

/** Few people decide; a longer list is cut. */
const MAX_NAMES = 100

/** Lists the people who may decide for an account (scope `ops`), by name, each as spelled where they were added. */
export async function listDeciders(sql: Sql, merchantCode: string): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select distinct on (k.folded_person) k.person as name
    from (select ${merchantCode}::text as merchant_code) as m, actors as k
    where k.person is not null and ${sql.unsafe(hasScopeSql('k', 'ops'))}
      and ${sql.unsafe(coversSql('m.merchant_code'))} and ${sql.unsafe(LIVE_SQL)}
    order by k.folded_person, k.kind desc, k.created_at, k.id limit ${MAX_NAMES}`
  return rows.map(({ name }) => name)
}

/** Who acts: a name, and the principal. */
export type Principal = Pick<Access, 'name' | 'principal'>

/** Whether a text names somebody, by name, principal or person, however it is spelled. */
export function namesActor({ name, principal }: Principal, text: string | null): boolean {
  const names = [name, principal, principal.replace(/^[a-z]+:/, '')]
  return text !== null && names.map(foldName).includes(foldName(text))
}

/** What a row of `actors` grants at a moment. */
type Granted = Pick<Access, 'scopes' | 'merchants' | 'networks' | 'principal'> & {
  roles?: readonly string[]
}

/**
 * Finds what a request was let in with and has been taken away since.
 * @param now undefined when the access has ended
 */
export function findLoss(access: Access, now: Granted | undefined): DomainError | undefined {
  if (!now || now.principal !== access.principal) {
    const what = access.isPerson
      ? 'The access of this person, or this session, has ended'
      : 'The API key is revoked or expired'
    return new DomainError('unauthenticated', what)
  }
  const granted = [...now.scopes, ...(now.roles ?? [])]
  const missing = [...access.required].find((one) => !granted.includes(one))
  if (missing) return new DomainError('scope_missing', `${missing} was taken away in this moment`)
  const covers = (code: string) =>
    now.merchants.includes(EVERY_MERCHANT) || now.merchants.includes(code)
  const coversAll = !access.coversAll || now.merchants.includes(EVERY_MERCHANT)
  if (!coversAll || !access.merchants.every(covers)) {
    return new DomainError(
      'scope_missing',
      'The accounts have changed in this moment; repeat the request',
    )
  }
  if (now.networks === null || access.address === undefined) return undefined
  if (compileNetworks(now.networks.flatMap((one) => parseCidr(one) ?? []))(access.address))
    return undefined
  return new DomainError('network_not_allowed', `This key may not be used from ${access.address}`)
}

/**
 * Locks who acts until the commit: nothing is committed with a key, a session, a role, an account or a network once it
 * was taken away. Call it after the last lock that the unit of work waits for, and before any lock of webhook endpoints or sessions:
 * an end of access takes those after this one.
 * @throws DomainError of `findLoss`
 */
export async function lockActor(tx: Tx, access: Access): Promise<void> {
  const [row] = await tx<(Granted & { roles: string[] })[]>`
    select k.scopes, k.roles, k.merchants, k.networks, k.principal from actors as k
    where k.id = ${access.id} and ${tx.unsafe(LIVE_SQL)} for share`
  const isOver = access.sessionId !== undefined && !(await lockSession(tx, access.sessionId))
  const now = isOver
    ? undefined
    : row && { ...row, scopes: [...row.scopes, ...listScopes(row.roles)] }
  const loss = findLoss(access, now)
  if (loss) throw loss
}

/** Two writes of a session at once take turns: either may be the one that ends it. @returns whether it is live */
async function lockSession(tx: Tx, id: string): Promise<boolean> {
  const live = await tx`
    select from sessions as s where s.id = ${id} and ${isLiveSession(tx)} for no key update`
  return live.length > 0
}
