import postgres from 'postgres'
import { READ_ONLY, UnreplicatedError } from './errors.ts'

/** Why a session ends before the driver ends it. */
export type SessionEnd = {
  /** Creates the error of what is in flight. */
  createError(): Error
  /**
   * What ends with it: only this session; all of the pool, because what is in flight there has no result either; or the
   * attempt to use this server, before the session was open.
   */
  scope: 'session' | 'pool' | 'server'
}

/** The fields of an error or a notice (Postgres 17, 53.8) that the driver names. */
const NAMES: Readonly<Record<string, string>> = {
  V: 'severity',
  C: 'code',
  M: 'message',
  D: 'detail',
  H: 'hint',
  R: 'routine',
}

/** The function of the server that waits for the standby. The text of its warnings depends on `lc_messages`. */
const SYNC_WAIT = 'SyncRepWaitForLSN'

/**
 * Judges an error or a notice in an open session:
 * * a FATAL error ends the session;
 * * a statement refused because the server is read-only means that another server is the primary now, so every
 *   session has to be opened anew;
 * * a commit whose wait for the standby was cancelled is done on the primary only, although the server reports it as
 *   committed. It must not be acknowledged, nor may any other commit in flight: the next ones may have read it.
 * @param readOnly the session itself refuses to write, whatever the server accepts
 * @returns undefined when the session continues
 */
export function judgeMessage(
  isNotice: boolean,
  body: Buffer,
  readOnly = false,
): SessionEnd | undefined {
  const fields = readFields(body)
  const { severity, code, routine, message = '' } = fields
  if (isNotice) {
    const isSyncWait = routine === SYNC_WAIT || message.includes('synchronous replication')
    return isSyncWait
      ? { createError: () => new UnreplicatedError(message), scope: 'pool' }
      : undefined
  }
  const isFatal = severity === 'FATAL' || severity === 'PANIC'
  if (!isFatal && (readOnly || code !== READ_ONLY)) return undefined
  return { createError: () => createServerError(fields), scope: isFatal ? 'session' : 'pool' }
}

/** The fields by the driver's names. */
export function readFields(body: Buffer): Record<string, string> {
  const read: Record<string, string> = {}
  for (const field of body.toString('utf8').split('\0')) {
    const name = NAMES[field.charAt(0)]
    if (name) read[name] = field.slice(1)
  }
  return read
}

/** The driver's error with these fields. */
export function createServerError(fields: Readonly<Record<string, string>>): Error {
  // The driver's types omit the constructor's parameter.
  return Reflect.construct(postgres.PostgresError, [
    { message: 'the server ended the session', ...fields },
  ])
}
