import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { listen } from '../../support/gateway.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { startProxy } from './proxy.ts'

/** A server that answers every byte in capitals, a proxy before it, and a client of both. */
async function startLine() {
  const heard: string[] = []
  const server = createServer((socket) => {
    socket.on('data', (bytes) => {
      heard.push(String(bytes))
      socket.write(String(bytes).toUpperCase())
    })
  })
  const proxy = await startProxy()
  proxy.pointTo(await listen(server))
  onTestFinished(() => proxy.stop())
  const open = () => {
    const client: Socket = connect(proxy.port, '127.0.0.1')
    const told: string[] = []
    client.on('data', (bytes) => told.push(String(bytes)))
    const closed = new Promise<string>((resolve) => {
      client.on('error', (error) => resolve('code' in error ? String(error.code) : error.message))
      client.on('close', () => resolve('closed'))
    })
    onTestFinished(() => void client.destroy())
    return { client, told, closed }
  }
  const { client, told, closed } = open()
  const has = (list: string[], text: string) =>
    waitUntil(() => list.join('') === text, { what: `${text} arrives` })
  client.write('a')
  await has(told, 'A')
  return { proxy, open, client, told, closed, heard, has }
}

it('a proxy that is stalled lets nothing pass, in connections that are there and new ones, and all of it later', async () => {
  const { proxy, open, client, told, heard, has } = await startLine()
  proxy.stall('all')
  client.write('b')
  const late = open()
  await once(late.client, 'connect')
  late.client.write('c')
  const other = await startLine()
  other.client.write('d')
  await other.has(other.told, 'AD')
  expect([told.join(''), heard.join(''), late.told.join('')]).toEqual(['A', 'a', ''])
  proxy.heal()
  await has(told, 'AB')
  await has(late.told, 'C')
})

it('a proxy that holds answers back lets requests pass', async () => {
  const { proxy, client, told, heard, has } = await startLine()
  proxy.stall('answers')
  client.write('b')
  await has(heard, 'ab')
  expect(told.join('')).toBe('A')
  proxy.heal()
  await has(told, 'AB')
})

it('a cut breaks what is there with a reset, and lets new connections in', async () => {
  const { proxy, open, closed, has } = await startLine()
  proxy.cut()
  expect(await closed).toBe('ECONNRESET')
  const next = open()
  next.client.write('x')
  await has(next.told, 'X')
})

it('a proxy that refuses resets new connections until it is healed', async () => {
  const { proxy, open, client, told, has } = await startLine()
  proxy.refuse()
  expect(await open().closed).toBe('ECONNRESET')
  client.write('b')
  await has(told, 'AB')
  proxy.heal()
  const next = open()
  next.client.write('x')
  await has(next.told, 'X')
})

it('what came before the end of a connection still arrives', async () => {
  const { client, told, closed, has } = await startLine()
  client.end('z')
  await has(told, 'AZ')
  expect(await closed).toBe('closed')
})
