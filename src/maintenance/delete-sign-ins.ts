import type { Context } from '../context.ts'

/** How long a session is kept after its end (days): what was done in it stands in the audit log. */
const SESSION_DAYS = 30

/** Rows of a table per statement. */
const BATCH = 1_000

/**
 * Deletes sign-in links that can no longer be used, and sessions that are long over: a batch of each.
 * @returns the number of rows deleted; 0 when none was left
 */
export async function deleteSignIns({ sql }: Pick<Context, 'sql'>): Promise<number> {
  const limit = sql.unsafe(String(BATCH))
  const links = await sql`
    delete from sign_in_links where token_hash in (
      select token_hash from sign_in_links where expires_at < now() - interval '1 day' limit ${limit})`
  const sessions = await sql`
    delete from sessions where id in (
      select id from sessions
      where least(expires_at, ended_at) < now() - ${SESSION_DAYS} * interval '1 day' limit ${limit})`
  return links.count + sessions.count
}
