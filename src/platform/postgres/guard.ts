import type { Socket } from 'node:net'
import { isConnectionLost } from './errors.ts'
import {
  createReader,
  dropUnsent,
  isCancelRequest,
  isIdle,
  type ReadMessage,
  type Refusal,
  readError,
  readParameter,
  readRequests,
  writeQuery,
} from './messages.ts'
import { type Line, openSessions } from './statement-limits.ts'
import { type Address, createConnectionError } from './tls.ts'

/** What the sessions with a database share: those of a pool, and those of the reads beside it. */
export type Servers = {
  readonly count: number
  /** The one to connect to: it served last, or comes after one that failed. */
  preferred: number
  /** Sessions that failed since the last one that lasted. */
  failures: number
  /** When the newest of them did (ms, monotonic). */
  failedAt: number
  /** Attempts that failed since the last session that opened. */
  refusals: number
  /** The sessions in use. */
  readonly open: Set<Session>
}

/** `end` fails what is in flight with this error, at once. */
type Session = { end(error: Error): void }

type SessionOptions = {
  servers: Servers
  /** The server that it is with. */
  index: number
  address: Address
  /** Who learns that it could not be opened, in the driver's place; a listener learns it from the driver. */
  line: Line | undefined
  /** How long it may take to open (ms). */
  connectMs: number
  /** How long the server may owe an answer and send nothing (ms). */
  silenceMs: number
  /** Whether the server answers a new connection. */
  isReachable(): Promise<boolean>
  /** It is to write nothing: then a server that refuses writes is no reason to end it. */
  readOnly: boolean
}

/**
 * Guards a socket for the driver (postgres 3.4.9, connection.js), which keeps what it knows of a session beyond its
 * end.
 *
 * - An error is told together with the close. Between the two the driver would send statements to the closed
 *   connection, keep them, and take the first messages of its next session for their results: a `commit` that no server
 *   received would be reported as done.
 * - A FATAL error is told with the close, too, and any other one with the end of the answer: the driver would keep it,
 *   and reject the first statement of its next session with it.
 * - A session ends if the driver would repeat a statement of a transaction after its COMMIT.
 * - What the driver kept of its last session is not sent in the next one.
 * - A session that could not be opened is closed without an error, so that the driver connects again; the line tells
 *   who waits. The driver would tell one only, and a unit of work would keep its place, and lose the pool a connection.
 * - A session whose commits would be reported before they are durable is set to wait for that.
 * - Once a server refuses writes all sessions end, because another server is the primary now.
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
    // Before the driver has taken the socket nobody would be told.
    else if (event === 'close') socket.listenerCount('data') > 0 ? close() : setImmediate(close)
    else return emit(event, ...given)
    return true
  }
  return socket
}

/** Judges what the server sends: why the session has to end, and whether it is between two units of work. */
function createJudge(
  readOnly: boolean,
  phases: ReturnType<typeof followPhases>,
  watch: ReturnType<typeof watchAnswers>,
) {
  let isInTransaction = false
  let preparing: 'due' | 'sent' | 'done' = 'due'
  const isOurs = () => preparing === 'sent'
  return {
    isOurs,
    /** Puts what the session needs before the first statement, with which it travels. */
    addPreparation(bytes: Buffer): Buffer {
      if (preparing !== 'due') return bytes
      preparing = 'sent'
      return Buffer.concat([PREPARE_SESSION, bytes])
    },
    judge(type: ReadMessage, body: Buffer): Refusal | undefined {
      // A session whose commits may be reported too soon is of no use.
      if (type === 'E') return readError(body, { readOnly, isInTransaction, isOurs: isOurs() })
      if (type === 'S') return readParameter(body, readOnly)
      if (type === 'K' && body.length >= 8) phases.name(body)
      if (type !== 'Z') return undefined
      isInTransaction = !isIdle(body)
      watch.onAnswered()
      phases.open()
      if (isOurs()) preparing = 'done'
      return undefined
    },
  }
}

/**
 * Raises the level of commits; one that is high enough is set as well: a server that reads its settings again leaves it
 * alone then. And Citus plans an upsert only with the values of its parameters.
 */
const PREPARE_SESSION = writeQuery(
  `select pg_catalog.set_config('synchronous_commit', case when l.level in ('on', 'remote_apply') then l.level else 'on' end, false)
   from pg_catalog.current_setting('synchronous_commit') as l (level);
   select pg_catalog.set_config('plan_cache_mode', 'force_custom_plan', false)
   from pg_catalog.pg_extension where extname = 'citus'`,
)

/** A session that ended sooner has failed, as one that never opened has (ms). */
const LASTING_MS = 2_000

/** Follows a session to its end, and learns from it which server to connect to, and how soon. */
function followPhases(session: Session, { servers, index, line, ...options }: SessionOptions) {
  const { address, connectMs, readOnly } = options
  let phase: 'connecting' | 'opening' | 'open' | 'lasting' | 'cancelling' = 'connecting'
  let name = ''
  const giveUp = () => session.end(createConnectionError('CONNECT_TIMEOUT', address))
  let timer = setTimeout(giveUp, connectMs)
  return {
    isOpen: () => phase === 'open' || phase === 'lasting',
    /** @returns whether these bytes are the first that the driver sends */
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
      // Reads may be served by a primary that was set aside.
      if (!readOnly) servers.preferred = index
      clearTimeout(timer)
      timer = setTimeout(() => {
        phase = 'lasting'
        servers.failures = 0
      }, LASTING_MS).unref()
    },
    /** @returns the error that the driver is told; without one it connects again if it has not used the session yet */
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
        // Each server is tried once: any may be the one that accepts writes.
        if (servers.refusals % servers.count > 0) return undefined
        const refusal = failure ?? createConnectionError('CONNECTION_CLOSED', address)
        if (!line) return refusal
        line.refuse(refusal)
        return undefined
      }
      // Whatever it is, who has statements in it learns that the connection is lost.
      return isConnectionLost(failure)
        ? failure
        : createConnectionError('CONNECTION_CLOSED', address, failure)
    },
  }
}

/** Of the silence after which a session is ended, the part after which the server is asked whether it is there. */
const ASKED_TIMES = 8
const MAX_STEP_MS = 5_000

/**
 * Ends a session whose server vanished: the system would take a quarter of an hour to notice. One that is only busy
 * still answers a new connection.
 */
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
    /** Whether the server will say that it is ready. */
    isOwed: () => owed > 0,
    /** Whole messages are being sent. */
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
