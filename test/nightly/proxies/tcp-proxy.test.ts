import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { listen } from '../../support/gateway.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** Starts a server that responds in capitals, a proxy in front of it, and a client. */
async function startLine() {
  const heard: string[] = []
  const server = createServer((socket) => {
    socket.on('data', (bytes) => {
      heard.push(String(bytes))
      socket.write(String(bytes).toUpperCase())
    })
  })
  const proxy = await startTcpProxy()
  proxy.pointTo(await listen(server))
  onTestFinished(() => proxy.stop())
  const open = () => {
    const client: Socket = connect(proxy.port, '127.0.0.1')
    const received: string[] = []
    client.on('data', (bytes) => received.push(String(bytes)))
    const closed = new Promise<string>((resolve) => {
      client.on('error', (error) => resolve('code' in error ? String(error.code) : error.message))
      client.on('close', () => resolve('closed'))
    })
    onTestFinished(() => void client.destroy())
    return { client, received, closed }
  }
  const { client, received, closed } = open()
  const has = (list: string[], text: string) =>
    waitUntil(() => list.join('') === text, { what: `${text} arrives` })
  client.write('a')
  await has(received, 'A')
  return { proxy, open, client, received, closed, heard, has }
}

it('a stalled proxy forwards nothing, on open and new connections, until it is healed', async () => {
  const { proxy, open, client, received, heard, has } = await startLine()
  proxy.stall('all')
  client.write('b')
  const late = open()
  await once(late.client, 'connect')
  late.client.write('c')
  const other = await startLine()
  other.client.write('d')
  await other.has(other.received, 'AD')
  expect([received.join(''), heard.join(''), late.received.join('')]).toEqual(['A', 'a', ''])
  await proxy.heal()
  await has(received, 'AB')
  await has(late.received, 'C')
})

it('a proxy that holds answers back forwards requests', async () => {
  const { proxy, client, received, heard, has } = await startLine()
  proxy.stall('answers')
  client.write('b')
  await has(heard, 'ab')
  expect(received.join('')).toBe('A')
  await proxy.heal()
  await has(received, 'AB')
})

it('a cut resets open connections and accepts new ones', async () => {
  const { proxy, open, closed, has } = await startLine()
  proxy.cut()
  expect(await closed).toBe('ECONNRESET')
  const next = open()
  next.client.write('x')
  await has(next.received, 'X')
})

it('a refusing proxy resets new connections until it is healed', async () => {
  const { proxy, open, client, received, has } = await startLine()
  proxy.refuse()
  expect(await open().closed).toBe('ECONNRESET')
  client.write('b')
  await has(received, 'AB')
  await proxy.heal()
  const next = open()
  next.client.write('x')
  await has(next.received, 'X')
})

it('data sent before a connection ends still arrives', async () => {
  const { client, received, closed, has } = await startLine()
  client.end('z')
  await has(received, 'AZ')
  expect(await closed).toBe('closed')
})

it('a closed proxy refuses connections, and listens on the same port once healed', async () => {
  const { proxy, open, closed, has } = await startLine()
  await proxy.close()
  expect(await closed).toBe('ECONNRESET')
  expect(await open().closed).toBe('ECONNREFUSED')
  await proxy.heal()
  const next = open()
  next.client.write('x')
  await has(next.received, 'X')
})
