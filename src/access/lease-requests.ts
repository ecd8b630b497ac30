import { withTimeout } from '../platform/concurrency/timing.ts'
import type { Sql } from '../platform/postgres/types.ts'

/** Requests that this process may let in until the minute ends. */
export type RequestLease = {
  granted: number
  /** What no process has reserved of the minute yet. */
  unreserved: number
  /** The processes that have reserved requests of this key in this minute, this one included. */
  processes: number
  /** How long the minute of the database still lasts (ms). */
  endsInMs: number
}

/** A lease that takes longer is given up: a database that stalls must not keep cached reads waiting (ms). */
const LEASE_TIMEOUT_MS = 2_000

type LeaseRow = {
  reserved: number | null
  granted: number | null
  processes: number | null
  endsInMs: number
}

/**
 * Reserves a part of what is left of a key's minute, counted over all processes by the database's clock. Of what is left,
 * not of the whole: then something remains for the next process, however many there are.
 * A count that a crash may lose need not wait for the disk, nor for a standby.
 * @param parts how many such parts the rest of a minute has
 */
export async function leaseRequests(
  sql: Sql,
  lease: { chainId: string; limit: number; parts: number; processId: string },
): Promise<RequestLease> {
  const { chainId, limit, parts, processId } = lease
  const first = Math.ceil(limit / parts)
  const [row] = await withTimeout(
    LEASE_TIMEOUT_MS,
    sql<LeaseRow[]>`
      with lease as (
        insert into api_key_minutes as m (key_id, minute, reserved, granted, processes)
        values (${chainId}, date_trunc('minute', now()), ${first}, ${first}, array[${processId}::text])
        on conflict (key_id, minute) do update set
          reserved = m.reserved + ceil((${limit}::numeric - m.reserved) / ${parts}::int),
          granted = ceil((${limit}::numeric - m.reserved) / ${parts}::int),
          processes = case when m.processes @> excluded.processes then m.processes
            else m.processes || excluded.processes end
        where m.reserved < ${limit}
        returning reserved, granted, cardinality(processes) as processes
      )
      select set_config('synchronous_commit', 'off', true), reserved, granted, processes, extract(epoch from
        date_trunc('minute', now()) + interval '1 minute' - now())::float8 * 1000 as "endsInMs"
      from (select) as one left join lease on true`,
  )
  const { reserved = null, granted = null, processes = null, endsInMs = 60_000 } = row ?? {}
  return {
    granted: granted ?? 0,
    unreserved: Math.max(0, limit - (reserved ?? limit)),
    processes: processes ?? 1,
    endsInMs,
  }
}
