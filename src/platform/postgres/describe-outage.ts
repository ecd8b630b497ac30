import { readErrorCode } from '../error-code.ts'
import type { Condition } from '../telemetry/outage-log.ts'
import { CONNECTIONS_BUSY, isDatabaseUnavailable, READ_ONLY } from './errors.ts'

const REFUSED =
  'requests get 503 and notifications 500, so that their senders repeat them, and background work waits'

/** In this outage some statements still succeed. */
export const DISK = 'disk'

/** The database answers too late for anybody to wait, or not at all. */
export const BACKLOG: Condition = {
  name: 'backlog',
  what: 'the database does not keep up',
  meanwhile:
    'notifications that cannot be committed in time and requests that get no connection get 503, so that their senders repeat them, and metrics may be missing',
  look: 'the load and the disk of the database server, long transactions and locks in pg_stat_activity, and pg_stat_replication if commits wait for a standby',
}

const CONDITIONS: Readonly<Record<string, Omit<Condition, 'code'>>> = {
  '53100': {
    name: DISK,
    what: 'the disk of the database is full',
    meanwhile: `what writes is refused: ${REFUSED}; reads are answered`,
    look: 'the free space of the database server',
    replaces: ['database'],
  },
  '53200': {
    name: 'memory',
    what: 'the database server has no memory left',
    meanwhile: REFUSED,
    look: 'the memory of the database server, and what else runs there',
  },
  '53300': {
    name: 'connections',
    what: 'the database has no connection left',
    meanwhile: REFUSED,
    look: 'pg_stat_activity, DATABASE_POOL of all processes, and max_connections of the server',
  },
  [READ_ONLY]: {
    name: 'writes',
    what: 'no server of the database accepts writes',
    meanwhile: REFUSED,
    look: 'the servers of DATABASE_URL: a standby may have to be promoted',
  },
  [CONNECTIONS_BUSY]: BACKLOG,
  COMMIT_UNREPLICATED: {
    name: 'standby',
    what: 'no standby of the database confirms commits',
    meanwhile:
      'what was committed may be lost with the primary, so it is not acknowledged: requests get 503 and notifications 500',
    look: 'the standby, pg_stat_replication, and synchronous_standby_names of the primary',
  },
}

const UNREACHABLE: Omit<Condition, 'code'> = {
  name: 'database',
  what: 'the database is unreachable',
  meanwhile: REFUSED,
  look: 'the database server, the network or a proxy or pooler before it, and DATABASE_URL',
  // A server that cannot write its log stops, and then answers no reads either.
  replaces: [DISK],
}

export function describeOutage(error: unknown): Condition | undefined {
  if (!isDatabaseUnavailable(error)) return undefined
  const code = readCode(error)
  return { ...((code && CONDITIONS[code]) || UNREACHABLE), code }
}

/** The query builder wraps the driver's errors as their cause. */
function readCode(error: unknown): string | undefined {
  return error instanceof Error ? (readErrorCode(error) ?? readCode(error.cause)) : undefined
}
