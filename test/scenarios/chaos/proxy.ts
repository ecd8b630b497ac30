import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** What passes while a proxy is stalled: nothing, or requests without their answers. */
export type Stall = 'all' | 'answers'

/** A TCP proxy on this machine whose connections can be broken, held up and refused. */
export type ChaosProxy = {
  port: number
  /** Where new connections lead, in turn. */
  pointTo(...ports: number[]): void
  /** Breaks every connection, in the middle of whatever passes. */
  cut(): void
  /** Holds bytes back, also those of connections that come now. */
  stall(what: Stall): void
  /** From now on new connections are reset. */
  refuse(): void
  /** Lets everything pass again, what was held back too. */
  heal(): void
  stop(): Promise<void>
}

type Way = { from: Socket; to: Socket; isAnswer: boolean }

/** Starts a proxy on a free port; it leads nowhere until told. */
export async function startProxy(): Promise<ChaosProxy> {
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
      // What came before a proper end still goes out.
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
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the proxy has no port')

  function cut(): void {
    for (const { from } of ways) from.resetAndDestroy()
  }
  return {
    port: address.port,
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
    heal() {
      stalled = undefined
      refusing = false
      for (const way of ways) release(way)
    },
    async stop() {
      const closed = once(server, 'close')
      server.close()
      cut()
      await closed
    },
  }
}
