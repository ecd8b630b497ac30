import type { Socket } from 'node:net'
import { isConnectionLost } from './errors.ts'
import {
  createReader,
  dropUnsent,
  isCancelRequest,
  type ReadMessage,
  type Refusal,
  readError,
  readParameter,
  readRequests,
  writeQuery,
} from './messages.ts'
import { type Line, openSessions } from './statement-limits.ts'
import { type Address, createConnectionError } from './tls.ts'

/** State shared by all sessions with a database: those of a pool, and those of its reads. */
export type Servers = {
  readonly count: number
  /** The server to connect to: the last one that served, or the next one after a failure. */
  preferred: number
  /** Sessions that failed since the last one that lasted. */
  failures: number
  /** When the latest of them failed (ms, monotonic). */
  failedAt: number
  /** Attempts that failed since a session last opened. */
  refusals: number
  readonly open: Set<Session>
}

/** `end` closes the session at once; whatever is in flight fails with the error. */
type Session = { end(error: Error): void }

type SessionOptions = {
  servers: Servers
  index: number
  address: Address
  /** Is told when the session cannot be opened. Without a line, as for a listener, the driver is told. */
  line: Line | undefined
  connectMs: number
  /** How long the server may send nothing while it owes an answer (ms). */
  silenceMs: number
  isReachable(): Promise<boolean>
  /** A session that only reads is not ended because its server refuses writes. */
  readOnly: boolean
}

/**
 * Guards a socket on behalf of the driver (postgres 3.4.9, connection.js), which carries over state from one session
 * to the next:
 *
 * - An error is passed on together with the close. In between, the driver would send statements to the closed
 *   connection, keep them, and take the first messages of its next session for their results: a `commit` that no server
 *   received would be reported as done.
 * - A FATAL error is also passed on with the close, and any other error with the end of the answer. Otherwise, the
 *   driver would keep it and reject the first statement of its next session with it.
 * - A session ends when the driver would repeat a statement: in a transaction it would do so after the COMMIT.
 * - What the driver kept from its last session is not sent in the next one.
 * - A session that cannot be opened is closed without an error, so that the driver connects again, and the line tells
 *   everyone who waits. The driver would tell only one, and lose a place in its pool for each unit of work that waits.
 * - A session whose commits would be reported before they are durable is set to wait.
 * - When a server refuses writes, all sessions end, because another server has become the primary.
 */
export function guardSession<S extends Socket>(socket: S, options: SessionOptions): S {
  const { servers, readOnly } = options
  const emit: (event: string | symbol, ...given: unknown[]) => boolean = socket.emit.bind(socket)
  const { write } = socket
  let failure: unknown
  const session: Session = {
    end(error) {
      failure ??= error
      socket.destroy()
    },
  }
  const phases = followPhases(session, options)
  const watch = watchAnswers(options, session)
  const { addPreparation, ...judging } = createJudge(readOnly, phases, watch)
  const read = createReader({ isOwed: watch.isOwed, ...judging })

  function receive(chunk: Buffer): void {
    const { passed, refusal } = read(chunk)
    watch.onReceived()
    if (passed.length > 0) emit('data', passed)
    if (!refusal) return
    const isOfAll = refusal.of === 'writes' && servers.open.has(session)
    for (const one of isOfAll ? servers.open : [session]) one.end(refusal.error)
  }
  socket.write = (...given: unknown[]): boolean => {
    const [written, ...rest] = given
    if (!Buffer.isBuffer(written)) return Reflect.apply(write, socket, given)
    const bytes = phases.isOpen() ? addPreparation(written) : written
    if (phases.isOpen()) watch.onSent(bytes)
    const sent = phases.begin(bytes) ? dropUnsent(bytes) : bytes
    return Reflect.apply(write, socket, [sent, ...rest])
  }
  function close(): void {
    watch.stop()
    const told = phases.close(failure)
    if (told !== undefined) emit('error', told)
    emit('close', told !== undefined)
  }
  socket.emit = (event: string | symbol, ...given: unknown[]): boolean => {
    const [first] = given
    if (event === 'error') failure ??= first
    else if (event === 'data' && Buffer.isBuffer(first)) receive(first)
    // Until the driver has taken the socket, nobody would hear of it.
    else if (event === 'close') socket.listenerCount('data') > 0 ? close() : setImmediate(close)
    else return emit(event, ...given)
    return true
  }
  return socket
}

/** Judges the server's messages: whether the session must end. */
function createJudge(
  readOnly: boolean,
  phases: ReturnType<typeof followPhases>,
  watch: ReturnType<typeof watchAnswers>,
) {
  let preparing: 'due' | 'sent' | 'done' = 'due'
  const isOurs = () => preparing === 'sent'
  return {
    isOurs,
    /** Puts the preparation of the session before the first statement, so that both travel together. */
    addPreparation(bytes: Buffer): Buffer {
      if (preparing !== 'due') return bytes
      preparing = 'sent'
      return Buffer.concat([PREPARE_SESSION, bytes])
    },
    judge(type: ReadMessage, body: Buffer): Refusal | undefined {
      if (type === 'E') return readError(body, { readOnly, isOurs: isOurs() })
      if (type === 'S') return readParameter(body, readOnly)
      if (type === 'K' && body.length >= 8) phases.name(body)
      if (type !== 'Z') return undefined
      watch.onAnswered()
      phases.open()
      if (isOurs()) preparing = 'done'
      return undefined
    },
  }
}

