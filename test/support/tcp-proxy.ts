import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { findPort, listenOn } from './ports.ts'

/** What a stalled proxy holds back: everything, or only answers. */
export type Stall = 'all' | 'answers'

/** A TCP proxy on this machine whose connections can be broken, stalled and refused. */
export type TcpProxy = {
  port: number
  /** Returns a server's address through the proxy. */
  wrap(url: string): string
  /** Sets the ports that new connections lead to, in turn. */
  pointTo(...ports: number[]): void
  /** Resets every connection. */
  cut(): void
  /** Holds bytes back, on open and new connections. */
  stall(what: Stall): void
  /** Resets new connections from now on. */
  refuse(): void
  /** Cuts every connection and stops listening: new ones get ECONNREFUSED. */
  close(): Promise<void>
  /** Undoes `stall`, `refuse` and `close`, and forwards what was held back. */
  heal(): Promise<void>
  stop(): Promise<void>
}

type Way = { from: Socket; to: Socket; isAnswer: boolean }

/**
 * Starts a proxy. It accepts no connections until `pointTo` is called.
 * @param atPort 0 = any free port
 */
export async function startTcpProxy(atPort = 0): Promise<TcpProxy> {
  const ways = new Set<Way>()
  let targets: number[] = []
  let turn = 0
  let stalled: Stall | undefined
  let refusing = false

  const isHeld = ({ isAnswer }: Way) => stalled === 'all' || (stalled === 'answers' && isAnswer)
  const release = (way: Way) => {
    if (isHeld(way)) way.from.pause()
    else if (!way.to.writableNeedDrain) way.from.resume()
  }
  function open(way: Way): void {
    const { from, to } = way
    ways.add(way)
    from.on('data', (bytes) => {
      if (!to.write(bytes)) from.pause()
    })
    to.on('drain', () => release(way))
    from.on('end', () => to.end())
    from.on('error', () => to.destroy())
    from.on('close', () => {
      ways.delete(way)
      // Data received before a graceful end is still forwarded.
      if (!to.writableEnded) to.destroy()
    })
    release(way)
  }

  const server = createServer({ allowHalfOpen: true }, (client) => {
    const target = targets[turn++ % Math.max(1, targets.length)]
    if (refusing || target === undefined) {
      client.on('error', () => {})
      client.resetAndDestroy()
      return
    }
    const upstream = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true })
    client.setNoDelay(true)
    upstream.setNoDelay(true)
    open({ from: client, to: upstream, isAnswer: false })
    open({ from: upstream, to: client, isAnswer: true })
  })
  const port = await listenOn(server, atPort || (await findPort()))

  function cut(): void {
    for (const { from } of ways) from.resetAndDestroy()
  }
  async function close(): Promise<void> {
    const closed = server.listening ? once(server, 'close') : undefined
    server.close()
    cut()
    await closed
  }
  return {
    port,
    wrap(url) {
      const wrapped = new URL(url)
      wrapped.host = `127.0.0.1:${port}`
      return wrapped.href
    },
    pointTo(...ports) {
      targets = ports
    },
    cut,
    stall(what) {
      stalled = what
      for (const way of ways) release(way)
    },
    refuse() {
      refusing = true
    },
    close,
    async heal() {
      stalled = undefined
      refusing = false
      if (!server.listening) await listenOn(server, port)
      for (const way of ways) release(way)
    },
    stop: close,
  }
}

/** Starts a proxy in front of a server. */
export async function startProxyTo(url: string, atPort = 0): Promise<TcpProxy & { url: string }> {
  const proxy = await startTcpProxy(atPort)
  proxy.pointTo(Number(new URL(url).port))
  return { ...proxy, url: proxy.wrap(url) }
}
