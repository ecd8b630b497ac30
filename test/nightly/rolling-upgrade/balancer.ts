import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { listenOn } from '../../support/ports.ts'

/** A request that a process was given, and what came of it. */
export type Exchange = {
  /** The phase of the drill in which it was sent. */
  phase: string
  /** The name of the process. */
  target: string
  method: string
  path: string
  /** Of the answer; 0 when the process sent none, or not all of it. */
  status: number
  /** Its client did not wait for the answer. */
  isAbandoned: boolean
  tookMs: number
}

export type Target = { name: string; port: number }

/**
 * What stands in front of the processes: the next request goes to the next one. It repeats nothing, so that every
 * refusal is seen, and opens a connection for each request, so that none meets one that is being closed.
 */
export type Balancer = {
  url: string
  exchanges: readonly Exchange[]
  /** Sends what comes from now on to these. */
  pointTo(targets: readonly Target[]): void
  /** Counts the requests without an answer; readers that wait for events do not count. */
  countPending(): number
  /** Names what happens from now on. */
  begin(phase: string): void
  stop(): Promise<void>
}

/** Whether a request reads the change feed, where it may wait for events. */
export function isFeed(path: string): boolean {
  return path.startsWith('/v1/events')
}

/** Starts a balancer on a free port. */
export async function startBalancer(): Promise<Balancer> {
  const exchanges: Exchange[] = []
  let targets: readonly Target[] = []
  let turn = 0
  let phase = 'start'
  let pending = 0
  const server = createServer((incoming, outgoing) => {
    const target = targets[turn % targets.length]
    turn += 1
    if (!target) throw new Error('the balancer has nowhere to send a request')
    const sentIn = phase
    const weight = isFeed(incoming.url ?? '') ? 0 : 1
    pending += weight
    relay(incoming, outgoing, target, (ended) => {
      pending -= weight
      exchanges.push({ phase: sentIn, target: target.name, ...ended })
    })
  })
  // Whoever keeps a connection finds it open.
  server.keepAliveTimeout = 0
  const port = await listenOn(server)
  return {
    url: `http://127.0.0.1:${port}`,
    exchanges,
    pointTo(next) {
      targets = next
    },
    countPending: () => pending,
    begin(next) {
      phase = next
    },
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** Passes a request on, and its answer back. Calls `record` once. */
function relay(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { port }: Target,
  record: (ended: Omit<Exchange, 'phase' | 'target'>) => void,
): void {
  const { method = '', url: path = '', headers } = incoming
  const began = performance.now()
  let isOver = false
  const end = (status: number, isAbandoned = false) => {
    if (isOver) return
    isOver = true
    record({ method, path, status, isAbandoned, tookMs: performance.now() - began })
  }
  const passed = { ...headers, connection: 'close' }
  const call = request({ host: '127.0.0.1', port, method, path, headers: passed, agent: false })
  const fail = () => {
    end(0)
    outgoing.destroy()
  }
  call.on('error', fail)
  call.on('response', (answer) => {
    const { connection: _, 'keep-alive': __, ...rest } = answer.headers
    outgoing.writeHead(answer.statusCode ?? 0, rest)
    answer.on('error', fail)
    answer.on('end', () => end(answer.statusCode ?? 0))
    answer.pipe(outgoing)
  })
  outgoing.on('close', () => {
    end(0, true)
    call.destroy()
  })
  incoming.pipe(call)
}
