import postgres from 'postgres'
import { READ_ONLY } from './errors.ts'

/** The messages that are read (Postgres 17, 53.7): BackendKeyData, ErrorResponse, ParameterStatus, ReadyForQuery. */
export type ReadMessage = 'K' | 'E' | 'S' | 'Z'

const READ: Readonly<Record<number, ReadMessage>> = { 75: 'K', 69: 'E', 83: 'S', 90: 'Z' }

/** The type and the length of a message. */
const HEAD_BYTES = 5
const NOTHING = Buffer.alloc(0)

const [DATA_ROW, COMMAND_COMPLETE] = Buffer.from('DC')

/** A CommandComplete without a tag. */
const END_OF_ROWS = Buffer.from('C\0\0\0\x05\0')

/** Why a session must end: `writes` means that the server accepts none, so all sessions must end. */
export type Refusal = { of: 'session' | 'writes'; error: Error }

type Reading = {
  /** Judges a message; an error may be passed more than once. A refusal ends the session. */
  judge(type: ReadMessage, body: Buffer): Refusal | undefined
  /** Returns whether the server still owes a ReadyForQuery. Errors are held back until it comes. */
  isOwed(): boolean
  /** Returns whether messages up to the next ReadyForQuery are dropped, because they answer our own statement. */
  isOurs(): boolean
}

/**
 * Creates a reader of the server's messages, which may arrive in chunks of any size. An error among the rows of an answer
 * is preceded by the end of the rows, because the driver (3.4.9) counts rows up to that, and would leave the first
 * places of the next answer empty (porsager/postgres 1119, 1181). Those of a session that ends are for the first
 * statement of the next one, which is the driver's own and skips empty places.
 * @returns a function that returns the part of a chunk for the driver, up to a message that ends the session
 */
export function createReader({ judge, isOwed, isOurs }: Reading) {
  /** The beginning of a message whose rest has not arrived yet. */
  let held = NOTHING
  /** Bytes still to come of a message that was partly passed on. */
  let unread = 0
  let isInRows = false
  return (chunk: Buffer): { passed: Buffer; refusal?: Refusal } => {
    const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    let at = unread
    let from = 0
    const passed: Buffer[] = []
    while (at + HEAD_BYTES <= bytes.length) {
      const type = READ[bytes[at] ?? 0]
      const next = at + 1 + bytes.readUInt32BE(at + 1)
      const isDropped = isOurs()
      if (bytes[at] === DATA_ROW) isInRows = !isDropped
      else if (bytes[at] === COMMAND_COMPLETE) isInRows = false
      if ((type || isDropped) && next > bytes.length) break
      const refusal = type && judge(type, bytes.subarray(at + HEAD_BYTES, next))
      if (refusal) return { passed: join([...passed, bytes.subarray(from, at)]), refusal }
      if (type === 'E' && !isDropped && isOwed() && !hasReady(bytes, next)) break
      if (isDropped) {
        passed.push(bytes.subarray(from, at))
        from = next
      } else if (type === 'E' && isInRows) {
        passed.push(bytes.subarray(from, at), END_OF_ROWS)
        from = at
        isInRows = false
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

function hasReady(bytes: Buffer, from: number): boolean {
  let at = from
  while (at + HEAD_BYTES < bytes.length && READ[bytes[at] ?? 0] !== 'Z') {
    at += 1 + bytes.readUInt32BE(at + 1)
  }
  return at + HEAD_BYTES < bytes.length
}

/** The fields of an error (Postgres 17, 53.8), by their names in the driver. */
const FIELDS: Readonly<Record<string, string>> = {
  V: 'severity',
  C: 'code',
  M: 'message',
  D: 'detail',
  H: 'hint',
  R: 'routine',
}

/**
 * Server functions after whose errors the driver repeats the statement. In a transaction, the repetition comes after
 * a COMMIT that was answered with ROLLBACK, so the statement would be committed alone. Outside of one, it and a
 * statement that is sent at that moment get each other's answers.
 */
const SENT_AGAIN = /^(FetchPreparedStatement|RevalidateCachedQuery|transformAssignedExpr)$/

type SessionState = {
  /** The session itself is read-only, whatever its server accepts. */
  readOnly: boolean
  /** It answers a statement of ours. If that fails, commits could be reported too soon. */
  isOurs: boolean
}

/** Reads an error, and decides whether it ends the session or, as a refusal to write, all sessions. */
export function readError(body: Buffer, { readOnly, isOurs }: SessionState): Refusal | undefined {
  const fields: Record<string, string> = { message: 'the server ended the session' }
  for (const field of body.toString().split('\0')) {
    const name = FIELDS[field.charAt(0)]
    if (name) fields[name] = field.slice(1)
  }
  const isFatal = fields.severity === 'FATAL' || fields.severity === 'PANIC'
  const isRepeated = SENT_AGAIN.test(fields.routine ?? '')
  if (isFatal || isRepeated || isOurs) return { of: 'session', error: createServerError(fields) }
  if (readOnly || fields.code !== READ_ONLY) return undefined
  return { of: 'writes', error: createServerError(fields) }
}

/** Reads a parameter, which the server reports when a session opens and when it changes. */
export function readParameter(body: Buffer, readOnly: boolean): Refusal | undefined {
  const [name, value] = body.toString().split('\0')
  const isTold =
    name === 'in_hot_standby' || (name === 'default_transaction_read_only' && !readOnly)
  if (!isTold || value !== 'on') return undefined
  const message = 'the server accepts no writes: it is a standby, or read-only'
  const error = createServerError({ severity: 'ERROR', code: READ_ONLY, message })
  return { of: 'writes', error }
}

/** The driver's error with these fields. Its types omit the constructor's parameter. */
function createServerError(fields: Readonly<Record<string, string>>): Error {
  return Reflect.construct(postgres.PostgresError, [fields])
}

const [QUERY, SYNC, FLUSH] = Buffer.from('QSH')

/**
 * Counts the messages of the driver that ReadyForQuery will answer, and notes a final Flush, whose answer has no end.
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

/** Writes a simple query. Its answer is dropped before it reaches the driver. */
export function writeQuery(text: string): Buffer {
  const message = Buffer.from(`Q\0\0\0\0${text}\0`)
  message.writeUInt32BE(message.length - 1, 1)
  return message
}

/** Drops statements kept by the driver before the startup message, which has no type: its length starts with 0. */
export function dropUnsent(bytes: Buffer): Buffer {
  let at = 0
  while (at + HEAD_BYTES <= bytes.length && bytes[at] !== 0) at += 1 + bytes.readUInt32BE(at + 1)
  return bytes.subarray(at)
}

const CANCEL_CODE = 80_877_102

/** Returns whether a connection's first bytes show that it only cancels a statement of another one. */
export function isCancelRequest(first: Buffer): boolean {
  return first.length === 16 && first.readUInt32BE(4) === CANCEL_CODE
}
