import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { findPort, listenOn } from '../../support/ports.ts'

/** The places on the wire at which a call can be cut off, in their order. */
export const CUTS = [
  'before the connection',
  'after the connection',
  'after the first byte',
  'in the head',
  'in the body',
  'before the last byte',
  'after the request',
  'in the answer',
  'after the answer',
] as const

export type Cut = (typeof CUTS)[number]

/** A REFUND that is cut off. */
export type RequestFault = {
  cut: Cut
  /** Called when the bytes before the cut have been passed on; the connection is reset when it resolves. */
  strike: () => Promise<void>
}

/**
 * A proxy in front of the gateway that passes whole requests and answers. It cuts off a REFUND that follows another
 * call, as a REFUND follows the query of its transaction.
 */
export type RequestProxy = {
  url: string
  /** Cuts off the next REFUND. */
  arm(fault: RequestFault): void
  /** Whether the fault has struck. */
  isStruck(): boolean
  /** Listens again, and cuts nothing off. */
  heal(): Promise<void>
  stop(): Promise<void>
}

/** The fault that is armed, and what has come of it. */
type State = {
  fault: RequestFault | undefined
  /** The call before the REFUND has been answered. */
  isAwaited: boolean
  isStruck: boolean
  /** Accepts no further connection. */
  refuse(): void
}

type Call = { target: string; client: Socket; request: Buffer }

/** Starts a proxy on a free port. */
export async function startRequestProxy(target: string): Promise<RequestProxy> {
  const clients = new Set<Socket>()
  const refuse = () => void server.close()
  const state: State = { fault: undefined, isAwaited: false, isStruck: false, refuse }
  const server = createServer((client) => {
    clients.add(client)
    client.setNoDelay(true)
    client.on('error', () => {})
    client.on('close', () => clients.delete(client))
    if (state.isAwaited && state.fault) return void strike(client, state)
    let received = Buffer.alloc(0)
    client.on('data', (bytes) => {
      received = Buffer.concat([received, bytes])
      if (!isWhole(received)) return
      const request = received
      received = Buffer.alloc(0)
      relay({ target, client, request }, state).catch(() => client.destroy())
    })
  })
  const port = await listenOn(server, await findPort())
  return {
    url: `http://127.0.0.1:${port}`,
    arm(fault) {
      Object.assign(state, { fault, isAwaited: false, isStruck: false })
    },
    isStruck: () => state.isStruck,
    async heal() {
      state.fault = undefined
      if (!server.listening) await listenOn(server, port)
    },
    async stop() {
      const closed = server.listening ? once(server, 'close') : undefined
      server.close()
      for (const client of clients) client.destroy()
      await closed
    },
  }
}

async function strike(client: Socket, state: State): Promise<void> {
  const { fault } = state
  state.isStruck = true
  state.fault = undefined
  await fault?.strike()
  client.resetAndDestroy()
}

/** Passes a call on, or as much of it as the fault lets through. */
async function relay({ target, client, request }: Call, state: State): Promise<void> {
  const cut = state.fault?.cut
  if (cut === 'before the connection' || cut === 'after the connection') {
    const answer = await exchange(target, request)
    state.isAwaited = true
    state.isStruck = cut === 'before the connection'
    if (state.isStruck) state.refuse()
    // Closed with its answer, the connection cannot be used for the REFUND.
    return await write(client, endWithAnswer(answer))
  }
  if (!cut || !request.includes('"REFUND"')) {
    return await write(client, await exchange(target, request))
  }
  const part = cutRequest(request, cut)
  if (part) await send(target, part)
  else await write(client, cutAnswer(await exchange(target, request), cut))
  await strike(client, state)
}

function endWithAnswer(answer: Buffer): Buffer {
  return Buffer.from(
    answer.toString('latin1').replace(/^connection: keep-alive/im, 'connection: close'),
    'latin1',
  )
}

/** The part of a request that reaches the gateway; undefined when all of it does. */
function cutRequest(request: Buffer, cut: Cut): Buffer | undefined {
  const head = findBody(request)
  const lengths: Partial<Record<Cut, number>> = {
    'after the first byte': 1,
    'in the head': head >> 1,
    'in the body': (head + request.length) >> 1,
    'before the last byte': request.length - 1,
  }
  const length = lengths[cut]
  return length === undefined ? undefined : request.subarray(0, length)
}

/** The part of an answer that reaches the client. */
function cutAnswer(answer: Buffer, cut: Cut): Buffer {
  if (cut === 'after the request') return Buffer.alloc(0)
  return cut === 'in the answer' ? answer.subarray(0, answer.length >> 1) : answer
}

const END_OF_HEAD = '\r\n\r\n'

/** Where the body of a message begins; 0 while its head is incomplete. */
function findBody(message: Buffer): number {
  const at = message.indexOf(END_OF_HEAD)
  return at === -1 ? 0 : at + END_OF_HEAD.length
}

function isWhole(message: Buffer): boolean {
  const body = findBody(message)
  if (body === 0) return false
  const head = message.toString('latin1', 0, body)
  if (/^transfer-encoding: chunked/im.test(head))
    return message.subarray(body).includes('0\r\n\r\n')
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
  return message.length >= body + length
}

function write(socket: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) =>
    socket.write(bytes, (error) => (error ? reject(error) : resolve())),
  )
}

async function reach(target: string): Promise<Socket> {
  const { port, hostname } = new URL(target)
  const gateway = connect(Number(port), hostname)
  gateway.setNoDelay(true)
  await once(gateway, 'connect')
  return gateway
}

/** Sends bytes to the gateway, and closes the connection once they have arrived there. */
async function send(target: string, bytes: Buffer): Promise<void> {
  const gateway = await reach(target)
  gateway.on('error', () => {})
  const closed = once(gateway, 'close')
  gateway.resume()
  gateway.end(bytes)
  await closed
}

/** Sends a request to the gateway, and waits for the whole answer. */
async function exchange(target: string, request: Buffer): Promise<Buffer> {
  const gateway = await reach(target)
  gateway.write(request)
  let answer = Buffer.alloc(0)
  for await (const chunk of gateway) {
    answer = Buffer.concat([answer, chunk])
    if (isWhole(answer)) return answer
  }
  throw new Error('the gateway closed the connection without a whole answer')
}
