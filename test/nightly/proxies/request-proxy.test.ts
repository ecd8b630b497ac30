import { createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { listen } from '../../support/gateway.ts'
import { CUTS, type Cut, startRequestProxy } from '../../support/request-proxy.ts'

const ANSWER = 'HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 10\r\n\r\n0123456789'

/** A gateway that answers every whole request, and what it received. */
async function startGateway() {
  const received: string[] = []
  const port = await listen(
    createServer((socket) => {
      const index = received.push('') - 1
      socket.on('data', (bytes) => {
        received[index] += bytes.toString()
        if (received[index]?.endsWith('}')) socket.write(ANSWER)
      })
    }),
  )
  const proxy = await startRequestProxy(`http://127.0.0.1:${port}`)
  onTestFinished(() => proxy.stop())
  const call = async (command: string) => {
    const body = JSON.stringify({ command, filler: 'x'.repeat(100) })
    return await (await fetch(proxy.url, { method: 'POST', body })).text()
  }
  return { proxy, call, received }
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
  const { proxy, call, received } = await startGateway()
  let strikes = 0
  proxy.arm({
    cut,
    strike: async () => {
      strikes += 1
    },
  })
  expect(await call('QUERY_PT')).toBe('0123456789')
  const refused = await call('REFUND').then(
    () => false,
    () => true,
  )
  // All bytes of the answer were sent before the connection was reset, and may have been read.
  if (cut !== 'after the answer') expect(refused).toBe(true)
  expect(proxy.isStruck()).toBe(true)
  expect(strikes).toBe(cut === 'before the connection' ? 0 : 1)
  const expected = ARRIVES[cut]
  expect(received).toEqual([
    expect.stringContaining('QUERY_PT'),
    ...(expected ? [expect.stringMatching(expected)] : []),
  ])
  await proxy.heal()
  expect(await call('REFUND')).toBe('0123456789')
})
