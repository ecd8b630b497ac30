import type { Server } from 'node:http'
import { findClientAddress, type NetworkTest, nameNetwork } from './client-address.ts'

/** Why a connection was refused: its network has its share, or the process has as many as it takes. */
export const CONNECTION_REFUSALS = ['network', 'total'] as const
export type ConnectionRefusal = (typeof CONNECTION_REFUSALS)[number]

export type ConnectionPolicy = {
  /** Proxies speak for many clients: their connections count only towards the total. */
  isTrustedProxy: NetworkTest
  /** Called for each connection that was closed unread. */
  onRefused(reason: ConnectionRefusal, address: string): void
}

/**
 * Gives each network, an IPv4 address or an IPv6 /64, at most `perNetwork` of the server's connections, so that one
 * client cannot keep all others out. One more is closed before a byte of it is read. It remembers nothing but the
 * networks of open connections.
 */
export function limitConnections(
  server: Server,
  perNetwork: number,
  { isTrustedProxy, onRefused }: ConnectionPolicy,
): void {
  const open = new Map<string, number>()
  // Before the parser, which gets its turn after this listener, has anything to read.
  server.prependListener('connection', (socket) => {
    const address = findClientAddress(socket.remoteAddress ?? '', undefined, isTrustedProxy)
    if (isTrustedProxy(address)) return
    const network = nameNetwork(address)
    const count = open.get(network) ?? 0
    if (count >= perNetwork) {
      socket.destroy()
      onRefused('network', address)
      return
    }
    open.set(network, count + 1)
    socket.once('close', () => {
      const left = (open.get(network) ?? 1) - 1
      if (left > 0) open.set(network, left)
      else open.delete(network)
    })
  })
  // Node itself closes those beyond `maxConnections`.
  server.on('drop', (peer) => onRefused('total', peer?.remoteAddress ?? ''))
}
