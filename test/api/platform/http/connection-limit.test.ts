import { createServer, type Server } from 'node:http'
import { Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import type { Cidr } from '../../../../src/http/client-address.ts'
import { limitConnections, SERVER_LIMITS } from '../../../../src/http/server.ts'
import { createMetrics } from '../../../../src/metrics.ts'

const PROXY: Cidr = { address: '10.0.0.0', prefix: 8, family: 'ipv4' }

/** A server with two connections per network; `connect` plays one from an address, and returns it. */
function open(proxies: readonly Cidr[] = []) {
  const server: Server = createServer()
  onTestFinished(() => void server.close())
  const { connectionsRefused: refused } = createMetrics()
  const warned: object[] = []
  limitConnections(server, 2, {
    proxies,
    refused,
    log: { warn: (told: object) => warned.push(told) },
  })
  function connect(address: string): Socket {
    const socket = new Socket()
    Object.defineProperty(socket, 'remoteAddress', { value: address })
    onTestFinished(() => void socket.destroy())
    server.emit('connection', socket)
    return socket
  }
  const countRefused = async () => {
    const { values } = await refused.get()
    return values.map(({ labels, value }) => `${labels.reason} ${value}`)
  }
  return { connect, countRefused, warned }
}

const isOpen = (socket: Socket) => !socket.destroyed

it('a network gets so many connections, and one more is closed; others are not affected', async () => {
  const { connect, countRefused, warned } = open()
  const own = ['192.0.2.1', '192.0.2.1', '192.0.2.1'].map(connect)
  expect(own.map(isOpen)).toEqual([true, true, false])
  expect(isOpen(connect('192.0.2.2'))).toBe(true)
  expect(isOpen(connect('192.0.2.1'))).toBe(false)
  expect(await countRefused()).toEqual(['network 2', 'total 0'])
  // One line a minute, however many are refused.
  expect(warned).toEqual([{ address: '192.0.2.1', leftOut: 0 }])
})

it('a connection that ends makes room for one other', async () => {
  const { connect } = open()
  const [first] = ['192.0.2.1', '192.0.2.1'].map(connect)
  const closed = new Promise((resolve) => first?.once('close', resolve))
  first?.destroy()
  await closed
  expect(['192.0.2.1', '192.0.2.1'].map(connect).map(isOpen)).toEqual([true, false])
})

it('an IPv4 address counts as one however it is written, and an IPv6 client by its /64', () => {
  const { connect } = open()
  const mapped = ['192.0.2.1', '::ffff:192.0.2.1', '::ffff:192.0.2.1'].map(connect)
  expect(mapped.map(isOpen)).toEqual([true, true, false])
  expect(isOpen(connect('::ffff:192.0.2.2'))).toBe(true)
  const roaming = ['2001:db8::1', '2001:db8::2', '2001:db8:0:0:ffff::3'].map(connect)
  expect(roaming.map(isOpen)).toEqual([true, true, false])
  expect(isOpen(connect('2001:db8:0:1::1'))).toBe(true)
})

it('a trusted proxy has no share of its own, but loopback has one unless it is named', () => {
  const { connect } = open([PROXY])
  expect(['10.1.2.3', '::ffff:10.1.2.3', '10.1.2.3'].map(connect).every(isOpen)).toBe(true)
  expect(['127.0.0.1', '127.0.0.1', '127.0.0.1'].map(connect).map(isOpen)).toEqual([
    true,
    true,
    false,
  ])
})

it('in production a sixth is enough for one network: it takes many to fill the server', () => {
  expect(SERVER_LIMITS.connections / SERVER_LIMITS.connectionsPerNetwork).toBeGreaterThanOrEqual(6)
  // As many as wait in the published benchmark, twice.
  expect(SERVER_LIMITS.connectionsPerNetwork).toBeGreaterThanOrEqual(2_000)
})
