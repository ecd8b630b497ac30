import { createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/db/client.ts'
import { runInTransaction } from '../../src/platform/postgres/transaction.ts'
import { listen } from '../support/gateway.ts'
import { startProxyTo } from '../support/tcp-proxy.ts'
import { useOwnDatabase } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'
import { CUTS, type Cut, startRequestProxy } from './crash-points/request-proxy.ts'
import { startStatementProxy } from './crash-points/statement-proxy.ts'

// A proxy that does not do what a drill asks of it would let the drill pass: each of its faults is seen here to happen.

const ANSWER = 'HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 10\r\n\r\n0123456789'

/** A server that answers what ends with a brace, and what each of its connections received. */
async function startServer() {
  const received: string[] = []
  const server = createServer((socket) => {
    const index = received.push('') - 1
    socket.on('data', (bytes) => {
      received[index] += bytes.toString()
      if (received[index]?.endsWith('}')) socket.write(ANSWER)
    })
  })
  return { url: `http://127.0.0.1:${await listen(server)}`, received }
}

const post = async (url: string, command: string): Promise<string> => {
  const body = JSON.stringify({ command, filler: 'x'.repeat(100) })
  return await (await fetch(url, { method: 'POST', body })).text()
}

/** What arrives of the REFUND: nothing, a part, or all of it. */
const ARRIVES: Record<Cut, RegExp | undefined> = {
  'before the connection': undefined,
  'after the connection': undefined,
  'after the first byte': /^P$/,
  'in the head': /^POST \/ HTTP(?!.*\r\n\r\n)/s,
  'in the body': /\r\n\r\n\{"command":"REFUND","filler":"x+$/s,
  'before the last byte': /x"$/,
  'after the request': /x"\}$/,
  'in the answer': /x"\}$/,
  'after the answer': /x"\}$/,
}

it.each(CUTS)('a REFUND is cut off %s, and no other call is', async (cut) => {
  const { url, received } = await startServer()
  const proxy = await startRequestProxy(url)
  onTestFinished(() => proxy.stop())
  let strikes = 0
  const strike = async () => {
    strikes += 1
  }
  proxy.arm({ cut, strike })
  expect(await post(proxy.url, 'QUERY_PT')).toBe('0123456789')
  const answered = await post(proxy.url, 'REFUND').catch(() => undefined)
  // All bytes of the answer were sent before the connection was reset, and may have been read.
  if (cut !== 'after the answer') expect(answered).toBeUndefined()
  expect(proxy.isStruck()).toBe(true)
  expect(strikes).toBe(cut === 'before the connection' ? 0 : 1)
  const expected = ARRIVES[cut]
  expect(received).toEqual([
    expect.stringContaining('QUERY_PT'),
    ...(expected ? [expect.stringMatching(expected)] : []),
  ])
  await proxy.heal()
  expect(await post(proxy.url, 'REFUND')).toBe('0123456789')
})

const database = useOwnDatabase()

it.each([
  ['keep: begin', 'before', []],
  ['keep: insert kept (2)', 'before', []],
  ['keep: insert kept (3)', 'after', []],
  ['keep: commit', 'before', []],
  ['keep: commit', 'after', [1, 2, 3]],
] as const)('a connection is lost at "%s", %s: then %j is kept', async (statement, edge, kept) => {
  const proxy = await startStatementProxy(database.url)
  const { sql, close } = openDatabase(proxy.url, 2)
  onTestFinished(async () => {
    await close()
    await proxy.stop()
  })
  await database.sql`create table if not exists kept (id int)`
  await database.sql`truncate kept`
  const keep = () =>
    runInTransaction(sql, async (tx) => {
      for (const n of [1, 2, 3]) await tx`insert into kept values (${n})`
    })
  const readKept = async () =>
    (await database.sql`select id from kept order by id`).map(({ id }) => id)
  await sql`select 1`
  const strikes: string[] = []
  const strike = async () => void strikes.push(statement)
  const watch = proxy.watch(['keep'], { statement, edge, strike })
  await expect(keep()).rejects.toThrow()
  expect([watch.isStruck(), strikes]).toEqual([true, [statement]])
  expect(await readKept()).toEqual(kept)
  await keep()
  expect(await readKept()).toEqual([...kept, 1, 2, 3].toSorted())
})

it.each(['all', 'answers'] as const)('a line holds %s back until it is healed', async (what) => {
  const { url, received } = await startServer()
  const proxy = await startProxyTo(url)
  onTestFinished(() => proxy.stop())
  proxy.stall(what)
  let answer: string | undefined
  const answered = post(proxy.url, 'QUERY_PT').then((text) => {
    answer = text
  })
  const other = await startServer()
  const beside = await startProxyTo(other.url)
  onTestFinished(() => beside.stop())
  const isThere = () => received.join('').endsWith('}')
  if (what === 'answers') await waitUntil(isThere, { what: 'the request' })
  expect(await post(beside.url, 'QUERY_PT')).toBe('0123456789')
  expect([answer, isThere()]).toEqual([undefined, what === 'answers'])
  await proxy.heal()
  await answered
  expect(answer).toBe('0123456789')
})

it.each([
  ['cut', 'refuse', 'ECONNRESET'],
  ['cut', 'close', 'ECONNREFUSED'],
] as const)('a line that is %s and told to %s ends calls with %s', async (cut, how, code) => {
  const { url, received } = await startServer()
  const proxy = await startProxyTo(url)
  onTestFinished(() => proxy.stop())
  proxy.stall('answers')
  const lost = post(proxy.url, 'QUERY_PT').catch((error: Error) => error.cause)
  await waitUntil(() => received.join('') !== '', { what: 'the request' })
  proxy[cut]()
  expect(await lost).toBeInstanceOf(Error)
  await proxy[how]()
  const refused = await post(proxy.url, 'QUERY_PT').catch((error: Error) => error.cause)
  expect(refused).toMatchObject({ code })
  await proxy.heal()
  expect(await post(proxy.url, 'QUERY_PT')).toBe('0123456789')
})