/**
 * Raises the level of commits. It is set even if it is high enough, so that a reload of the server's settings does
 * not lower it. On Citus, it also forces custom plans: Citus can plan an upsert only with the parameters' values.
 */
const PREPARE_SESSION = writeQuery(
  `select pg_catalog.set_config('synchronous_commit', case when l.level in ('on', 'remote_apply') then l.level else 'on' end, false)
   from pg_catalog.current_setting('synchronous_commit') as l (level);
   select pg_catalog.set_config('plan_cache_mode', 'force_custom_plan', false)
   from pg_catalog.pg_extension where extname = 'citus'`,
)

/** A session that ends sooner than this counts as failed (ms). */
const LASTING_MS = 2_000

/** Follows a session from connecting to its end, and records which server to try next, and how soon. */
function followPhases(session: Session, { servers, index, line, ...options }: SessionOptions) {
  const { address, connectMs, readOnly } = options
  let phase: 'connecting' | 'opening' | 'open' | 'lasting' | 'cancelling' = 'connecting'
  let name = ''
  const giveUp = () => session.end(createConnectionError('CONNECT_TIMEOUT', address))
  let timer = setTimeout(giveUp, connectMs)
  return {
    isOpen: () => phase === 'open' || phase === 'lasting',
    /** @returns whether these are the first bytes that the driver sends */
    begin(bytes: Buffer): boolean {
      if (phase !== 'connecting') return false
      phase = isCancelRequest(bytes) ? 'cancelling' : 'opening'
      return true
    },
    name(key: Buffer): void {
      name = `${key.readUInt32BE(0)} ${key.readUInt32BE(4)}`
      openSessions.add(name)
    },
    open(): void {
      if (phase !== 'opening') return
      phase = 'open'
      servers.open.add(session)
      servers.refusals = 0
      line?.onOpened()
      // Reads may also be served by a former primary.
      if (!readOnly) servers.preferred = index
      clearTimeout(timer)
      timer = setTimeout(() => {
        phase = 'lasting'
        servers.failures = 0
      }, LASTING_MS).unref()
    },
    /** @returns the error for the driver. Without one, it connects again unless it has already used the session */
    close(failure: unknown): unknown {
      clearTimeout(timer)
      openSessions.delete(name)
      servers.open.delete(session)
      if (phase === 'cancelling') return failure
      if (phase === 'open' || phase === 'lasting') line?.onClosed()
      if (phase !== 'lasting') {
        servers.failures += 1
        servers.failedAt = performance.now()
        if (servers.preferred === index) servers.preferred = (index + 1) % servers.count
      }
      if (phase === 'connecting' || phase === 'opening') {
        servers.refusals += 1
        // Every server gets one try, because any may be the one that accepts writes.
        if (servers.refusals % servers.count > 0) return undefined
        const refusal = failure ?? createConnectionError('CONNECTION_CLOSED', address)
        if (!line) return refusal
        line.refuse(refusal)
        return undefined
      }
      // Whatever the cause, those with statements in the session are told that the connection is lost.
      return isConnectionLost(failure)
        ? failure
        : createConnectionError('CONNECTION_CLOSED', address, failure)
    },
  }
}

/** The server's reachability is checked this many times before silence ends the session. */
const ASKED_TIMES = 8
const MAX_STEP_MS = 5_000

/** Ends a session whose server vanished: TCP would need 15 minutes. A busy server still answers a new connection. */
function watchAnswers(options: SessionOptions, session: Session) {
  const { silenceMs, isReachable, address } = options
  const stepMs = Math.min(MAX_STEP_MS, silenceMs / ASKED_TIMES)
  let owed = 0
  let isFlushed = false
  let received = 0
  let silentMs = 0
  let timer: NodeJS.Timeout | undefined
  async function check(): Promise<void> {
    silentMs += stepMs
    timer?.refresh()
    const before = received
    const isGone = silentMs >= silenceMs || !(await isReachable())
    if (isGone && received === before) session.end(createConnectionError('ETIMEDOUT', address))
  }
  function stop(): void {
    clearTimeout(timer)
    timer = undefined
  }
  return {
    stop,
    /** Returns whether the server still owes a ReadyForQuery. */
    isOwed: () => owed > 0,
    onSent(messages: Buffer): void {
      const requests = readRequests(messages)
      owed += requests.count
      isFlushed = requests.isFlushed
      if (timer) return
      silentMs = 0
      timer = setTimeout(check, stepMs)
    },
    onAnswered(): void {
      owed = Math.max(0, owed - 1)
    },
    onReceived(): void {
      received += 1
      silentMs = 0
      if (owed === 0 && !isFlushed) stop()
      else timer?.refresh()
    },
  }
}
