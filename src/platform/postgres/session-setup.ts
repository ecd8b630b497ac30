import { READ_ONLY } from './errors.ts'
import { createServerError, readFields, type SessionEnd } from './session-end.ts'

/**
 * What every session pins, whatever the server, the role or the URL sets: a commit is reported when it is on disk,
 * here and on the standby that it waits for (`remote_apply` waits for more, and stays), and the warning that it did
 * not wait is sent. The last column is `on` where the server accepts no writes: a standby, or a primary that was set
 * aside.
 */
const writeStatement = (more = '') => `select set_config('client_min_messages', 'warning', false),
  set_config('synchronous_commit',
    case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end, false),${more}
  current_setting('transaction_read_only')`

/** The Query message (Postgres 17, 53.7). */
export const SET_UP = createQuery(writeStatement())

/**
 * The same for a session that writes nothing. It begins only on a server that accepts writes, too: the setting counts
 * from the next transaction on.
 */
export const SET_UP_READS = createQuery(
  writeStatement(" set_config('default_transaction_read_only', 'on', false),"),
)

/** The end of a DataRow message whose last column is `on`. */
const ENDS_WITH_ON = Buffer.from('\0\0\0\u0002on')

function createQuery(statement: string): Buffer {
  const text = Buffer.from(`${statement}\0`)
  const head = Buffer.from('Q\0\0\0\0')
  head.writeUInt32BE(text.length + 4, 1)
  return Buffer.concat([head, text])
}

/** Reads the row of the statement: the session ends if the server is read-only. */
export function readSetUpRow(row: Buffer): SessionEnd | undefined {
  if (!row.subarray(-ENDS_WITH_ON.length).equals(ENDS_WITH_ON)) return undefined
  const message = 'the server accepts no writes: it is a standby, or read-only'
  const fields = { severity: 'ERROR', code: READ_ONLY, message }
  return { createError: () => createServerError(fields), scope: 'server' }
}

/** Ends a session that the server does not let be set up. */
export function refuseSession(error: Buffer): SessionEnd {
  const fields = readFields(error)
  return { createError: () => createServerError(fields), scope: 'session' }
}
