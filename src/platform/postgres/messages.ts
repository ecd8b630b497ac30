import postgres from 'postgres'
import { READ_ONLY } from './errors.ts'

/** Messages of a server that are read (Postgres 17, 53.7): BackendKeyData, ErrorResponse, ParameterStatus, ReadyForQuery. */
export type ReadMessage = 'K' | 'E' | 'S' | 'Z'

const READ: Readonly<Record<number, ReadMessage>> = { 75: 'K', 69: 'E', 83: 'S', 90: 'Z' }

/** Type and length of a message. */
const HEAD_BYTES = 5
const NOTHING = Buffer.alloc(0)

/** Why a session cannot go on; `writes` when its server accepts none, so that no session can. */
export type Refusal = { of: 'session' | 'writes'; error: Error }

type Reading = {
  /** Reads a message, an error perhaps again; what it returns ends the session. */
  judge(type: ReadMessage, body: Buffer): Refusal | undefined
  /** Whether the server will say that it is ready again: an error is held back until it has. */
  isOwed(): boolean
  /** Whether the next message, up to the one that says that the server is ready, is not for the driver. */
  isOurs(): boolean
}

/**
 * Creates a reader of what a server sends, however it is cut into chunks.
 * @returns a function that returns what a chunk holds for the driver, up to the message that ends the session
 */
export function createReader({ judge, isOwed, isOurs }: Reading) {
  /** A message to be read, or the head of any, of which the rest has not come yet. */
  let held = NOTHING
  /** Bytes still to come of a message that has been passed on in part. */
  let unread = 0
  return (chunk: Buffer): { passed: Buffer; refusal?: Refusal } => {
    const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    let at = unread
    let from = 0
    const passed: Buffer[] = []
    while (at + HEAD_BYTES <= bytes.length) {
      const type = READ[bytes[at] ?? 0]
      const next = at + 1 + bytes.readUInt32BE(at + 1)
      const isDropped = isOurs()
      if ((type || isDropped) && next > bytes.length) break
      const refusal = type && judge(type, bytes.subarray(at + HEAD_BYTES, next))
      if (refusal) return { passed: join([...passed, bytes.subarray(from, at)]), refusal }
      if (type === 'E' && !isDropped && isOwed() && !hasReady(bytes, next)) break
      if (isDropped) {
        passed.push(bytes.subarray(from, at))
        from = next
      }
      at = next
    }
    const end = Math.min(at, bytes.length)
    unread = at - end
    held = end < bytes.length ? Buffer.from(bytes.subarray(end)) : NOTHING
    return { passed: join([...passed, bytes.subarray(from, end)]) }
  }
}

function join(parts: Buffer[]): Buffer {
  const [only = NOTHING, ...others] = parts.filter(({ length }) => length > 0)
  return others.length === 0 ? only : Buffer.concat([only, ...others])
}

/** Whether a whole ReadyForQuery is among the messages from there on. */
function hasReady(bytes: Buffer, from: number): boolean {
  let at = from
  while (at + HEAD_BYTES < bytes.length && READ[bytes[at] ?? 0] !== 'Z') {
    at += 1 + bytes.readUInt32BE(at + 1)
  }
  return at + HEAD_BYTES < bytes.length
}

/** The fields of an error (Postgres 17, 53.8) by the driver's names. */
const FIELDS: Readonly<Record<string, string>> = {
  V: 'severity',
  C: 'code',
  M: 'message',
  D: 'detail',
  H: 'hint',
  R: 'routine',
}

/**
 * The functions of the server after whose errors the driver sends the statement again. In a transaction that is behind
 * its COMMIT, which was answered with ROLLBACK: the statement would be committed alone.
 */
const SENT_AGAIN = /^(FetchPreparedStatement|RevalidateCachedQuery|transformAssignedExpr)$/

type SessionState = {
  /** The session itself refuses to write, whatever the server accepts. */
  readOnly: boolean
  isInTransaction: boolean
  /** It answers a statement of ours, which nobody else learns of. */
  isOurs: boolean
}

/** Reads an error, and whether it ends the session, or as a refusal to write all of them. */
export function readError(
  body: Buffer,
  { readOnly, isInTransaction, isOurs }: SessionState,
): Refusal | undefined {
  const fields: Record<string, string> = { message: 'the server ended the session' }
  for (const field of body.toString().split('\0')) {
    const name = FIELDS[field.charAt(0)]
    if (name) fields[name] = field.slice(1)
  }
  const isFatal = fields.severity === 'FATAL' || fields.severity === 'PANIC'
  const isRepeated = isInTransaction && SENT_AGAIN.test(fields.routine ?? '')
  if (isFatal || isRepeated || isOurs) return { of: 'session', error: createServerError(fields) }
  if (readOnly || fields.code !== READ_ONLY) return undefined
  return { of: 'writes', error: createServerError(fields) }
}

/** Reads a parameter. A server reports these when a session opens, and when they change. */
export function readParameter(body: Buffer, readOnly: boolean): Refusal | undefined {
  const [name, value] = body.toString().split('\0')
  const isTold =
    name === 'in_hot_standby' || (name === 'default_transaction_read_only' && !readOnly)
  if (!isTold || value !== 'on') return undefined
  const message = 'the server accepts no writes: it is a standby, or read-only'
  const error = createServerError({ severity: 'ERROR', code: READ_ONLY, message })
  return { of: 'writes', error }
}

/** The driver's error with these fields; its types omit the constructor's parameter. */
function createServerError(fields: Readonly<Record<string, string>>): Error {
  return Reflect.construct(postgres.PostgresError, [fields])
}

const QUERY = 'Q'.charCodeAt(0)
const SYNC = 'S'.charCodeAt(0)
const FLUSH = 'H'.charCodeAt(0)

/**
 * Reads what the driver sends, in whole messages: how many the server answers with ReadyForQuery, and whether the last
 * is a Flush, whose answer nothing ends.
 */
export function readRequests(messages: Buffer): { count: number; isFlushed: boolean } {
  let count = 0
  let type: number | undefined
  for (let at = 0; at + HEAD_BYTES <= messages.length; at += 1 + messages.readUInt32BE(at + 1)) {
    type = messages[at]
    if (type === QUERY || type === SYNC) count += 1
  }
  return { count, isFlushed: type === FLUSH }
}

/** A simple query, whose answer is left out of what the driver gets. */
export function writeQuery(text: string): Buffer {
  const message = Buffer.from(`Q\0\0\0\0${text}\0`)
  message.writeUInt32BE(message.length - 1, 1)
  return message
}

/** Leaves out statements that the driver kept before the startup message, which has no type: its length begins with 0. */
export function dropUnsent(bytes: Buffer): Buffer {
  let at = 0
  while (at + HEAD_BYTES <= bytes.length && bytes[at] !== 0) at += 1 + bytes.readUInt32BE(at + 1)
  return bytes.subarray(at)
}

/** The state of a session that is ready (Postgres 17, 53.7, ReadyForQuery). */
export function isIdle(ready: Buffer): boolean {
  return ready[0] === 'I'.charCodeAt(0)
}

const CANCEL_CODE = 80_877_102

/** Whether a connection was opened only to cancel what another one does, by the first that is sent. */
export function isCancelRequest(first: Buffer): boolean {
  return first.length === 16 && first.readUInt32BE(4) === CANCEL_CODE
}
